"""DQN, DQNPer and RAINBOW over a user's own modules, against updates in plain torch."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from modules import episode
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.frameworks.value_based import DQN, RAINBOW, DQNPer

GAMMA, RATE, TAU = 0.9, 0.1, 0.25
SETTINGS: dict[str, Any] = {
    "discount": GAMMA,
    "learning_rate": RATE,
    "update_rate": TAU,
    "batch_size": 1,
    "replay_size": 100,
}


class QNet(nn.Module):
    """A linear Q-function."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(3, 2)

    def forward(self, state: Tensor) -> Tensor:
        q: Tensor = self.layer(state)
        return q


class Atoms(QNet):
    """Probabilities of five returns for each of two actions, and a hidden result."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.layer = nn.Linear(3, 10)

    def forward(self, state: Tensor) -> Any:
        return self.layer(state).unflatten(-1, (2, 5)).softmax(-1), "hidden"


def made(cls: Any = DQN, **settings: Any) -> Any:
    given = SETTINGS | settings
    return cls(QNet(1), QNet(2), torch.optim.SGD, nn.MSELoss(), **given)


def apart(framework: Any) -> tuple[QNet, QNet]:
    """Let the two networks differ, and copy them."""
    with torch.no_grad():
        framework.qnet.layer.weight.add_(torch.tensor([[0.3, -0.2, 0.1], [-0.4, 0.5, 0.2]]))
    return copy.deepcopy(framework.qnet), copy.deepcopy(framework.qnet_target)


def plain_step(qnet: Any, target: Any, step: dict[str, Any], mode: str) -> None:
    state, after = step["state"]["state"], step["next_state"]["state"]
    with torch.no_grad():
        judge = qnet if mode == "vanilla" else target
        chooser = target if mode == "fixed_target" else qnet
        following = judge(after).gather(1, chooser(after).argmax(1, keepdim=True))
        aim = step["reward"] + GAMMA * (0.0 if step["terminal"] else 1.0) * following
    loss = (qnet(state).gather(1, step["action"]["action"]) - aim).square().mean()
    gradients = torch.autograd.grad(loss, list(qnet.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(qnet.parameters(), gradients, strict=True):
            parameter.sub_(RATE * gradient)
        for own, other in zip(target.parameters(), qnet.parameters(), strict=True):
            own.lerp_(other, TAU)


def same(one: nn.Module, other: nn.Module) -> None:
    torch.testing.assert_close(one.state_dict(), other.state_dict(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("mode", ["vanilla", "fixed_target", "double"])
@pytest.mark.parametrize("cls", [DQN, DQNPer])
def test_an_update_is_the_same_as_in_plain_torch(cls: Any, mode: str, terminal: bool) -> None:
    framework = made(cls, mode=mode)
    qnet, target = apart(framework)
    (step,) = episode(1, terminal)
    framework.store_episode([step])
    framework.update()
    plain_step(qnet, target, step, mode)
    same(framework.qnet, qnet)
    if mode != "vanilla":
        same(framework.qnet_target, target)


def test_models_start_as_their_targets() -> None:
    framework = made()
    same(framework.qnet, QNet(2))


def test_rainbow_takes_the_cross_entropy_to_a_projected_distribution() -> None:
    framework = RAINBOW(Atoms(1), Atoms(2), torch.optim.SGD, -2.0, 2.0, **SETTINGS)
    steps = episode(3, terminal=True)
    for step in steps:
        step["reward"] = 0.5
    framework.store_episode(steps[1:])
    qnet = copy.deepcopy(framework.qnet)
    framework.replay_buffer.memory.prioritize(
        framework.replay_buffer.memory.starts(), torch.tensor([1e9, 0.0])
    )
    framework.reward_future_steps = 2
    loss = framework.update()
    aim = torch.zeros(5)
    aim[2], aim[3] = 0.05, 0.95  # 0.5 + 0.9 · 0.5 = 0.95, between the atoms 0 and 1
    probability = qnet(steps[1]["state"]["state"])[0][0, steps[1]["action"]["action"].item()]
    assert loss == pytest.approx(-(aim * probability.log()).sum().item(), rel=1e-4)


def test_rainbow_acts_by_the_mean_and_passes_on_what_else_there_is() -> None:
    framework = RAINBOW(Atoms(1), Atoms(2), torch.optim.SGD, -2.0, 2.0)
    state = torch.randn(4, 3)
    action, hidden = framework.act_discrete({"state": state})
    values = framework.qnet(state)[0] @ torch.linspace(-2, 2, 5)
    assert action.flatten().tolist() == values.argmax(-1).tolist()
    assert hidden == "hidden"


def test_a_weight_of_zero_leaves_a_sample_out() -> None:
    framework = made(DQNPer, batch_size=50, update_rate=0.0)
    steps = episode(2)
    framework.store_episode(steps)
    memory = framework.replay_buffer.memory
    memory.prioritize(memory.starts(), torch.tensor([1e6, 0.0]))
    qnet, target = copy.deepcopy(framework.qnet), copy.deepcopy(framework.qnet_target)
    framework.batch_size = 1  # drawn by priority: the first
    framework.update()
    plain_step(qnet, target, steps[0], "double")
    same(framework.qnet, qnet)


def test_exploration_is_decided_row_by_row_and_epsilon_decays() -> None:
    framework = made(epsilon_decay=0.5)
    torch.manual_seed(0)
    state = {"state": torch.ones(400, 3)}
    best = framework.act_discrete(state)[0].item()
    framework.epsilon = 0.5
    action = framework.act_discrete_with_noise(state)
    assert action.shape == (400, 1)
    assert (action != best).float().mean().item() == pytest.approx(0.25, abs=0.07)
    assert framework.epsilon == 0.25
    framework.act_discreet_with_noise(state, decay_epsilon=False)
    assert framework.epsilon == 0.25


@pytest.mark.parametrize("switch", ["update_value", "update_target"])
def test_a_switch_leaves_one_network_as_it_is(switch: str) -> None:
    framework = made()
    qnet, target = apart(framework)
    framework.store_episode(episode(2))
    framework.update(**{switch: False})
    moved = [
        not torch.equal(own.layer.weight, before.layer.weight)
        for own, before in ((framework.qnet, qnet), (framework.qnet_target, target))
    ]
    assert moved == [switch == "update_target", switch == "update_value"]


def test_a_target_is_copied_every_so_many_updates() -> None:
    framework = made(update_steps=2, update_rate=None)
    framework.store_episode(episode(3))
    for expected in (False, True, False, True):
        framework.update()
        pair = framework.qnet.layer.weight, framework.qnet_target.layer.weight
        assert torch.equal(*pair) is expected


def test_a_reward_function_of_the_users_own_makes_the_targets() -> None:
    class Own(DQN):
        @staticmethod
        def reward_function(
            reward: Tensor, discount: float, next_value: Tensor, terminal: Tensor, others: Any
        ) -> Tensor:
            assert others["bonus"].shape == reward.shape == terminal.shape
            bonus: Tensor = others["bonus"]
            return bonus * 10.0

    framework = made(Own)
    (step,) = episode(1)
    framework.store_episode([step | {"bonus": 2.0}])
    q = framework.qnet(step["state"]["state"])[0, step["action"]["action"].item()].item()
    assert framework.update() == pytest.approx((q - 20.0) ** 2, rel=1e-4)


def test_files_hold_the_target_and_loading_copies_it(tmp_path: Any) -> None:
    framework, other = made(), made()
    apart(framework)
    framework.qnet_target.layer.weight.data.fill_(3.0)
    framework.save(tmp_path, version=5)
    assert [path.name for path in tmp_path.iterdir()] == ["qnet_target_5.pt"]
    other.load(tmp_path)
    assert (
        other.qnet.layer.weight.mean().item() == other.qnet_target.layer.weight.mean().item() == 3.0
    )


def test_a_loop_that_was_saved_goes_on_exactly() -> None:
    one, other = made(batch_size=2), made(batch_size=2)
    one.store_episode(episode(6))
    one.update()
    one.act_discrete_with_noise({"state": torch.zeros(1, 3)})
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    one.update()
    other.update()
    same(one.qnet, other.qnet)
    assert one.epsilon == other.epsilon


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"mode": "triple"}, "expected one of vanilla, fixed_target, double"),
        ({"update_rate": 0.1, "update_steps": 3}, "give one"),
        ({"batchsize": 3}, "'batchsize' is no setting; did you mean 'batch_size'"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made(**settings)


def test_a_single_transition_is_stored_with_a_warning() -> None:
    framework = made()
    with pytest.warns(UserWarning, match="use store_episode"):
        framework.store_transition(episode(1)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(framework.update(), float)
