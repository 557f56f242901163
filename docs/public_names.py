"""How the API reference reads the source: public names of packages, and comments as documentation.

Griffe reads source without running it. A package lists its public names as imports under
`if TYPE_CHECKING` (`operant/core/lazy.py`), and a setting is explained by the comment behind it;
this tells Griffe of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import griffe

COMMENT = re.compile(r"  # (?!noqa|type:)(.+?)(?:  # noqa.*)?$")


class PublicNames(griffe.Extension):
    """Marks lazily imported names as public, and makes docstrings of comments."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        """Called once, when all modules have been read."""
        for module in modules(pkg):
            if "__getattr__" in module.members and module.exports is None:
                module.exports = [*public_names(module)]
            for owner in (module, *module.classes.values()):
                for member in owner.members.values():
                    if not isinstance(member, griffe.Alias):
                        document(member)
            for owner in module.classes.values():
                for name in [name for name, m in owner.members.items() if internal(m)]:
                    owner.del_member(name)


def modules(package: griffe.Module) -> Iterator[griffe.Module]:
    """The package and all modules below it."""
    yield package
    for module in package.modules.values():
        if not module.is_alias:
            yield from modules(module)


def public_names(package: griffe.Module) -> list[str]:
    """The names that a package imports from its own modules."""
    return [
        name
        for name, member in package.members.items()
        if isinstance(member, griffe.Alias)
        and member.target_path.startswith(f"{package.path}.")
        and name != "lazy_names"
    ]


def internal(member: griffe.Object | griffe.Alias) -> bool:
    """Whether a member of a class says nothing to its user: hooks of Python, plain assignments."""
    if isinstance(member, griffe.Attribute) and member.annotation is None:
        return member.docstring is None
    return bool(member.name.startswith("__") and member.name != "__init__")


def document(member: griffe.Object) -> None:
    """Take the comment behind a definition of one line as its docstring, where it has none."""
    if member.docstring is not None or len(member.lines) != 1:
        return
    comment = COMMENT.search(member.lines[0])
    if comment:
        member.docstring = griffe.Docstring(comment[1], lineno=member.lineno, parent=member)
