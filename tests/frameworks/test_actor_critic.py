"""A2C and PPO over a user's own modules, against the same update written out in plain torch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from modules import Actor, Critic, episode
from torch import nn

from operant.frameworks.actor_critic import A2C, PPO

GAMMA, LAM, RATE = 0.9, 0.8, 0.1
SETTINGS: dict[str, Any] = {
    "discount": GAMMA,
    "gae_lambda": LAM,
    "batch_size": None,
    "actor_learning_rate": RATE,
    "critic_learning_rate": RATE,
    "entropy_weight": -0.01,
    "normalize_advantage": False,
}
EPISODES = [episode(4), episode(3, terminal=False, seed=5)]


def columns(steps: list[dict[str, Any]]) -> tuple[torch.Tensor, ...]:
    state, action = (torch.cat([s[k][k] for s in steps]) for k in ("state", "action"))
    return state, action, torch.cat([s["next_state"]["state"] for s in steps])


def plain_advantages(critic: nn.Module, steps: list[dict[str, Any]]) -> list[float]:
    """Generalised advantages by a loop; what did not terminate is bootstrapped."""
    state, _, after = columns(steps)
    value, later = critic(state).flatten().tolist(), critic(after).flatten().tolist()
    found, trace = [], 0.0
    for t in reversed(range(len(steps))):
        alive = 0.0 if steps[t]["terminal"] else 1.0
        delta = steps[t]["reward"] + GAMMA * alive * later[t] - value[t]
        trace = delta + GAMMA * LAM * (trace if t < len(steps) - 1 else 0.0)
        found.append(trace)
    return found[::-1]


def plain_update(actor: Any, critic: Any, clip: float | None, times: int) -> None:
    """`times` steps of gradient descent on the policy's loss, then as many on the value's."""
    advantage = torch.tensor([x for e in EPISODES for x in plain_advantages(critic, e)])[:, None]
    parts = [columns(e) for e in EPISODES]
    state, action = (torch.cat([part[i] for part in parts]) for i in (0, 1))
    target = advantage + critic(state).detach()
    old = actor(state, action)[1].detach()
    for _ in range(times):
        _, log_prob, entropy = actor(state, action)
        gain = log_prob * advantage
        if clip is not None:
            ratio = (log_prob - old).exp()
            bounded = ratio.clamp(1 - clip, 1 + clip) * advantage
            gain = torch.minimum(ratio * advantage, bounded)
        descend(actor, -gain.mean() - 0.01 * entropy.mean())
    for _ in range(times):
        descend(critic, 0.5 * nn.functional.mse_loss(critic(state), target))


def descend(module: nn.Module, loss: torch.Tensor) -> None:
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.sub_(RATE * gradient)


def made(cls: Any, times: int = 3, **settings: Any) -> Any:
    counts = {"actor_update_times": times, "critic_update_times": times}
    given = SETTINGS | counts | settings
    return cls(Actor(), Critic(), torch.optim.SGD, nn.MSELoss(), **given)


@pytest.mark.parametrize(("cls", "clip"), [(A2C, None), (PPO, 0.2), (PPO, 0.001)])
def test_an_update_is_the_same_as_in_plain_torch(cls: Any, clip: float | None) -> None:
    settings: dict[str, Any] = {} if clip is None else {"surrogate_loss_clip": clip}
    framework = made(cls, **settings)
    actor, critic = copy.deepcopy(framework.actor), copy.deepcopy(framework.critic)
    for steps in EPISODES:
        framework.store_episode(steps)
    framework.update()
    plain_update(actor, critic, clip, times=3)
    for own, other in ((framework.actor, actor), (framework.critic, critic)):
        torch.testing.assert_close(own.state_dict(), other.state_dict(), rtol=0, atol=1e-6)


def test_an_update_gives_two_floats_and_clears_the_buffer() -> None:
    framework = made(A2C)
    framework.store_episode(EPISODES[0])
    policy, value = framework.update()
    assert (type(policy), type(value), framework.replay_buffer.size()) == (float, float, 0)
    with pytest.raises(ValueError, match="no episode to learn from"):
        framework.update()


@pytest.mark.parametrize("switch", ["update_value", "update_policy"])
def test_a_switch_leaves_one_model_as_it_is(switch: str) -> None:
    framework = made(PPO)
    models = framework.actor, framework.critic
    before = [model.layer.weight.clone() for model in models]
    framework.store_episode(EPISODES[0])
    framework.update(**{switch: False})
    pairs = zip(models, before, strict=True)
    moved = [not torch.equal(model.layer.weight, old) for model, old in pairs]
    assert moved == [switch == "update_value", switch == "update_policy"]


def test_act_gives_what_the_actor_gives() -> None:
    framework = made(PPO)
    action, log_prob, entropy = framework.act({"state": torch.zeros(5, 3)})
    assert (action.shape, log_prob.shape, entropy.shape) == ((5, 1), (5, 1), (5, 1))
    assert not log_prob.requires_grad


def test_a_setting_may_change_between_updates() -> None:
    framework = made(A2C, times=1)
    framework.store_episode(EPISODES[0])
    framework.update()
    before = copy.deepcopy(framework.critic.state_dict())
    framework.value_weight = 0.0
    framework.store_episode(EPISODES[0])
    framework.update()
    torch.testing.assert_close(framework.critic.state_dict(), before)
