"""What `state_of` reads, `restore` puts back."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from operant.core.state import restore, state_of


def owner(seed: int) -> Any:
    torch.manual_seed(seed)
    return SimpleNamespace(
        module=nn.Linear(2, 1),
        torch_random=torch.Generator().manual_seed(seed),
        random=np.random.default_rng(seed),
        tensor=torch.full((2,), float(seed)),
        array=np.full(2, seed),
        number=seed,
        plain={"a": [seed, 0]},
        pair=(seed, "x"),
        modules={"one": nn.Linear(1, 1), "two": nn.Linear(1, 1)},
        generators={"one": torch.Generator().manual_seed(seed)},
        mixed={"net": nn.Linear(1, 1), "count": seed},
        rngs=[np.random.default_rng(seed), torch.Generator().manual_seed(seed)],
        layers=(nn.Linear(1, 1),),
    )


NAMES = tuple(vars(owner(0)))


def moved(seed: int) -> Any:
    """An owner that was used for a while."""
    made = owner(seed)
    made.random.random(3)
    torch.rand(3, generator=made.torch_random)
    return made


def draws(made: Any) -> list[float]:
    generators = [made.torch_random, made.generators["one"], made.rngs[1]]
    return [
        *(float(torch.rand((), generator=g)) for g in generators),
        float(made.random.random()),
        float(made.rngs[0].random()),
    ]


def restored(seed: int, state: dict[str, Any]) -> Any:
    other = owner(seed)
    restore(other, state, *NAMES)
    return other


def test_generators_go_on_where_they_were() -> None:
    original = moved(1)
    other = restored(2, deepcopy(state_of(original, *NAMES)))
    assert draws(other) == draws(original)


@pytest.mark.parametrize("path", ["module", "modules.one", "modules.two", "mixed.net", "layers.0"])
def test_modules_are_filled_in_place_wherever_they_are(path: str) -> None:
    original, other = owner(1), owner(2)
    before = _at(other, path)
    restore(other, state_of(original, *NAMES), *NAMES)
    assert _at(other, path) is before
    assert before.weight.tolist() == _at(original, path).weight.tolist()


def _at(made: Any, path: str) -> Any:
    name, _, key = path.partition(".")
    found = getattr(made, name)
    return found[int(key) if key.isdigit() else key] if key else found


def test_plain_values_are_replaced_and_keep_their_kind() -> None:
    other = restored(2, state_of(owner(1), *NAMES))
    assert (other.number, other.plain, other.pair) == (1, {"a": [1, 0]}, (1, "x"))
    assert other.mixed["count"] == 1
    assert other.array.tolist() == [1, 1]


def test_a_tensor_keeps_its_place_in_memory() -> None:
    other = owner(2)
    before = other.tensor
    restore(other, state_of(owner(1), "tensor"), "tensor")
    assert other.tensor is before
    assert before.tolist() == [1, 1]


def test_owners_of_the_same_state_do_not_share_it() -> None:
    state = state_of(owner(1), "array", "plain")
    one, two = owner(2), owner(3)
    for made in (one, two):
        restore(made, state, "array", "plain")
    one.array += 5
    one.plain["a"][0] = 9
    assert two.array.tolist() == [1, 1]
    assert two.plain == {"a": [1, 0]}


def test_a_missing_part_is_named() -> None:
    state = state_of(owner(1), "number")
    with pytest.raises(ValueError, match="SimpleNamespace: the saved state lacks array, pair"):
        restore(owner(2), state, "number", "array", "pair")
