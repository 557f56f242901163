"""Running statistics are those of everything seen at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.networks.normalize import RunningStatistics


def seen(
    sizes: list[int],
) -> tuple[RunningStatistics, np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
    data = np.random.default_rng(0).normal(3, [1, 20], (sum(sizes), 2)).astype(np.float32)
    statistics = RunningStatistics((2,))
    for batch in np.split(data, np.cumsum(sizes)[:-1]):
        statistics.update(torch.from_numpy(batch))
    return statistics, data


@pytest.mark.parametrize("sizes", [[100], [1, 99], [7] * 30, [1] * 50, [0, 5, 0, 45]])
def test_mean_and_variance_equal_those_of_numpy(sizes: list[int]) -> None:
    statistics, data = seen(sizes)
    assert np.allclose(statistics.mean.numpy(), data.mean(0), rtol=1e-4)
    assert np.allclose(statistics.variance.numpy(), data.var(0), rtol=1e-4)
    assert float(statistics.count) == sum(sizes)


def test_normalize_is_in_standard_deviations_and_cut() -> None:
    statistics = RunningStatistics((1,))
    statistics.update(torch.tensor([[0.0], [4.0]]))
    out = statistics.normalize(torch.tensor([[2.0], [6.0], [1e6], [-1e6]]))
    assert out.squeeze(-1).tolist() == pytest.approx([0, 2, 10, -10])


def test_nothing_seen_changes_nothing() -> None:
    x = torch.tensor([0.5, -0.5])
    assert RunningStatistics((2,)).normalize(x).tolist() == pytest.approx([0.5, -0.5])


def test_integers_are_taken_as_numbers() -> None:
    statistics = RunningStatistics((1,))
    statistics.update(torch.tensor([[1], [2], [6]]))
    assert float(statistics.mean) == pytest.approx(3)
    assert float(statistics.variance) == pytest.approx(14 / 3)


def test_its_state_travels_as_buffers_and_not_as_parameters() -> None:
    statistics, _ = seen([10])
    copy = RunningStatistics((2,))
    copy.load_state_dict(statistics.state_dict())
    assert copy.mean.tolist() == statistics.mean.tolist()
    assert float(copy.count) == 10
    assert not list(copy.parameters())
