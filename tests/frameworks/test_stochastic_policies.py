"""SAC, TRPO and IMPALA over a user's own modules, against the same updates in plain torch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from modules import Actor, Critic, episode
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.frameworks import (
    A3C,
    IMPALA,
    SAC,
    TRPO,
    ActorContinuous,
    ActorDiscrete,
    DDPGApex,
    DQNApex,
)

GAMMA, RATE, TAU, ALPHA = 0.9, 0.1, 0.25, 0.3


class Soft(nn.Module):
    """A mean, and always the same noise, so that an update can be repeated."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = nn.Linear(3, 2)

    def forward(self, state: Tensor) -> Any:
        mean, log_std = self.layer(state).chunk(2, -1)
        noise = torch.linspace(-1, 1, len(state))[:, None]
        action = mean + log_std.exp() * noise
        return action, -(0.5 * noise**2 + log_std), "more"


class Judge(nn.Module):
    """A value of a state and an action."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(4, 1)

    def forward(self, state: Tensor, action: Tensor) -> Any:
        return self.layer(torch.cat([state, action], -1)).sin()


class Chooser(ActorDiscrete):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)

    def forward(self, state: Tensor, action: Tensor | None = None) -> Any:
        return self.sample(self.layer(state).softmax(-1), action)


class Mover(ActorContinuous):
    def __init__(self) -> None:
        super().__init__(2, -0.5)
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)

    def forward(self, state: Tensor, action: Tensor | None = None) -> Any:
        return self.sample(self.layer(state), action)


def column(steps: Any, *keys: str) -> Tensor:
    return torch.cat([step[keys[0]][keys[-1]] for step in steps])


def numbers(steps: Any) -> tuple[Tensor, Tensor]:
    reward = torch.tensor([[step["reward"]] for step in steps])
    return reward, torch.tensor([[0.0 if step["terminal"] else 1.0] for step in steps])


def descend(module: nn.Module, loss: Tensor) -> None:
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.sub_(RATE * gradient)


def same(framework: Any, models: dict[str, Any]) -> None:
    for name, model in models.items():
        own = getattr(framework, name).state_dict()
        torch.testing.assert_close(own, model.state_dict(), rtol=0, atol=1e-6)


def moving(count: int, width: int = 1) -> list[dict[str, Any]]:
    torch.manual_seed(7)
    steps = episode(count)
    return [s | {"action": {"action": torch.randn(1, width)}} for s in steps]


def soft(**settings: Any) -> Any:
    rates = {"actor_learning_rate": RATE, "critic_learning_rate": RATE, "replay_size": 50}
    given = rates | {"discount": GAMMA, "update_rate": TAU, "initial_entropy_alpha": ALPHA}
    models: Any = [Soft(), *map(Judge, range(2, 6))]
    kind: Any = SAC
    made = kind(*models, torch.optim.SGD, nn.MSELoss(), **given | settings)
    with torch.no_grad():  # critics and their targets differ from now on
        for critic in (made.critic, made.critic2):
            for parameter in critic.parameters():
                parameter.add_(0.1)
    return made


def plain_sac(models: dict[str, Any], steps: Any) -> float:
    """One update on all steps; the mean log-probability of the actions drawn."""
    state, after = column(steps, "state", "state"), column(steps, "next_state", "state")
    action = column(steps, "action", "action")
    reward, alive = numbers(steps)
    with torch.no_grad():
        following, log_prob, _ = models["actor"](after)
        both = [models[f"{k}_target"](after, following) for k in ("critic", "critic2")]
        target = reward + GAMMA * alive * (torch.minimum(*both) - ALPHA * log_prob)
    for name in ("critic", "critic2"):
        descend(models[name], (models[name](state, action) - target).square().mean())
    drawn, log_prob, _ = models["actor"](state)
    value = torch.minimum(*(models[k](state, drawn) for k in ("critic", "critic2")))
    descend(models["actor"], (ALPHA * log_prob - value).mean())
    with torch.no_grad():
        for name in ("critic", "critic2"):
            pairs = (models[f"{name}_target"].parameters(), models[name].parameters())
            for own, other in zip(*pairs, strict=True):
                own.lerp_(other, TAU)
    return float(log_prob.mean())


def test_an_update_of_sac_is_the_same_as_in_plain_torch(monkeypatch: Any) -> None:
    framework, steps = soft(target_entropy=-1.0, alpha_learning_rate=RATE), moving(5)
    framework.store_episode(steps)
    models = {name: copy.deepcopy(getattr(framework, name)) for name in SAC._is_top}
    draw = framework.replay_buffer.draw
    monkeypatch.setattr(framework.replay_buffer, "draw", lambda n: draw(n, method="all"))
    framework.update()
    log_prob = plain_sac(models, steps)
    same(framework, models)
    log_alpha = torch.tensor(ALPHA).log().item() + RATE * (log_prob - 1.0)
    assert framework.entropy_alpha == pytest.approx(torch.tensor(log_alpha).exp().item(), abs=1e-6)


def test_switches_leave_models_of_sac_as_they_are() -> None:
    framework = soft(target_entropy=-1.0)
    framework.store_episode(moving(3))
    models = {name: copy.deepcopy(getattr(framework, name)) for name in SAC._is_top}
    found = framework.update(False, False, False, False)
    same(framework, models)
    assert [type(x) for x in found] == [float, float]
    assert framework.entropy_alpha == pytest.approx(ALPHA)


def test_every_part_of_sac_is_loaded_into_its_own(tmp_path: Any) -> None:
    one, other = soft(), soft()
    for number, name in enumerate(("critic_target", "critic2_target")):
        getattr(one, name).layer.weight.data.fill_(float(number))
    one.save(tmp_path)
    other.load(tmp_path)
    found = [getattr(other, name).layer.weight.mean().item() for name in ("critic", "critic2")]
    assert found == [0.0, 1.0]
    assert len(other.act({"state": torch.zeros(2, 3)})) == 3


def flat(parts: Any) -> Tensor:
    return torch.cat([x.reshape(-1) for x in parts])


def divergence(actor: Any, state: Tensor, old: Any) -> Any:
    """Mean KL divergence from an old policy, by torch.distributions."""
    return (
        torch.distributions.kl_divergence(old, policy_of(actor, state))
        .reshape(len(state), -1)
        .sum(-1)
        .mean()
    )


def policy_of(actor: Any, state: Tensor) -> Any:
    if isinstance(actor, Chooser):
        return torch.distributions.Categorical(logits=actor.layer(state))
    return torch.distributions.Normal(actor.layer(state), actor.log_std.exp().expand(len(state), 2))


def plain_trpo(actor: Any, steps: Any, advantage: Tensor) -> None:
    """A natural step by Fisher's matrix written out, shortened until it is good."""
    state, action = column(steps, "state", "state").double(), column(steps, "action", "action")
    parameters, old = list(actor.parameters()), policy_of(copy.deepcopy(actor), state)
    before = actor(state, action)[1].detach()

    def gain() -> Any:
        return ((actor(state, action)[1] - before).exp() * advantage).mean()

    slope = flat(torch.autograd.grad(gain(), parameters, materialize_grads=True))
    first = flat(torch.autograd.grad(divergence(actor, state, old), parameters, create_graph=True))
    rows = [flat(torch.autograd.grad(x, parameters, retain_graph=True, materialize_grads=True))
            for x in first]  # fmt: skip
    matrix = torch.stack(rows) + 0.1 * torch.eye(len(first), dtype=torch.float64)
    along = torch.linalg.solve(matrix, slope)
    step = (2 * 0.01 / (along @ matrix @ along)).sqrt() * along
    start = flat([p.detach() for p in parameters])
    for i in range(10):
        nn.utils.vector_to_parameters(start + 0.8**i * step, parameters)
        with torch.no_grad():
            if gain() > advantage.mean() and divergence(actor, state, old) <= 0.01:
                return
    nn.utils.vector_to_parameters(start, parameters)


