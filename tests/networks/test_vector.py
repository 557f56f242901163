"""Fully connected layers and the memory: a sequence is its steps, one after another."""

import pytest
import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import HiddenState
from operant.networks.recurrent import LSTM
from operant.networks.vector import MLP

T, B, F, H = 12, 5, 3, 7


def stepwise(
    lstm: LSTM, x: Tensor, state: HiddenState, first: Tensor
) -> tuple[Tensor, HiddenState]:
    """The slow reference: one moment after another, reset before each."""
    results = []
    for t in range(T):
        y, carried = lstm(x[t], state.reset(first[t]))
        state = HiddenState(carried)
        results.append(y)
    return torch.stack(results), state


def memory() -> tuple[LSTM, Tensor, HiddenState]:
    torch.manual_seed(0)
    state = HiddenState({"h": torch.randn(B, H), "c": torch.randn(B, H)})
    return LSTM((F,), H), torch.randn(T, B, F), state


def test_an_mlp_is_its_layers() -> None:
    torch.manual_seed(0)
    mlp = MLP((4,), (8, 6), "relu")
    a, b = (layer for layer in mlp.layers if isinstance(layer, nn.Linear))
    x = torch.randn(3, 4)
    torch.testing.assert_close(mlp(x, {})[0], b(a(x).relu()).relu())
    assert mlp.output_shape() == (6,)


def test_an_mlp_without_sizes_is_its_input() -> None:
    mlp = MLP((4,), ())
    assert mlp.output_shape() == (4,)
    assert torch.equal(mlp(torch.ones(2, 4), {})[0], torch.ones(2, 4))


def test_an_mlp_refuses_an_empty_layer_and_an_unknown_activation() -> None:
    with pytest.raises(UsageError, match=r"sizes \(64, 0\)"):
        MLP((4,), (64, 0))
    with pytest.raises(UsageError, match="did you mean 'tanh'"):
        MLP((4,), (64,), "tan")  # type: ignore[arg-type]  # what a user may type


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 1.0])
def test_a_sequence_with_resets_equals_its_steps(share: float) -> None:
    lstm, x, state = memory()
    first = torch.rand(T, B) < share
    y, carried = lstm(x.flatten(0, 1), state, first)
    expected, last = stepwise(lstm, x, state, first)
    torch.testing.assert_close(y.view(T, B, H), expected, atol=1e-6, rtol=0)
    for name in ("h", "c"):
        torch.testing.assert_close(carried[name], last[name], atol=1e-6, rtol=0)


def test_gradients_through_a_sequence_equal_those_through_its_steps() -> None:
    lstm, x, state = memory()
    first = torch.rand(T, B) < 0.2
    weights = list(lstm.parameters())
    one = torch.autograd.grad(lstm(x.flatten(0, 1), state, first)[0].square().sum(), weights)
    other = torch.autograd.grad(stepwise(lstm, x, state, first)[0].square().sum(), weights)
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_a_sequence_without_first_never_resets() -> None:
    lstm, x, state = memory()
    y, _ = lstm(x.flatten(0, 1), state)
    expected, _ = stepwise(lstm, x, state, torch.zeros(T, B, dtype=torch.bool))
    torch.testing.assert_close(y.view(T, B, H), expected, atol=1e-6, rtol=0)


def test_a_step_is_that_of_torchs_cell() -> None:
    lstm, x, state = memory()
    cell = nn.LSTMCell(F, H)
    cell.load_state_dict({name[:-3]: w for name, w in lstm.core.state_dict().items()})
    y, carried = lstm(x[0], state)
    h, c = cell(x[0], (state["h"], state["c"]))
    torch.testing.assert_close(torch.stack([y, carried["c"]]), torch.stack([h, c]))


def test_what_an_episode_before_left_behind_does_not_leak() -> None:
    lstm, x, state = memory()
    first = torch.ones(B, dtype=torch.bool)
    poisoned = {name: torch.full_like(s, torch.nan) for name, s in state.items()}
    fresh, _ = lstm(x[0], lstm.initial_state(B))
    assert torch.equal(lstm(x[0], poisoned, first)[0], fresh)


def test_a_state_for_another_number_of_rows_is_refused() -> None:
    lstm, x, _ = memory()
    with pytest.raises(UsageError, match="5 rows of input but 3 rows of state"):
        lstm(x[0], lstm.initial_state(3))


def test_a_memory_of_no_size_is_refused() -> None:
    with pytest.raises(UsageError, match="size 0"):
        LSTM((F,), 0)


def test_a_fresh_state_has_the_type_of_the_weights() -> None:
    lstm, x, _ = memory()
    y, _ = lstm.double()(x[0].double(), lstm.initial_state(B))
    assert y.dtype is torch.float64
    assert not lstm.initial_state(B)["h"].requires_grad
