"""Returns and advantages against hand-worked numbers and loops in plain Python."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from operant.ops.returns import accumulate, at_stop, discounted, gae, n_step, retrace, vtrace

GAMMA, LAM = 0.9, 0.5


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)[:, None]


def walk(reward: Tensor, next_value: Tensor, discount: Tensor, ended: Tensor, n: int) -> Tensor:
    """The n-step target, one row and column at a time."""
    target = torch.zeros_like(reward)
    for t in range(reward.shape[0]):
        for b in range(reward.shape[1]):
            weight, k = 1.0, t
            while True:
                target[t, b] += weight * reward[k, b]
                weight *= float(discount[k, b])
                if ended[k, b] or k == reward.shape[0] - 1 or k == t + n - 1:
                    break
                k += 1
            target[t, b] += weight * next_value[k, b]
    return target


def trajectory(rows: int, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows)
    reward, next_value = torch.randn(2, rows, size, generator=generator, dtype=torch.float64)
    kind = torch.rand(rows, size, generator=generator)
    terminated, truncated = kind < 0.15, kind > 0.85
    return reward, next_value, GAMMA * (~terminated).double(), terminated | truncated


def test_a_sum_from_the_end_decays_by_each_rows_own_factor() -> None:
    y = accumulate(column(1, 2, 3), column(0.5, 0.1, 7))
    assert y.flatten().tolist() == pytest.approx([1 + 0.5 * 2.3, 2 + 0.1 * 3, 3])


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 8, 128])
def test_a_sum_from_the_end_is_that_of_a_loop_at_every_length(rows: int) -> None:
    x, decay = torch.rand(2, rows, 3, 2, dtype=torch.float64)
    y = accumulate(x, decay)
    tail = torch.zeros(3, 2, dtype=torch.float64)
    for t in reversed(range(rows)):
        tail = x[t] + decay[t] * tail
        torch.testing.assert_close(y[t], tail)


def test_a_sum_from_the_end_leaves_its_input_alone_and_has_a_gradient() -> None:
    x = column(1, 2, 3).requires_grad_()
    accumulate(x, column(0.5, 0.5, 0.5))[0].sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [1, 0.5, 0.25]
    assert x.flatten().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("terminated", "truncated", "expected"),
    [
        (False, False, 1 + GAMMA * 10 - 5 + GAMMA * LAM * (7 + GAMMA * 4 - 2)),  # goes on
        (False, True, 1 + GAMMA * 10 - 5),  # truncated: the next value counts, no later reward
        (True, False, 1 - 5),  # terminated: neither counts
        (True, True, 1 - 5),  # both at once: it terminated
    ],
)
def test_gae_at_an_episode_boundary(terminated: bool, truncated: bool, expected: float) -> None:
    discount = column(GAMMA * (not terminated), GAMMA)
    trace = column(LAM * (not (terminated or truncated)), LAM)
    advantage = gae(column(1, 7), column(5, 2), column(10, 4), discount, trace)
    assert advantage[0].item() == pytest.approx(expected)
    assert advantage[1].item() == pytest.approx(7 + GAMMA * 4 - 2)


def test_gae_without_trace_is_one_step_and_with_full_trace_the_whole_return() -> None:
    reward, next_value, discount, ended = trajectory(9, 4)
    value = torch.cat((torch.zeros_like(next_value[:1]), next_value[:-1]))
    short = gae(reward, value, next_value, discount, torch.zeros_like(reward))
    long = gae(reward, value, next_value, discount, (~ended).double())
    torch.testing.assert_close(short + value, walk(reward, next_value, discount, ended, 1))
    # Values telescope only where the next value is the value of the next row.
    torch.testing.assert_close(long + value, discounted(reward, next_value, discount, ended))


@pytest.mark.parametrize(
    ("n", "terminated", "truncated", "expected"),
    [
        (1, False, False, 1 + GAMMA * 10),  # one reward, then the value beside it
        (2, False, False, 1 + GAMMA * (2 + GAMMA * 20)),  # two
        (3, False, False, 1 + GAMMA * (2 + GAMMA * (3 + GAMMA * 30))),  # three
        (3, False, True, 1 + GAMMA * (2 + GAMMA * 20)),  # cut after the second: its own value
        (3, True, False, 1 + GAMMA * 2),  # terminated at the second: no value
        (9, False, False, 1 + GAMMA * (2 + GAMMA * (3 + GAMMA * (4 + GAMMA * 40)))),  # the end
    ],
)
def test_n_step_from_the_first_row(
    n: int, terminated: bool, truncated: bool, expected: float
) -> None:
    discount = column(GAMMA, GAMMA * (not terminated), GAMMA, GAMMA)
    ended = torch.tensor([[False], [terminated or truncated], [False], [False]])
    target = n_step(column(1, 2, 3, 4), column(10, 20, 30, 40), discount, ended, n)
    assert target[0].item() == pytest.approx(expected)


def test_n_step_uses_fewer_rewards_near_the_end_of_the_sequence() -> None:
    ended = torch.zeros(3, 1, dtype=torch.bool)
    half = column(0.5, 0.5, 0.5)
    target = n_step(column(1, 1, 1), column(8, 8, 8), half, ended, 3)
    assert target.flatten().tolist() == [1.75 + 1, 1.5 + 2, 1 + 4]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("rows", [1, 2, 16])
def test_n_step_is_a_walk_that_stops_at_ends(rows: int, n: int) -> None:
    parts = trajectory(rows, 6)
    torch.testing.assert_close(n_step(*parts, n), walk(*parts, n))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_values_with_a_further_axis_are_walked_one_by_one(n: int) -> None:
    reward, after, discount, ended = trajectory(6, 3)
    several = torch.stack([after, -after, 3 * after], -1)
    found = n_step(reward, several, discount, ended, n)
    for i, one in enumerate(several.unbind(-1)):
        torch.testing.assert_close(found[..., i], n_step(reward, one, discount, ended, n))


@pytest.mark.parametrize(("n", "rows"), [(1, [0, 1, 2, 3, 4]), (2, [1, 2, 2, 4, 4])])
def test_where_a_walk_stops(n: int, rows: list[int]) -> None:
    ended = torch.tensor([[False], [False], [True], [False], [False]])
    x = torch.arange(10.0).view(5, 1, 2)
    assert at_stop(x, ended, n).tolist() == x[rows].tolist()


@pytest.mark.parametrize("rows", [1, 2, 33])
def test_a_discounted_return_is_a_walk_to_the_end(rows: int) -> None:
    parts = trajectory(rows, 6)
    torch.testing.assert_close(discounted(*parts), walk(*parts, rows))


def slow_vtrace(
    ratio: Tensor, reward: Tensor, value: Tensor, after: Tensor, discount: Tensor, cut: Tensor
) -> Tensor:
    """The sum of eq. 1 of the paper, one error at a time, with ratios cut at 1.2 and 0.8."""
    target = value.clone()
    rows, columns = reward.shape
    for t in range(rows):
        for b in range(columns):
            carried = 1.0
            for s in range(t, rows):
                error = reward[s, b] + discount[s, b] * after[s, b] - value[s, b]
                target[t, b] += carried * min(1.2, float(ratio[s, b])) * error
                carried *= float(discount[s, b]) * min(0.8, float(ratio[s, b]))
                if cut[s, b]:
                    break
    return target


def test_vtrace_is_the_sum_of_the_paper() -> None:
    reward, after, discount, cut = trajectory(9, 4)
    generator = torch.Generator().manual_seed(2)
    value, log_ratio = torch.randn(2, 9, 4, generator=generator, dtype=torch.float64)
    # What follows a step is the next row's, unless the episode was cut there.
    after = torch.where(cut, after, torch.cat((value[1:], after[-1:])))
    target, q = vtrace(log_ratio, reward, value, after, discount, (~cut).double(), 1.2, 0.8)
    expected = slow_vtrace(log_ratio.exp(), reward, value, after, discount, cut)
    torch.testing.assert_close(target, expected)
    following = torch.where(cut, after, torch.cat((expected[1:], after[-1:])))
    torch.testing.assert_close(q, reward + discount * following)


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_vtrace_of_the_policys_own_actions_is_gae(lam: float) -> None:
    reward, after, discount, cut = trajectory(7, 3)
    value = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    after = torch.where(cut, after, torch.cat((value[1:], after[-1:])))
    trace = lam * (~cut).double()
    target, q = vtrace(torch.zeros_like(reward), reward, value, after, discount, trace)
    expected = gae(reward, value, after, discount, trace)
    torch.testing.assert_close(target, value + expected)
    torch.testing.assert_close(q, value + expected)


def test_vtrace_of_the_policys_own_actions_is_the_return() -> None:
    reward, after, discount, cut = trajectory(7, 3)
    value = torch.cat((torch.zeros_like(after[:1]), after[:-1]))
    trace = (~cut).double()
    target, q = vtrace(torch.zeros_like(reward), reward, value, after, discount, trace)
    expected = walk(reward, after, discount, cut, 7)
    torch.testing.assert_close(target, expected)
    torch.testing.assert_close(q, expected)


def test_an_action_that_became_unlikely_leaves_the_value_and_carries_nothing_back() -> None:
    target, q = vtrace(
        column(0.0, -1e9), column(0.0, 5.0), column(1.0, 2.0), column(2.0, 0.0),
        column(GAMMA, GAMMA), column(1.0, 1.0),
    )  # fmt: skip
    assert target.flatten().tolist() == pytest.approx([GAMMA * 2, 2])
    assert q.flatten().tolist() == pytest.approx([GAMMA * 2, 5])


def slow_retrace(
    ratio: Tensor, reward: Tensor, q: Tensor, after: Tensor, discount: Tensor, cut: Tensor
) -> Tensor:
    """The sum of the paper (arXiv:1606.02647, eq. 3), one error at a time."""
    target = q.clone()
    rows, columns = reward.shape
    for t in range(rows):
        for b in range(columns):
            carried = 1.0
            for s in range(t, rows):
                target[t, b] += carried * (reward[s, b] + discount[s, b] * after[s, b] - q[s, b])
                if cut[s, b] or s == rows - 1:
                    break
                carried *= float(discount[s, b]) * min(1.0, float(ratio[s + 1, b]))
    return target


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_retrace_is_the_sum_of_the_paper(rows: int) -> None:
    reward, after, discount, cut = trajectory(rows, 4)
    generator = torch.Generator().manual_seed(3)
    q, log_ratio = torch.randn(2, rows, 4, generator=generator, dtype=torch.float64)
    target = retrace(log_ratio, reward, q, after, discount, (~cut).double())
    torch.testing.assert_close(
        target, slow_retrace(log_ratio.exp(), reward, q, after, discount, cut)
    )


def test_retrace_carries_a_later_error_back_by_that_rows_own_ratio() -> None:
    ratio, ones = column(8, 0.5, 4), column(1, 1, 1)
    q, after = column(0, 7, 9), column(10, 20, 30)
    target = retrace(ratio.log(), column(1, 2, 4), q, after, GAMMA * ones, ones)
    last = 4 + GAMMA * 30
    middle = 2 + GAMMA * (20 + 1.0 * (last - 9))  # not four times
    first = 1 + GAMMA * (10 + 0.5 * (middle - 7))
    assert target.flatten().tolist() == pytest.approx([first, middle, last])


def test_retrace_of_the_policys_own_actions_is_the_return_where_q_is_the_value() -> None:
    reward, after, discount, cut = trajectory(7, 3)
    q = torch.cat((torch.zeros_like(after[:1]), after[:-1]))
    target = retrace(torch.zeros_like(q), reward, q, after, discount, (~cut).double())
    torch.testing.assert_close(target, discounted(reward, after, discount, cut))


def test_of_one_step_retrace_and_vtrace_ask_the_same_of_an_action_whatever_the_ratio() -> None:
    reward, after, discount, cut = trajectory(1, 8)
    generator = torch.Generator().manual_seed(5)
    log_ratio, q, value = torch.randn(3, 1, 8, generator=generator, dtype=torch.float64)
    trace = (~cut).double()
    by_retrace = retrace(log_ratio, reward, q, after, discount, trace)
    _, by_vtrace = vtrace(log_ratio, reward, value, after, discount, trace)
    torch.testing.assert_close(by_retrace, reward + discount * after)
    torch.testing.assert_close(by_retrace, by_vtrace)
