"""Statistics of observations: right, saved, and changed only when told."""

import numpy as np
import torch

from operant.networks.normalize import Normalizer


def observed() -> tuple[Normalizer, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, 2.0, (10, 4, 3)).astype(np.float32)
    norm = Normalizer({"a": (3,)})
    for part in np.split(x, 5):
        norm.observe({"a": torch.from_numpy(part), "b": torch.zeros(1)})
    return norm, x


def test_statistics_are_those_of_numpy() -> None:
    norm, x = observed()
    y = norm({"a": torch.from_numpy(x)})["a"]
    flat = x.reshape(-1, 3)
    expected = ((x - flat.mean(0)) / flat.std(0)).clip(-10, 10)
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-4)


def test_rows_that_are_not_valid_are_not_counted() -> None:
    norm = Normalizer({"a": (2,)})
    x = torch.tensor([[[1.0, 2.0], [50.0, 60.0]], [[3.0, 6.0], [torch.nan, 0.0]]])
    norm.observe({"a": x}, torch.tensor([[True, False], [True, False]]))
    statistics = norm.statistics["a"].state_dict()
    assert statistics["mean"].tolist() == [2.0, 4.0]
    assert statistics["count"].item() == 2


def test_looking_changes_nothing_and_leaves_other_observations_alone() -> None:
    norm, x = observed()
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    other = torch.ones(2)
    assert norm({"a": torch.from_numpy(x) * 9, "other": other})["other"] is other
    assert all(torch.equal(before[name], value) for name, value in norm.state_dict().items())


def test_statistics_travel_with_the_weights() -> None:
    norm, x = observed()
    other = Normalizer({"a": (3,)})
    other.load_state_dict(norm.state_dict())
    row = {"a": torch.from_numpy(x[0])}
    assert torch.equal(other(row)["a"], norm(row)["a"])


def test_single_numbers_are_normalised_too() -> None:
    norm = Normalizer({"a": ()})
    norm.observe({"a": torch.tensor([[1.0, 3.0], [1.0, 3.0]])})
    torch.testing.assert_close(norm({"a": torch.tensor([3.0])})["a"], torch.tensor([1.0]))