@pytest.mark.parametrize("kind", [Chooser, Mover])
def test_an_update_of_trpo_is_the_same_as_in_plain_torch(kind: Any) -> None:
    steps = episode(6) if kind is Chooser else moving(6, width=2)
    settings = {"discount": GAMMA, "critic_learning_rate": RATE, "critic_update_times": 1}
    actor, critic = kind().double(), Critic().double()
    made = TRPO(actor, critic, torch.optim.SGD, nn.MSELoss(), **settings, batch_size=None)
    models = {"actor": copy.deepcopy(actor), "critic": copy.deepcopy(critic)}
    made.store_episode(steps)
    made.update()
    reward, _ = numbers(steps)
    returns = [sum(GAMMA ** (k - t) * reward[k] for k in range(t, 6)) for t in range(6)]
    target = torch.stack([torch.as_tensor(x) for x in returns]).double()
    value = models["critic"](column(steps, "state", "state").double())
    advantage = (target - value).detach()
    plain_trpo(models["actor"], steps, (advantage - advantage.mean()) / advantage.std(correction=0))
    descend(models["critic"], 0.5 * (value - target).square().mean())
    same(made, models)
    assert not torch.equal(actor.layer.weight, kind().double().layer.weight)


def test_actors_of_trpo_know_their_divergence_and_fisher_matrix() -> None:
    actor, state = Chooser(), torch.randn(4, 3)
    assert actor.get_kl(state).item() == pytest.approx(0.0, abs=1e-7)
    fisher, params = actor.get_fim(state)
    p = params.softmax(-1)[0]
    torch.testing.assert_close(fisher[0], torch.diag(p) - torch.outer(p, p))


