"""DDPG, DDPGPer, HDDPG and TD3 over a user's own modules, against updates in plain torch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.frameworks.deterministic_policy import DDPG, HDDPG, TD3, DDPGPer

GAMMA, RATE, TAU = 0.9, 0.1, 0.25
SETTINGS: dict[str, Any] = {
    "discount": GAMMA,
    "actor_learning_rate": RATE,
    "critic_learning_rate": RATE,
    "update_rate": TAU,
    "replay_size": 100,
}


class Actor(nn.Module):
    """Two dimensions within [-1, 1]."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(3, 2)

    def forward(self, state: Tensor) -> Tensor:
        return torch.tanh(self.layer(state))


class Critic(nn.Module):
    """A value of a state and an action."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(5, 1)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        return self.layer(torch.cat([state, action], -1)).sin()  # type: ignore[no-any-return]


class Still(TD3):
    """Without noise on the actions in targets."""

    @staticmethod
    def policy_noise_function(actions: Tensor, *_: Any) -> Tensor:
        return actions


def steps(count: int, terminal: bool = True) -> list[dict[str, Any]]:
    torch.manual_seed(4)
    states, actions = torch.randn(count + 1, 1, 3), torch.rand(count, 1, 2) * 2 - 1
    return [
        {
            "state": {"state": states[t]},
            "action": {"action": actions[t]},
            "next_state": {"state": states[t + 1]},
            "reward": float(t) - 0.5,
            "terminal": terminal and t == count - 1,
        }
        for t in range(count)
    ]


def made(cls: Any = DDPG, **settings: Any) -> Any:
    twins = [Critic(5), Critic(6)] if issubclass(cls, TD3) else []
    models = [Actor(1), Actor(2), Critic(3), Critic(4), *twins]
    framework = cls(*models, torch.optim.SGD, nn.MSELoss(), **SETTINGS | settings)
    with torch.no_grad():  # online networks and their targets differ from now on
        for name in framework._pairs.values():
            for parameter in getattr(framework, name).parameters():
                parameter.add_(0.1)
    return framework


def plain_update(models: dict[str, Any], episode: list[dict[str, Any]], rates: Any) -> None:
    """One update on all steps of an episode."""
    state, after = (torch.cat([s[k]["state"] for s in episode]) for k in ("state", "next_state"))
    action = torch.cat([s["action"]["action"] for s in episode])
    reward, alive = (
        torch.tensor([[float(f(s))] for s in episode])
        for f in (lambda s: s["reward"], lambda s: not s["terminal"])
    )
    critics: list[str] = [name for name in ("critic", "critic2") if name in models]
    with torch.no_grad():
        following = models["actor_target"](after)
        values = [models[f"{name}_target"](after, following) for name in critics]
        target = reward + GAMMA * alive * torch.stack(values).amin(0)
    losses = []
    for name in critics:
        q = models[name](state, action)
        error = target - q.detach()
        aim = q.detach() + torch.where(error > 0, *map(float, rates)) * error
        losses.append((q - aim).square().mean())
    for name, loss in zip(critics, losses, strict=True):
        descend(models[name], loss)
    descend(models["actor"], -models["critic"](state, models["actor"](state)).mean())
    with torch.no_grad():
        for name in ["actor", *critics]:
            both = (models[f"{name}_target"].parameters(), models[name].parameters())
            for own, other in zip(*both, strict=True):
                own.lerp_(other, TAU)


def descend(module: nn.Module, loss: Tensor) -> None:
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.sub_(RATE * gradient)


def check_same(framework: Any, models: dict[str, Any]) -> None:
    for name, model in models.items():
        own = getattr(framework, name).state_dict()
        torch.testing.assert_close(own, model.state_dict(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    ("cls", "settings", "rates"),
    [
        (DDPG, {}, (1, 1)),
        (HDDPG, {}, (1, 1)),
        (HDDPG, {"q_increase_rate": 0.7, "q_decrease_rate": 0.2}, (0.7, 0.2)),
        (Still, {"policy_delay": 1}, (1, 1)),
    ],
)
def test_an_update_is_the_same_as_in_plain_torch(
    cls: Any, settings: dict[str, Any], rates: Any, terminal: bool, monkeypatch: Any
) -> None:
    framework, episode = made(cls, batch_size=5, **settings), steps(5, terminal)
    models = {name: copy.deepcopy(getattr(framework, name)) for name in framework._is_top}
    framework.store_episode(episode)
    draw = framework.replay_buffer.draw
    monkeypatch.setattr(framework.replay_buffer, "draw", lambda n: draw(n, method="all"))
    framework.update()
    plain_update(models, episode, rates)
    check_same(framework, models)


def test_the_priority_is_the_error_of_the_action_taken() -> None:
    framework, episode = made(DDPGPer, batch_size=1, update_rate=0.0), steps(1)
    framework.store_episode(episode)
    error = framework._criticize(episode[0]["state"], episode[0]["action"]) - episode[0]["reward"]
    framework.update()
    memory = framework.replay_buffer.memory
    expected = (abs(error.item()) + 1e-6) ** 0.6
    assert memory.tree.weights[memory.starts()[0]] == pytest.approx(expected, rel=1e-5)


def test_a_delayed_policy_learns_at_every_second_update_that_asks_for_it() -> None:
    framework = made(TD3, batch_size=2)
    framework.store_episode(steps(4))
    moved = []
    for asks in (True, False, True, True, True):
        before = framework.actor.layer.weight.clone()
        framework.update(update_policy=asks)
        moved.append(not torch.equal(before, framework.actor.layer.weight))
    assert moved == [False, False, True, False, True]


def test_switches_leave_models_as_they_are() -> None:
    framework = made(batch_size=2)
    framework.store_episode(steps(3))
    before = {name: copy.deepcopy(getattr(framework, name)) for name in framework._is_top}
    policy, value = framework.update(False, False, False)
    check_same(framework, before)
    assert (type(policy), type(value)) == (float, float)


@pytest.mark.parametrize(
    ("mode", "parameters", "low", "high"),
    [
        ("uniform", (0.5, 1.0), 0.5, 1.0),
        ("uniform", [(0.0, 0.1), (0.2, 0.3)], 0.0, 0.3),
        ("clipped_normal", (0.0, 9.0, -0.2, 0.1), -0.2, 0.1),
        ("normal", (3.0, 1e-3), 2.9, 3.1),
        ("ou", (0.0, 1e-3), -0.1, 0.1),
    ],
)
def test_noise_is_of_the_kind_that_was_asked_for(
    mode: str, parameters: Any, low: float, high: float
) -> None:
    framework, state = made(), {"state": torch.randn(500, 3)}
    noisy = framework.act_with_noise(state, parameters, mode=mode)
    drawn = noisy - framework.act(state)
    assert low - 1e-6 <= drawn.min() < drawn.max() <= high + 1e-6
    assert drawn[0, 0] != drawn[1, 0]


def test_a_process_goes_on_from_call_to_call_and_is_saved() -> None:
    framework, other = made(), made()
    state = {"state": torch.zeros(1, 3)}
    param = {"mu": 1.0, "sigma": 0.0, "theta": 0.5}
    drawn = [framework.act_with_noise(state, param, mode="ou") - framework.act(state) for _ in "ab"]
    assert [x[0, 0].item() for x in drawn] == pytest.approx([0.5, 0.75])
    framework.store_episode(steps(1))
    other.store_episode(steps(1))
    other.load_state_dict(framework.state_dict())
    drawn = [other.act_with_noise(state, param, mode="ou") - other.act(state)]
    assert drawn[0][0, 0].item() == pytest.approx(0.875)


def test_bad_noise_is_named() -> None:
    with pytest.raises(UsageError, match="expected one of uniform, normal, clipped_normal, ou"):
        made().act_with_noise({"state": torch.zeros(1, 3)}, mode="pink")
    with pytest.raises(UsageError, match="expected 2 numbers for normal noise, or a list of 2"):
        made().act_with_noise({"state": torch.zeros(1, 3)}, (1.0, 2.0, 3.0), mode="normal")


def test_a_discrete_actor_chooses_row_by_row() -> None:
    framework = made()
    framework.actor = nn.Sequential(nn.Linear(3, 2), nn.Softmax(-1))
    state = {"input": torch.randn(400, 3)}
    action, probability = framework.act_discrete(state)
    assert torch.equal(action, probability.argmax(-1, keepdim=True))
    noisy, same = framework.act_discreet_with_noise(state, choose_max_prob=0.0)
    assert torch.equal(same, probability)
    assert 0.1 < (noisy != action).float().mean() < 0.5


def test_the_actor_learns_from_every_row() -> None:
    framework, seen = made(batch_size=4), []
    framework.critic.register_forward_hook(lambda m, i, out: seen.append(len(out)))
    framework.store_episode(steps(6))
    framework.update()
    assert seen == [4, 4]
