"""Frozen configuration dataclasses from nested plain values, checked strictly, and back."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from operant.config.synonyms import path_of
from operant.config.values import convert, type_in_words
from operant.core.config import Config
from operant.core.conversion import quoted, union_members
from operant.core.errors import UsageError, suggest
from operant.core.schedule import Schedule

C = TypeVar("C", bound=Config)


@dataclass(frozen=True)
class Leaf:
    """One setting: its dotted path, its annotation, its value, and the class that declares it."""

    path: str
    hint: Any
    value: Any
    owner: type[Config]

    @property
    def section(self) -> str:
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def leaves(cls: type[Config], base: Config | None = None, path: str = "") -> Iterator[Leaf]:
    """Every setting of a configuration and of its sections, in the order of their fields."""
    hints = get_type_hints(cls, include_extras=True)
    for field in _settable(cls):
        value = getattr(base, field.name) if base is not None else _default(field)
        dotted = f"{path}.{field.name}" if path else field.name
        section = section_class(hints[field.name], value)
        if section is not None:
            yield from leaves(section, value, dotted)
        else:
            yield Leaf(dotted, hints[field.name], value, cls)


def from_tree(
    cls: type[C],
    tree: Mapping[str, Any],
    base: C | None = None,
    path: str = "",
    *,
    source: str = "",
) -> C:
    """A configuration with the values of `tree`, and for the rest those of `base` or the defaults.

    Unknown keys, wrong types and numbers out of range raise a UsageError that names the `source`
    and the dotted path of the setting.
    """
    try:
        return _build(cls, tree, base, path)
    except UsageError as error:
        raise UsageError(f"{source}: {error}" if source else str(error)) from None


def to_tree(config: Config) -> dict[str, Any]:
    """Plain values that JSON and YAML can hold, from which `from_tree` makes an equal config."""
    return {
        field.name: _plain(field.name, getattr(config, field.name))
        for field in _settable(type(config))
    }


def refusal(cls: type[Config], base: Config | None, dotted: str) -> str:
    """Why the section of this path does not have its last name, if it says so."""
    *sections, name = dotted.split(".")
    for section in sections:
        field = next((f for f in _settable(cls) if f.name == section), None)
        value = getattr(base, section, None) if base else field and _default(field)
        if not isinstance(value, Config):
            return ""
        cls, base = type(value), value
    return cls.refused.get(name, "")


def section_class(hint: Any, value: Any) -> type[Config] | None:
    """The configuration class of a field that is a section: of what it holds, else as annotated."""
    if isinstance(value, Config):
        return type(value)
    members = [m for m in union_members(hint) if isinstance(m, type) and issubclass(m, Config)]
    return members[0] if len(members) == 1 else None


def _build(cls: type[C], tree: Mapping[str, Any], base: C | None, path: str) -> C:
    hints = get_type_hints(cls, include_extras=True)
    known = {field.name: field for field in _settable(cls)}
    values = {name: getattr(base, name) for name in known} if base is not None else {}
    for key, given in tree.items():
        dotted = (f"{path}.{key}" if path else str(key)).rstrip("_")  # `from_` is `--from`
        if key not in known:
            raise UsageError(_unknown_key(str(key), cls, base, path))
        current = values.get(key, _default(known[key]))
        values[key] = _value(dotted, given, hints[key], current)
    for name, field in known.items():
        if name not in values and not _has_default(field):
            raise UsageError(f"{path}.{name}".lstrip(".") + f": missing; {_expected(hints[name])}")
    try:
        return cls(**values)
    except UsageError as error:
        raise UsageError(_prefixed(path, str(error), known)) from None


def _unknown_key(key: str, cls: type[Config], base: Config | None, path: str) -> str:
    """The error for a key that is no setting, with the one that is probably meant."""
    section = f"{path}." if path else ""
    if key in cls.refused:
        return f"{section}{key}: {cls.refused[key]}"
    names = [field.name for field in _settable(cls)]
    meant = path_of(key, [section + leaf.path for leaf in leaves(cls, base)])
    meant = meant.removeprefix(section)
    return f"{section}{key}: unknown key{suggest(meant or key, [meant] if meant else names)}"


def _value(path: str, given: Any, hint: Any, current: Any) -> Any:
    section = section_class(hint, current)
    optional = type(None) in union_members(hint)
    if section is None or (given is None and optional):
        return convert(path, given, hint)
    if not isinstance(given, Mapping):
        names = ", ".join(field.name for field in _settable(section))
        raise UsageError(f"{path} = {quoted(given)}: expected a section with keys among {names}")
    return _build(section, given, current if isinstance(current, Config) else None, path)


def _plain(path: str, value: Any) -> Any:
    if isinstance(value, Config):
        return {
            f.name: _plain(f"{path}.{f.name}", getattr(value, f.name))
            for f in _settable(type(value))
        }
    if isinstance(value, Schedule):
        return value.start if value.end is None else str(value)
    if isinstance(value, tuple | list):
        return [_plain(f"{path}[{i}]", part) for i, part in enumerate(value)]
    if isinstance(value, Mapping):
        return {str(key): _plain(f"{path}.{key}", part) for key, part in value.items()}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise UsageError(
        f"{path} = {value!r}: a {type(value).__name__} cannot be written to a file; "
        "expected numbers, strings, true, false, none, and lists and mappings of these"
    )


def _settable(cls: type[Config]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.init]


def _has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _expected(hint: Any) -> str:
    section = section_class(hint, None)
    return "expected a section" if section else f"expected {type_in_words(hint)}"


def _prefixed(path: str, message: str, known: Mapping[str, Any]) -> str:
    """The error of a nested configuration, which does not know its own path, with that path."""
    if not path:
        return message
    field = re.split(r"[ :\[]", message, maxsplit=1)[0]
    return f"{path}.{message}" if field in known else f"{path}: {message}"