def test_another_actor_is_refused_by_trpo() -> None:
    with pytest.raises(UsageError, match="derive it from ActorDiscrete or ActorContinuous"):
        TRPO(Actor(), Critic(), torch.optim.SGD, nn.MSELoss())


def impala(**settings: Any) -> Any:
    given = {"discount": GAMMA, "actor_learning_rate": RATE, "critic_learning_rate": RATE}
    return IMPALA(Actor(), Critic(), torch.optim.SGD, nn.MSELoss(), **given | settings)


def plain_impala(actor: Any, critic: Any, steps: Any) -> None:
    """V-trace by a loop, backwards."""
    state, action = column(steps, "state", "state"), column(steps, "action", "action")
    value, after = critic(state), critic(column(steps, "next_state", "state")).detach()
    reward, alive = numbers(steps)
    old = torch.tensor([[step["action_log_prob"]] for step in steps])
    log_prob = actor(state, action)[1]
    weight = (log_prob - old).exp().clamp(max=1).detach()
    known, target, gain, trace = value.detach(), [], [], torch.zeros(1)
    for t in reversed(range(len(steps))):
        following = after[t] + (trace if t < len(steps) - 1 else 0.0)
        gain.append(weight[t] * (reward[t] + GAMMA * alive[t] * following - known[t]))
        error = weight[t] * (reward[t] + GAMMA * alive[t] * after[t] - known[t])
        trace = error + GAMMA * alive[t] * weight[t] * (trace if t < len(steps) - 1 else 0.0)
        target.append(known[t] + trace)
    descend(actor, -(log_prob * torch.stack(gain[::-1])).mean())
    descend(critic, 0.5 * (value - torch.stack(target[::-1])).square().mean())


def test_an_update_of_impala_is_the_same_as_in_plain_torch() -> None:
    framework = impala()
    steps = [s | {"action_log_prob": -0.2 * t - 0.1} for t, s in enumerate(episode(5))]
    models = {name: copy.deepcopy(getattr(framework, name)) for name in IMPALA._is_top}
    framework.store_episode(steps)
    framework.update()
    plain_impala(models["actor"], models["critic"], steps)
    same(framework, models)
    assert framework.replay_buffer.size() == 5


def test_impala_holds_the_last_episodes_and_wants_their_log_probabilities() -> None:
    framework = impala(replay_size=2)
    for length in (1, 2, 3):
        framework.store_episode([s | {"action_log_prob": -1.0} for s in episode(length)])
    with pytest.raises(UsageError, match="step 0: action_log_prob = None"):
        framework.store_episode(episode(4))
    assert framework.replay_buffer.size() == 5


@pytest.mark.parametrize(
    ("kind", "instead"), [(A3C, "A2C"), (DQNApex, "DQNPer"), (DDPGApex, "DDPGPer")]
)
def test_what_needs_a_container_says_so(kind: Any, instead: str) -> None:
    with pytest.raises(UsageError, match=f"needs a container.*use {instead} of"):
        kind()
