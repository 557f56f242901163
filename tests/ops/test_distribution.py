"""Products over named actions, and the masks that observations carry."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces as gs
from torch import Generator, Tensor

from operant.core.errors import UsageError
from operant.core.spaces import Space
from operant.ops.categorical import Categorical, MultiCategorical
from operant.ops.distribution import POLICY, distribution_for, masks_of
from operant.ops.gaussian import Gaussian
from operant.ops.reparameterized import SquashedGaussian, noise_for, rsample

SPACES: dict[str, Space] = {
    "move": gs.Discrete(4, start=2),
    "arms": gs.MultiDiscrete([2, 3]),
    "keys": gs.MultiBinary(2),
    "aim": gs.Box(-1, 1, (2,), np.float32),
}


def some_params(*leading: int, seed: int = 0) -> dict[str, Tensor]:
    generator = Generator().manual_seed(seed)
    shapes = distribution_for(SPACES).outputs
    return {n: torch.randn(*leading, *shape, generator=generator) for n, shape in shapes.items()}


def test_each_space_has_its_distribution() -> None:
    parts = distribution_for(SPACES).parts
    assert parts["move"] == Categorical(4)
    assert parts["arms"] == MultiCategorical((2, 3))
    assert parts["keys"] == MultiCategorical((2, 2))
    assert parts["aim"] == Gaussian((2,))
    assert distribution_for(SPACES, SquashedGaussian).parts["aim"] == SquashedGaussian((2,))


def test_the_network_is_told_how_many_numbers_each_action_needs() -> None:
    shapes = distribution_for(SPACES).outputs
    assert shapes == {
        "policy.move": (4,),
        "policy.arms": (5,),
        "policy.keys": (4,),
        "policy.aim": (4,),
    }


def test_a_space_without_a_distribution_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="action 'word': no distribution over Text"):
        distribution_for({"word": gs.Text(5)})


def test_a_product_sums_its_parts_and_passes_each_its_mask() -> None:
    product, p, q = distribution_for(SPACES), some_params(3, 4), some_params(3, 4, seed=1)
    masks = {"move": torch.tensor([True, False, True, False]).expand(3, 4, 4)}
    action = product.sample(p, masks, Generator())
    log_prob, entropy, kl = torch.zeros(3, 3, 4)
    for name, part in product.parts.items():
        log_prob += part.log_prob(p[POLICY + name], action[name], masks.get(name))
        entropy += part.entropy(p[POLICY + name], masks.get(name))
        kl += part.kl(p[POLICY + name], q[POLICY + name], masks.get(name))
    torch.testing.assert_close(product.log_prob(p, action, masks), log_prob)
    torch.testing.assert_close(product.evaluate(p, action, masks), (log_prob, entropy))
    torch.testing.assert_close(product.kl(p, q, masks), kl)
    assert (action["move"] % 2).sum() == 0


def test_actions_come_by_name_in_record_units() -> None:
    product, params = distribution_for(SPACES, SquashedGaussian), some_params(500)
    action = product.sample(params, {}, Generator())
    shapes = {name: tuple(x.shape[1:]) for name, x in action.items()}
    assert shapes == {"move": (), "arms": (2,), "keys": (2,), "aim": (2,)}
    assert set(action["move"].tolist()) == {0, 1, 2, 3}
    assert action["aim"].abs().max() < 1


def test_the_mode_of_a_product_is_the_mode_of_each_part() -> None:
    params, forbidden = some_params(5), torch.tensor([[False, True, True, True]]).expand(5, 4)
    params["policy.move"][:, 0] = 9.0
    mode = distribution_for(SPACES).mode(params, {"move": forbidden})
    assert torch.equal(mode["move"], params["policy.move"][:, 1:].argmax(-1) + 1)
    assert torch.equal(mode["aim"], params["policy.aim"][:, :2])


def test_a_pathwise_draw_of_several_boxes_has_the_sum_of_their_log_densities() -> None:
    boxes: dict[str, Space] = {"a": gs.Box(-1, 1, (2,)), "b": gs.Box(-1, 1, ())}
    product = distribution_for(boxes, SquashedGaussian)
    params = {"policy.a": torch.zeros(3, 4), "policy.b": -torch.ones(3, 2)}
    action, log_prob = rsample(product, params, noise_for(product, (3,), Generator()))
    assert action["b"].shape == (3,)
    torch.testing.assert_close(log_prob, product.log_prob(params, action, {}))


def test_a_pathwise_draw_of_a_discrete_action_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="action 'move': a draw from Categorical"):
        noise_for(distribution_for(SPACES), (1,), Generator())


def test_one_action_has_the_plain_mask() -> None:
    observation = {"x": torch.zeros(2), "action_mask": torch.tensor([1, 0], dtype=torch.int8)}
    mask = masks_of(observation, ["go"])["go"]
    assert mask.dtype == torch.bool
    assert mask.tolist() == [True, False]


def test_several_actions_have_masks_by_name_and_the_others_none() -> None:
    observation = {"action_mask.arms": torch.ones(5), "x": torch.zeros(2)}
    assert list(masks_of(observation, SPACES)) == ["arms"]
    assert masks_of({"x": torch.zeros(2)}, SPACES) == {}


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("action_mask.arm", "did you mean 'action_mask.arms'"), ("action_mask", "action_mask.")],
)
def test_a_mask_over_no_action_is_refused_by_name(name: str, remedy: str) -> None:
    with pytest.raises(
        UsageError, match=f"observation '{name}' is a mask over no action.*{remedy}"
    ):
        masks_of({name: torch.ones(5)}, SPACES)


def test_an_action_may_be_called_as_other_outputs_are() -> None:
    spaces: dict[str, Space] = {"value": gs.Discrete(2), "policy": gs.Discrete(3)}
    assert distribution_for(spaces).outputs == {"policy.value": (2,), "policy.policy": (3,)}


def test_a_free_standard_deviation_is_an_output_of_its_own() -> None:
    free = distribution_for(SPACES, free_std=True)
    assert free.outputs["policy.aim"] == free.outputs["log_std.aim"] == (2,)
    assert free.outputs["policy.move"] == (4,)
    assert [name for name in free.outputs if name.startswith("log_std.")] == ["log_std.aim"]
    out = some_params(3)
    mean, log_std = out["policy.aim"][:, :2], out["policy.aim"][:, 2:]
    apart = out | {"policy.aim": mean, "log_std.aim": log_std}
    action = free.sample(apart, {}, Generator())
    joined = distribution_for(SPACES)
    assert all(x.equal(joined.sample(out, {}, Generator())[n]) for n, x in action.items())
    expected = joined.evaluate(out, action, {})
    torch.testing.assert_close(free.evaluate(apart, action, {}), expected)
