"""Operations over nested arrays: dicts, tuples, lists and named tuples of NumPy arrays or tensors.

`None` is an empty place and stays one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]
Tree = Any  # a leaf, or a dict, list, tuple or named tuple of trees
T = TypeVar("T")  # a tree that keeps its kind


def map(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """Apply `function` to each leaf of `tree` and the leaves at the same place of `others`."""
    kind = type(tree)
    if kind is Tensor or kind is np.ndarray:  # most are: no need to ask what else it might be
        return function(tree, *others)
    if tree is None:
        return None
    if isinstance(tree, dict):
        parts = {k: map(function, v, *[o[k] for o in others]) for k, v in tree.items()}
        return parts if kind is dict else kind(parts)
    if isinstance(tree, (tuple, list)):
        # Iteration, not indexing: a namedarraytuple's index reaches into its fields.
        mapped = [map(function, *parts) for parts in zip(tree, *others, strict=True)]
        return kind(*mapped) if hasattr(tree, "_fields") else kind(mapped)
    return function(tree, *others)


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each leaf with its path, such as `observation.image`."""
    if tree is None:
        return
    if isinstance(tree, dict):
        items = list(tree.items())
    elif hasattr(tree, "_fields"):
        items = list(zip(tree._fields, tree, strict=True))
    elif isinstance(tree, tuple | list):
        items = [(str(i), part) for i, part in enumerate(tree)]
    else:
        yield path, tree
        return
    for name, part in items:
        yield from leaves(part, f"{path}.{name}" if path else str(name))


def index(tree: T, location: Any) -> T:
    """`tree[location]` in every leaf; both have the same structure."""
    found: T = map(lambda x: x[location], tree)
    return found


def write(tree: Tree, location: Any, value: Tree) -> None:
    """`tree[location] = value` in every leaf; both have the same structure."""
    map(lambda target, source: target.__setitem__(location, source), tree, value)


def numpy(tree: Tree) -> Tree:
    """The same bytes, seen by NumPy."""
    return map(lambda x: x.numpy() if isinstance(x, Tensor) else x, tree)


def tensors(tree: Tree) -> Tree:
    """The same bytes, seen by torch."""
    return map(lambda x: torch.from_numpy(x) if isinstance(x, np.ndarray) else x, tree)


def to(tree: T, device: torch.device) -> T:
    """Every tensor on `device`; no copy where it is there already."""
    there: T = map(lambda x: x if x.device == device else x.to(device, non_blocking=True), tree)
    return there
