"""Parts by rank, identities, chains and their states."""

import pytest
import torch

from operant.core.errors import UsageError
from operant.core.spaces import Shape
from operant.networks.image import ConvNet
from operant.networks.recurrent import LSTM
from operant.networks.submodule import (
    Chain,
    Identity1D,
    Identity2D,
    Identity3D,
    Identity4D,
    SubModule,
    identity,
    key,
    module_dict,
)
from operant.networks.vector import MLP

SHAPES: list[Shape] = [(), (6,), (6, 5), (6, 4, 3), (6, 5, 4, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_identity_gives_back_what_it_takes(shape: Shape) -> None:
    x = torch.rand(2, *shape)
    y, state = identity(shape)(x, {})
    assert torch.equal(y, x)
    assert state == {}


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_output_shape_is_that_of_the_output(shape: Shape, dim: int) -> None:
    part = identity(shape)
    y, _ = part(torch.rand(2, *shape), {}, dim=dim)
    assert tuple(y.shape[1:]) == part.output_shape(dim)
    assert y.dim() == dim + 1


@pytest.mark.parametrize("kind", [Identity1D, Identity2D, Identity3D, Identity4D])
def test_a_part_refuses_an_input_of_another_rank(kind: type[SubModule]) -> None:
    wrong = (2,) * (kind.rank % 4 + 1)
    with pytest.raises(UsageError, match=f"{kind.__name__}.*expected {kind.rank} sizes"):
        kind(wrong)


def test_rows_of_rank_five_have_no_identity() -> None:
    with pytest.raises(UsageError, match="rank 5; expected at most 4"):
        identity((1, 1, 1, 1, 1))


def test_a_chain_converts_between_its_parts() -> None:
    chain = Chain(ConvNet((2, 5, 5), ((3, 3, 1),)), MLP((27,), (4,)))
    y, _ = chain(torch.rand(7, 2, 5, 5), {})
    assert tuple(y.shape) == (7, 4)
    assert chain.output_shape() == (4,)


def test_a_chain_refuses_parts_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match=r"MLP gives \(8,\).*LSTM takes \(9,\)"):
        Chain(MLP((3,), (8,)), LSTM((9,), 4))


def test_two_memories_in_a_chain_keep_apart() -> None:
    chain = Chain(LSTM((3,), 4), LSTM((4,), 5))
    _, state = chain(torch.rand(2, 3), chain.initial_state(2))
    shapes = {name: tuple(x.shape) for name, x in state.items()}
    assert shapes == {"0.h": (2, 4), "0.c": (2, 4), "1.h": (2, 5), "1.c": (2, 5)}


def test_a_part_takes_doubles_and_whole_numbers_as_its_weights_dtype() -> None:
    part = MLP((3,), (4,))
    x = torch.tensor([[1, 0, 2]])
    expected, _ = part(x.float(), {})
    for dtype in (torch.int64, torch.float64, torch.int8):
        assert torch.equal(part(x.to(dtype), {})[0], expected)
    assert part.double()(x.double(), {})[0].dtype is torch.float64


def test_names_that_torch_forbids_still_name_modules() -> None:
    names = ["inner.image", "keys", "type", "plain"]
    modules = module_dict({name: Identity1D((1,)) for name in names})
    assert list(modules) == [key(name) for name in names] == [*modules.keys()]
    assert len(modules) == 4


def test_names_that_would_be_confused_are_refused() -> None:
    with pytest.raises(UsageError, match="differ only"):
        module_dict({"a.b": Identity1D((1,)), "a/b": Identity1D((1,))})
