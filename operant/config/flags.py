"""The command line as a configuration: `--section.field value` sets any setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from operant.config.schema import Leaf, from_tree, leaves, refusal
from operant.config.synonyms import other_agents_setting, path_of
from operant.config.values import type_in_words
from operant.config.yaml_file import parse_scalar, parse_yaml
from operant.core.config import Config
from operant.core.conversion import bare, quoted, union_members
from operant.core.errors import UsageError, suggest

C = TypeVar("C", bound=Config)
BOOLEANS = {"true": True, "false": False}


def parse_flags(
    cls: type[C],
    argv: Sequence[str],
    base: C | None = None,
    *,
    partial: bool = False,
    others: Iterable[str] = (),
) -> tuple[C, list[str]]:
    """The configuration that `argv` asks for, over `base`, and the words that belong to no flag.

    An unknown flag is an error that suggests a known one, or one of `others`, which are read
    elsewhere. `partial` leaves unknown flags among the words instead, for the next reader.
    """
    known = {leaf.path: leaf for leaf in leaves(cls, base)}
    tree: dict[str, Any] = {}
    words: list[str] = []
    queue = list(argv)
    while queue:
        word = queue.pop(0)
        if not word.startswith("--") or word == "--":
            words.append(word)
            continue
        name, equals, inline = word[2:].partition("=")
        leaf, negated = _find(name.replace("-", "_"), known)
        if leaf is None and partial:
            words.append(word)
            continue
        if leaf is None:
            why = refusal(cls, base, name.replace("-", "_"))
            raise UsageError((why and f"--{name}: {why}") or _unknown_flag(name, [*known, *others]))
        value = _parse_value(leaf, queue, inline if equals else None, negated)
        _set_nested(tree, leaf.path.split("."), value)
    return from_tree(cls, tree, base), words


def flag(path: str) -> str:
    """How a dotted path is written on the command line."""
    return "--" + path.rstrip("_").replace("_", "-")  # `from_` is `--from`, a word of Python's


def plain_type(hint: Any) -> Any:
    """The class behind an annotation, without ranges and `None`; None for a union of several."""
    members = [member for member in union_members(hint) if member is not type(None)]
    inner = members[0] if len(members) == 1 else None
    while get_origin(inner) is Annotated:
        inner = get_args(inner)[0]
    return get_origin(inner) or inner


def item_types(hint: Any) -> tuple[Any, ...]:
    """The types of the items of an annotated tuple."""
    member = next(member for member in union_members(hint) if member is not type(None))
    return get_args(get_args(member)[0] if get_origin(member) is Annotated else member)


def _find(name: str, known: Mapping[str, Leaf]) -> tuple[Leaf | None, bool]:
    """The setting of a flag, and whether the flag is its negation, `--no-...`."""
    if name in known or f"{name}_" in known:
        return known.get(name) or known[f"{name}_"], False
    positive = known.get(name.removeprefix("no_"))
    negatable = positive is not None and plain_type(positive.hint) is bool
    return (positive, True) if negatable else (None, False)


def _unknown_flag(name: str, paths: Sequence[str]) -> str:
    meant = path_of(name, paths)
    other = "" if meant else other_agents_setting(name, paths)
    if other:
        return f"--{name}: unknown flag; {flag(other)} is a setting of other agents"
    near = suggest(flag(meant or name), [flag(path) for path in ([meant] if meant else paths)])
    return f"--{name}: unknown flag{near}"


def _parse_value(leaf: Leaf, queue: list[str], inline: str | None, negated: bool) -> Any:
    """The value of a flag: `inline` after an equals sign, or the next words of the queue."""
    kind = plain_type(leaf.hint)
    if kind is bool:
        return _parse_bool(leaf, queue, inline, negated)
    texts = [inline] if inline is not None else _take_words(queue, kind in (tuple, dict))
    if not texts:
        raise UsageError(
            f"{flag(leaf.path)}: a value is missing; expected {type_in_words(leaf.hint)}"
        )
    optional = type(None) in union_members(leaf.hint)
    if optional and [text.lower() for text in texts] in (["none"], ["null"]):
        return None
    if kind is tuple:
        return _parse_list(leaf, texts)
    if kind is dict:
        return dict(_parse_pair(leaf, text) for text in texts)
    lists = [member for member in union_members(leaf.hint) if get_origin(member) is tuple]
    if lists and texts[0].startswith("["):
        return _parse_list(replace(leaf, hint=lists[0]), texts)
    return _parse_text(texts[0], leaf.hint)


def _parse_bool(leaf: Leaf, queue: list[str], inline: str | None, negated: bool) -> bool:
    if inline is None and queue and queue[0].lower() in BOOLEANS and not negated:
        inline = queue.pop(0)
    if inline is None:
        return not negated
    if negated or inline.lower() not in BOOLEANS:
        prefix = "--no-" if negated else "--"
        name = prefix + flag(leaf.path)[2:]
        expected = "no value" if negated else "true or false"
        raise UsageError(f"{name} = {inline!r}: expected {expected}")
    return BOOLEANS[inline.lower()]


def _take_words(queue: list[str], several: bool) -> list[str]:
    """The words up to the next flag, or only the first of them."""
    taken: list[str] = []
    while queue and not queue[0].startswith("--") and (several or not taken):
        taken.append(queue.pop(0))
    return taken


def _parse_list(leaf: Leaf, texts: Sequence[str]) -> list[Any]:
    """Values between commas or in several words, or all of them in brackets; `[]` is empty."""
    line = " ".join(texts)
    if line.startswith("[") and line.endswith("]"):
        texts = [line[1:-1]] if line[1:-1].strip() else []
    parts = [part.strip() for text in texts for part in text.split(",")]
    if not all(parts):
        raise UsageError(
            f"{flag(leaf.path)} {quoted(line)}: a value is missing; expected values with commas "
            f"between them, or [] for none"
        )
    kinds = item_types(leaf.hint)
    return [_parse_text(part, kinds[0] if kinds else Any) for part in parts]


def _parse_pair(leaf: Leaf, text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{flag(leaf.path)} {text}: expected name=value")
    structured = value.startswith(("[", "{", "'", '"'))
    return key, parse_yaml(value, f"{flag(leaf.path)} {key}") if structured else parse_scalar(value)


def _parse_text(text: str, hint: Any) -> Any:
    """A scalar; where only a string is accepted, text such as `1e5` does not become a number."""
    return text if _accepts_only_text(hint) else parse_scalar(text)


def _accepts_only_text(hint: Any) -> bool:
    members = [bare(member) for member in union_members(hint) if member is not type(None)]
    return all(
        member is str
        or (get_origin(member) is Literal and all(isinstance(c, str) for c in get_args(member)))
        for member in members
    )


def _set_nested(tree: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    tree[keys[-1]] = value
