"""The help of a configuration: every flag with its type, its default and its comment."""

from __future__ import annotations

import ast
import inspect
import io
import math
import shutil
import textwrap
import tokenize
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_origin

from operant.config.flags import flag, item_types, plain_type
from operant.config.schema import Leaf, leaves
from operant.core.annotations import function_of
from operant.core.config import Config, Range
from operant.core.conversion import union_members
from operant.core.schedule import Schedule

if TYPE_CHECKING:
    from rich.table import Table

TYPE_NAMES: dict[Any, str] = {
    int: "INT",
    float: "FLOAT",
    bool: "",
    str: "TEXT",
    type(None): "none",
    Any: "VALUE",
    Schedule: "FLOAT|linear(a,b[,steps])",
}
FLAG_COLUMNS = 37  # which leaves forty for the explanations on a screen of eighty columns


class Row(NamedTuple):
    """One flag as the help shows it."""

    section: str
    flag: str
    accepts: str
    default: str
    comment: str


def rows(cls: type[Config], base: Config | None = None) -> list[Row]:
    """One row for each setting, with the values of `base` as defaults."""
    return [_row(leaf) for leaf in leaves(cls, base)]


def describe(
    cls: type[Config],
    base: Config | None = None,
    *,
    intro: str = "",
    examples: Sequence[tuple[str, str]] = (),
    title: str = "run",
    width: int | None = None,
    color: bool = False,
) -> str:
    """The help text: `intro`, `examples` (a command and what it does), then flags by section.

    `title` is that of the settings that are in no section.
    """
    from rich.console import Console  # noqa: PLC0415  # slow to import, and most runs print no help
    from rich.text import Text  # noqa: PLC0415

    columns = width or min(110, shutil.get_terminal_size().columns)
    console = Console(
        file=io.StringIO(), width=columns, force_terminal=color, no_color=not color, highlight=False
    )
    if intro:
        console.print(Text(intro.strip() + "\n"))
    if examples:
        console.print(Text("Examples", style="bold"))
        console.print(_examples(examples), "")
    for section, found in _sections(cls, base).items():
        heading = Text(section or title, style="bold cyan")
        console.print(heading.append(f"  {_summary(found[0].owner)}", style="not bold default"))
        console.print(_table([_row(leaf) for leaf in found]), "")
    output = console.file
    assert isinstance(output, io.StringIO)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()).rstrip() + "\n"


def _sections(cls: type[Config], base: Config | None) -> dict[str, list[Leaf]]:
    found: dict[str, list[Leaf]] = {}
    for leaf in leaves(cls, base):
        found.setdefault(leaf.section, []).append(leaf)
    return found


def comments(cls: type) -> dict[str, str]:
    """The trailing comment of each field, also of those that `cls` inherits."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if "__annotations__" in vars(owner):
            found |= _own_comments(owner)
    make = getattr(cls, "make", None)  # whose arguments are the settings
    return found if make is None else found | _own_comments(function_of(make))


def _own_comments(thing: Any) -> dict[str, str]:
    """The comments beside the fields of a class, or beside the arguments of a function."""
    try:
        source = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):  # what is made at run time has no source, so no comments
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    by_line = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    body = ast.parse(source).body[0]
    named: dict[str, ast.AnnAssign | ast.arg] = {}
    if isinstance(body, ast.ClassDef):
        fields = [node for node in body.body if isinstance(node, ast.AnnAssign)]
        named = {node.target.id: node for node in fields if isinstance(node.target, ast.Name)}
    elif isinstance(body, ast.FunctionDef):
        named = {node.arg: node for node in (*body.args.args, *body.args.kwonlyargs)}
    return {
        name: by_line.get(node.end_lineno or node.lineno, by_line.get(node.lineno, ""))
        for name, node in named.items()
    }


def accepts(hint: Any) -> str:
    """What may be written after a flag, as in a usage line: `INT >=1`, `tanh|relu`."""
    kind = plain_type(hint)
    if kind in (tuple, dict):
        return _accepts_several(hint, kind)
    return "|".join(_accepts_one(member) for member in union_members(hint))


def _accepts_one(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        ranges = [_range_in_short(note) for note in notes if isinstance(note, Range)]
        return " ".join([accepts(inner), *ranges])
    if get_origin(hint) is Literal:
        return "|".join(str(choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return f"[{accepts(get_args(hint)[0])}, ...]"
    return TYPE_NAMES.get(get_origin(hint) or hint, "VALUE")


def _accepts_several(hint: Any, kind: Any) -> str:
    if kind is dict:
        return "NAME=VALUE ..."
    kinds = item_types(hint)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return f"{accepts(kinds[0])} ..."
    return " ".join(accepts(part) for part in kinds) or "VALUE ..."


def _range_in_short(allowed: Range) -> str:
    if math.isfinite(allowed.high):
        return f"{'>' if allowed.above else ''}{allowed.low:g}..{allowed.high:g}"
    return f"{'>' if allowed.above else '>='}{allowed.low:g}" if allowed.low > -math.inf else ""


def _row(leaf: Leaf) -> Row:
    spelled = flag(leaf.path)
    if plain_type(leaf.hint) is bool and leaf.value is True:
        spelled = "--no-" + spelled[2:]
    comment = comments(leaf.owner).get(leaf.name, "")
    return Row(leaf.section, spelled, accepts(leaf.hint), _default_in_short(leaf.value), comment)


def _default_in_short(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple | list):
        return " ".join(str(part) for part in value) or "empty"
    if isinstance(value, dict):
        return " ".join(f"{key}={part}" for key, part in value.items()) or "empty"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)


def _summary(cls: type[Config]) -> str:
    """The first line of the docstring, but not the signature that Python puts in its place."""
    for owner in cls.__mro__[: cls.__mro__.index(Config)]:
        doc = inspect.cleandoc(vars(owner).get("__doc__") or "")
        if doc and not doc.startswith(f"{owner.__name__}("):
            return doc.split("\n", maxsplit=1)[0]
    return ""


def _table(group: Sequence[Row]) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(width=FLAG_COLUMNS)
    table.add_column(ratio=1)
    for row in group:
        left = Text("  ").append(row.flag, style="bold").append(f" {_broken(row)}", style="dim")
        right = Text(row.comment + (" " if row.comment else ""))
        table.add_row(left, right.append(f"[{row.default}]", style="green"))
    return table


def _broken(row: Row) -> str:
    """What a flag accepts, with places for a line break if it does not fit beside the flag."""
    fits = len(row.flag) + len(row.accepts) + 3 <= FLAG_COLUMNS
    return row.accepts if fits else row.accepts.replace("|", "| ")


def _examples(examples: Sequence[tuple[str, str]]) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    for command, meaning in examples:
        table.add_row(Text(f"  {command}", style="bold"))
        table.add_row(Text(f"      {meaning}", style="dim"))
    return table
