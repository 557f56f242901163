"""Rows of a record, `[rows, B, ...]`, read in many places at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import torch

from operant.core import tree
from operant.core.tree import Array
from operant.memory import storage
from operant.memory.rollout import Allocate

SMALL = 256  # bytes: parts of a row up to this size lie side by side


class Ring:
    """Arrays for rows like those of `example`, whose leaves begin `[T, B]`.

    The small parts of a row lie side by side: one gather, and one line of the processor's cache,
    reads them all. `fields` are the arrays by name, to be written.
    """

    def __init__(
        self, example: Mapping[str, Any], rows: int, envs: int, allocate: Allocate = np.zeros
    ) -> None:
        dtype, slots = layout(example)
        packed = allocate((rows, envs), dtype)

        def array(x: Array, slot: str) -> Array:
            return packed[slot] if slot else allocate((rows, envs, *x.shape[2:]), x.dtype)

        self.fields: dict[str, Any] = {k: tree.map(array, v, slots[k]) for k, v in example.items()}
        self._packed = packed.reshape(-1)
        self._sources = {k: tree.map(_source, self.fields[k], slots[k]) for k in example}

    def read(self, places: Array, counts: Mapping[str, int]) -> dict[str, Any]:
        """Tensors `[T, batch, ...]` by name from `places` `[T, batch]`, or from its first `count`.

        A place is a row times B plus an environment; after the last comes the first.
        """
        small = self._packed.take(places, mode="wrap")

        def part(source: Any, count: int | None) -> torch.Tensor:
            if isinstance(source, str):
                return torch.from_numpy(small[source][:count])
            # torch's own index takes images apart into bytes: thirty times as long.
            return torch.from_numpy(source.take(places[:count], axis=0, mode="wrap"))

        taken = {}
        for name, source in self._sources.items():
            count = counts.get(name)
            several = isinstance(source, dict)
            taken[name] = (
                {k: part(x, count) for k, x in source.items()} if several else part(source, count)
            )
        return taken

    def state_dict(self, used: int, save: storage.Save) -> dict[str, Any]:
        """The first `used` rows by name."""
        return {
            name: tree.map(lambda x: save(x[:used]), field) for name, field in self.fields.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        for name, field in self.fields.items():
            tree.map(storage.load, field, state[name])


def layout(example: Mapping[str, Any]) -> tuple[np.dtype[Any], dict[str, Any]]:
    """The type of the small parts of a row, and by leaf its name in there, empty for large ones."""
    names: Iterator[str] = (str(i) for i in range(1 << 30))
    slots = {
        k: tree.map(lambda x: next(names) if _row(x) <= SMALL else "", v)
        for k, v in example.items()
    }
    pairs = [
        (slot, x)
        for (_, slot), (_, x) in zip(tree.leaves(slots), tree.leaves(dict(example)), strict=True)
        if slot
    ]
    # Widest first: no byte is lost between parts.
    pairs.sort(key=lambda pair: -pair[1].dtype.itemsize)
    formats = [(x.dtype, x.shape[2:]) for _, x in pairs]
    names_of = [slot for slot, _ in pairs]
    return np.dtype({"names": names_of, "formats": formats}, align=True), slots


def row_bytes(example: Mapping[str, Any]) -> int:
    """Bytes that one row takes."""
    dtype, _ = layout(example)
    large = (_row(x) for _, x in tree.leaves(dict(example)))
    return dtype.itemsize + sum(size for size in large if size > SMALL)


def _row(x: Array) -> int:
    return int(prod(x.shape[2:]) * x.dtype.itemsize)


def _source(array: Array, slot: str) -> Any:
    """Where to read a leaf: its name among the small parts, or its own array by place."""
    return slot or array.reshape(-1, *array.shape[2:])
