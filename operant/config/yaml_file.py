"""Configuration files in YAML, read strictly: `1e-4` is a number, `no` is text, no key twice."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import yaml

from operant.core.conversion import quoted
from operant.core.errors import UsageError

TAG = "tag:yaml.org,2002:"
DIGITS = r"(?:0|[1-9][0-9]*(?:_[0-9]+)*)"  # as Python writes them: `1_000`, not `1__0` or `1_`
# YAML 1.1 reads `1e-4` as text, `no` as false, `1:30` as 90 and `010` as 8: not so here.
SCALARS: tuple[tuple[str, str, str, Callable[[str], Any]], ...] = (
    ("null", r"null|Null|NULL|~|", "nN~", lambda text: None),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF", lambda text: text.lower() == "true"),
    ("int", rf"[-+]?{DIGITS}", "-+0123456789", int),
    (
        "float",
        rf"[-+]?((\.[0-9]+|{DIGITS}(\.[0-9]*)?)([eE][-+]?[0-9]+)?|\.?(inf|nan))",
        "-+.0123456789in",
        lambda text: float(text.replace(".inf", "inf").replace(".nan", "nan")),
    ),
)


class _Loader(yaml.SafeLoader):
    """Plain values only: no tags that make objects, no aliases, no key twice."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # as PyYAML declares it
    yaml_constructors: ClassVar[dict[str | None, Any]] = {
        TAG + "str": yaml.SafeLoader.construct_yaml_str,
        TAG + "seq": yaml.SafeLoader.construct_yaml_seq,
        None: yaml.SafeLoader.construct_undefined,
    }

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # PyYAML's stubs
            raise yaml.MarkedYAMLError(problem="an alias (*name) is not allowed", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen or not isinstance(key, yaml.ScalarNode):
                problem = f"the key {name!r} occurs twice" if name in seen else "a key must be text"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=True)


class _Dumper(yaml.SafeDumper):
    """Quotes exactly those strings that `_Loader` would read as something else."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # as PyYAML declares it

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _construct(parse: Callable[[str], Any], loader: _Loader, node: Any) -> Any:
    return parse(str(loader.construct_scalar(node)))


def _add_resolvers() -> None:
    _Loader.add_constructor(TAG + "map", _Loader.construct_mapping)
    for name, pattern, first, parse in SCALARS:
        firsts = [*first, ""] if name == "null" else list(first)
        for kind in (_Loader, _Dumper):
            kind.add_implicit_resolver(TAG + name, re.compile(f"(?:{pattern})$"), firsts)
        _Loader.add_constructor(TAG + name, partial(_construct, parse))


_add_resolvers()


def parse_scalar(text: str) -> Any:
    """A word of the command line, read as a scalar of a file would be."""
    for _, pattern, _, parse in SCALARS:
        if re.fullmatch(pattern, text):
            try:
                return parse(text)
            except ValueError:  # an integer of thousands of digits
                return text
    return text


def parse_yaml(text: str, source: str) -> Any:
    """The document in `text`; an error is one line that begins with `source`."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        raise UsageError(f"{where}: {_one_line(error.problem or str(error))}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{source}: not YAML: {_one_line(str(error))}") from None
    except ValueError as error:  # a tag that forces a scalar into a type, such as `!!int x`
        raise UsageError(f"{source}: {_one_line(str(error))}") from None
    except RecursionError:
        raise UsageError(f"{source}: nested too deeply to be a configuration") from None


def load_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a configuration file."""
    source = str(path)
    try:
        text = _read(path).decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"{source}: no such configuration file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{source}: not UTF-8 text (byte {error.start})") from None
    except (OSError, ValueError) as error:  # a ValueError where no path can be so
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{quoted(source)}: cannot be read: {why}") from None
    tree = parse_yaml(text, source)
    if tree is None:
        raise UsageError(f"{source}: is empty; expected keys with values, such as `seed: 1`")
    if not isinstance(tree, dict):
        kind = "a list" if isinstance(tree, list) else f"only {tree!r}"
        raise UsageError(f"{source}: holds {kind}; expected keys with values, such as `seed: 1`")
    return tree


def _read(path: str | Path) -> bytes:
    """The content of a file; that of a pipe into which nobody writes is empty, not waited for."""
    with open(path, "rb", opener=_open_at_once) as file:
        os.set_blocking(file.fileno(), True)
        return file.read()


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def dump_yaml(tree: dict[str, Any]) -> str:
    """Text from which `load_yaml` reads the same tree."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, width=100)


def _one_line(text: str) -> str:
    return " ".join(text.split())
