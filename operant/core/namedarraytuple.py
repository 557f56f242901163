"""Named tuples whose index reaches into every field, so that a record slices like one array."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from operant.core import tree

RESERVED = ("get", "items")


class ArrayTuple:
    """What `namedarraytuple` adds to a named tuple; mix it in before the tuple itself."""

    __slots__ = ()
    _fields: tuple[str, ...]

    def __getitem__(self, location: Any) -> Any:
        """A record of the same type holding `field[location]` of every field; None stays None."""
        return type(self)(*(_at(name, part, location) for name, part in self.items()))

    def __setitem__(self, location: Any, value: Any) -> None:
        """Write a record of the same fields, or one value into every field; None is skipped."""
        parts = self._parts_of(value)
        for (name, target), part in zip(self.items(), parts, strict=True):
            try:
                _write(target, location, part)
            except (IndexError, TypeError, ValueError, RuntimeError, KeyError) as error:
                raise type(error)(f"{type(self).__name__}.{name}[{location!r}]: {error}") from error

    def _parts_of(self, value: Any) -> Iterable[Any]:
        fields = getattr(value, "_fields", None)
        if fields is None and not isinstance(value, dict):
            return (value,) * len(self._fields)
        names = tuple(fields if fields is not None else value)
        if set(names) != set(self._fields):
            raise ValueError(f"expected the fields {self._fields}, not {names}")
        if fields is None:
            return (value[name] for name in self._fields)
        return (getattr(value, name) for name in self._fields)

    def __contains__(self, name: object) -> bool:
        """Whether there is a field of this name."""
        return name in self._fields

    def get(self, position: int) -> Any:
        """The field at `position`, as indexing a plain tuple would give it."""
        return getattr(self, self._fields[position])

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs of field name and field."""
        return ((name, getattr(self, name)) for name in self._fields)


def namedarraytuple(typename: str, field_names: str | Sequence[str]) -> Any:
    """A named tuple type whose instances index, slice and assign through all their fields."""
    names = field_names.replace(",", " ").split() if isinstance(field_names, str) else field_names
    for name in RESERVED:
        if name in names:
            raise ValueError(f"{typename}: a field may not be named {name!r}, which is a method")
    base = namedtuple(typename, names)  # type: ignore[misc]  # fields known at run time
    return type(typename, (ArrayTuple, base), {"__slots__": (), "__module__": __name__})


def _at(name: str, part: Any, location: Any) -> Any:
    try:
        if isinstance(part, dict):
            return tree.index(part, location)
        return None if part is None else part[location]
    except IndexError as error:
        raise IndexError(f"field {name!r}: {error}") from error


def _write(target: Any, location: Any, part: Any) -> None:
    if target is None or part is None:
        return
    if isinstance(target, dict):
        if isinstance(part, dict) and set(part) != set(target):
            raise ValueError(f"expected the names {tuple(target)}, not {tuple(part)}")
        for name, inner in target.items():
            _write(inner, location, part[name] if isinstance(part, dict) else part)
    else:
        target[location] = part
