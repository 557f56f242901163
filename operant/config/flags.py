"""The command line as a configuration: `--section.field value`, for every value of the tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from operant.config.schema import Leaf, from_tree, leaves
from operant.config.values import arms_of, expectation
from operant.config.yaml_file import parse_yaml, scalar
from operant.core.config import Config
from operant.core.errors import UsageError, suggest

C = TypeVar("C", bound=Config)
TRUTH = {"true": True, "false": False}


def parse_flags(
    cls: type[C],
    argv: Sequence[str],
    base: C | None = None,
    *,
    partial: bool = False,
    others: Iterable[str] = (),
) -> tuple[C, list[str]]:
    """The configuration that `argv` asks for, over `base`, and the words that belong to no flag.

    An unknown flag is refused with the nearest known one (or of `others`, known elsewhere);
    `partial` leaves it among the words instead, in order, for another configuration to read.
    """
    known = {leaf.path: leaf for leaf in leaves(cls, base)}
    tree: dict[str, Any] = {}
    words: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            words.append(word)
            continue
        name, equals, inline = word[2:].partition("=")
        leaf, negated = _find(name.replace("-", "_"), known)
        if leaf is None and partial:
            words.append(word)
            continue
        if leaf is None:
            raise UsageError(_unknown(name, known, others))
        given = _given(leaf, rest, inline if equals else None, negated)
        _put(tree, leaf.path.split("."), given)
    return from_tree(cls, tree, base), words


def flag(path: str) -> str:
    """How a dotted path is written on the command line."""
    return "--" + path.replace("_", "-")


def kind_of(hint: Any) -> Any:
    """The one container or plain type behind an annotation, `None` beside it set apart."""
    arms = [arm for arm in arms_of(hint) if arm is not type(None)]
    inner = arms[0] if len(arms) == 1 else None
    while get_origin(inner) is Annotated:
        inner = get_args(inner)[0]
    return get_origin(inner) or inner


def _find(name: str, known: Mapping[str, Leaf]) -> tuple[Leaf | None, bool]:
    if name in known:
        return known[name], False
    positive = known.get(name.removeprefix("no_"))
    negatable = positive is not None and kind_of(positive.hint) is bool
    return (positive, True) if negatable else (None, False)


def _unknown(name: str, known: Mapping[str, Leaf], others: Iterable[str]) -> str:
    same_end = [path for path in known if path.split(".")[-1] == name.replace("-", "_")]
    names = [flag(path) for path in same_end or [*known, *others]]
    return f"--{name}: unknown flag{suggest('--' + name, names)}"


def _given(leaf: Leaf, rest: list[str], inline: str | None, negated: bool) -> Any:
    kind = kind_of(leaf.hint)
    if kind is bool:
        return _truth(leaf, rest, inline, negated)
    several = kind in (tuple, dict)
    texts = [inline] if inline is not None else _take(rest, several)
    if not texts:
        raise UsageError(
            f"{flag(leaf.path)}: a value is missing; expected {expectation(leaf.hint)}"
        )
    optional = type(None) in arms_of(leaf.hint)
    if optional and [text.lower() for text in texts] in (["none"], ["null"]):
        return None
    if kind is tuple:
        return _several(texts, get_args(_bare(leaf.hint)))
    if kind is dict:
        return dict(_pair(leaf, part) for part in texts)
    return _single(texts[0], leaf.hint)


def _truth(leaf: Leaf, rest: list[str], inline: str | None, negated: bool) -> bool:
    if inline is None and rest and rest[0].lower() in TRUTH and not negated:
        inline = rest.pop(0)
    if inline is None:
        return not negated
    if negated or inline.lower() not in TRUTH:
        prefix = "--no-" if negated else "--"
        name = prefix + flag(leaf.path)[2:]
        expected = "no value" if negated else "true or false"
        raise UsageError(f"{name} = {inline!r}: expected {expected}")
    return TRUTH[inline.lower()]


def _take(rest: list[str], several: bool) -> list[str]:
    """The words up to the next flag, or the first of them."""
    taken: list[str] = []
    while rest and not rest[0].startswith("--") and (several or not taken):
        taken.append(rest.pop(0))
    return taken


def _several(texts: Sequence[str], kinds: tuple[Any, ...]) -> list[Any]:
    if len(texts) == 1 and texts[0].startswith("["):
        parts = texts[0].strip("[]").split(",")
    else:
        parts = [part for text in texts for part in text.split(",")]
    return [_single(part.strip(), kinds[0] if kinds else Any) for part in parts if part.strip()]


def _pair(leaf: Leaf, text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{flag(leaf.path)} {text}: expected name=value")
    structured = value.startswith(("[", "{", "'", '"'))
    return key, parse_yaml(value, f"{flag(leaf.path)} {key}") if structured else scalar(value)


def _single(text: str, hint: Any) -> Any:
    """Text stays text where only text is meant, so that an id such as `1e5` is not a number."""
    return text if _only_text(hint) else scalar(text)


def _only_text(hint: Any) -> bool:
    arms = [arm for arm in arms_of(hint) if arm is not type(None)]
    return all(
        arm is str
        or (get_origin(arm) is Literal and all(isinstance(c, str) for c in get_args(arm)))
        for arm in arms
    )


def _bare(hint: Any) -> Any:
    arm = next(arm for arm in arms_of(hint) if arm is not type(None))
    return get_args(arm)[0] if get_origin(arm) is Annotated else arm


def _put(tree: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    tree[keys[-1]] = value
