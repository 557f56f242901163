"""ACER and ACERVTrace against slow references in plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import Tensor, nn

from operant.agents.a2c import A2CConfig, ActorCritic
from operant.agents.acer import ACER, ACERConfig, ACERVTrace, ACERVTraceConfig
from operant.agents.advantages import Batch
from operant.agents.optimizer import total
from operant.agents.unroll import unroll
from operant.core.errors import UsageError
from operant.core.experience import EnvStep, Experience, HiddenState, Tensors
from operant.core.schedule import Schedule
from operant.core.spaces import Spaces
from operant.memory.replay import ExperienceReplay
from operant.memory.rollout import RolloutCache
from operant.networks.assemble import NetworkConfig
from operant.networks.custom import CustomNetwork
from operant.ops import returns

GAMMA, STATES, ACTIONS = 0.9, 6, 3
SPACE: Any = {"action": Discrete(ACTIONS)}
KINDS = pytest.mark.parametrize("kind", [ACER, ACERVTrace])


class Tables(nn.Module):
    """A policy and Q-values looked up by the observation `state`, and a memory that counts."""

    def __init__(self, policy: Tensor, q: Tensor, step: float = 0.0) -> None:
        super().__init__()
        self.policy, self.q = nn.Parameter(policy.clone()), nn.Parameter(q.clone())
        self.step = step

    def forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        seen = observation["state"]
        out = {"policy.action": self.policy[seen], "q.action": self.q[seen]}
        if not self.step:
            return out, HiddenState()
        count = state["count"] + self.step
        return {name: x + count * self.q[0] for name, x in out.items()}, HiddenState(count=count)


def random_tables(seed: int = 0) -> tuple[Tensor, Tensor]:
    policy, q = torch.randn(2, STATES, ACTIONS, generator=torch.Generator().manual_seed(seed))
    return 1.5 * policy, 3 * q


def agent_with(kind: type[ACER] = ACER, tables: Any = None, step: float = 0.0, **given: Any) -> Any:
    settings = {"gamma": GAMMA, "max_grad_norm": 0.0, "length": 4, "learning_starts": 0} | given
    config = (ACERVTraceConfig if kind is ACERVTrace else ACERConfig)(**settings)
    shapes = {"count": (1,)} if step else {}
    policy, q = tables or random_tables()
    network = CustomNetwork(Tables(policy, q, step), shapes)
    return kind(network, SPACE, ExperienceReplay(400, 1, seed=1), config, seed=1)


def chunk(steps: int, envs: int, seed: int = 0, masked: bool = False) -> Experience:
    """Random steps with every kind of end: terminated, truncated, replaced, lost, wasted."""
    g = torch.Generator().manual_seed(seed)
    kind = torch.rand(steps, envs, generator=g)
    terminated, truncated = kind < 0.15, kind > 0.85
    ended = terminated | truncated
    replaced = ended & (torch.rand(steps, envs, generator=g) < 0.5)
    valid = torch.rand(steps, envs, generator=g) < 0.95  # else lost
    valid[1:] &= ~(ended & ~replaced)[:-1]  # what a reset in the next step wastes
    observation = {"state": torch.randint(STATES, (steps + 1, envs), generator=g)}
    final = {"state": torch.randint(STATES, (steps, envs), generator=g)}
    mask = torch.ones(steps + 1, envs, ACTIONS, dtype=torch.int8)
    if masked:
        mask[torch.rand(steps + 1, envs, generator=g) < 0.5, 2] = 0
        observation["action_mask"], final["action_mask"] = mask, mask[:steps]
    behavior = torch.randn(steps, envs, ACTIONS, generator=g)
    behavior = behavior.masked_fill(mask[:steps] == 0, -1e30).log_softmax(-1)
    drawn = torch.multinomial(behavior.exp().view(-1, ACTIONS), 1, generator=g)
    return Experience(
        observation=observation,
        hidden_state={},
        first=torch.zeros(steps + 1, envs, dtype=torch.bool),
        action={"action": drawn.view(steps, envs)},
        memo={"logits": behavior},
        reward=torch.randn(steps, envs, generator=g),
        terminated=terminated & valid,
        truncated=truncated & valid,
        valid=valid,
        final_observation=final,
        replaced=replaced & valid,
    )


def windows(length: int = 8, envs: int = 12, masked: bool = False) -> Experience:
    """What a replay makes of such steps."""
    replay = ExperienceReplay(envs * 60, 1, seed=1)
    replay.store(chunk(20, envs, masked=masked))
    return replay.newest(length)


class Slow:
    """Everything that a loss needs of one window, number by number."""

    def __init__(self, agent: Any, batch: Experience, b: int) -> None:
        self.agent, self.batch, self.b, self.steps = agent, batch, b, len(batch.reward)
        module, self.lam = agent.network.module, agent.config.lam
        self.pi, self.q = self.softmax(module.policy), module.q.tolist()
        self.average = self.softmax(agent.average.network.module.policy)
        self.v = [self.expected(t) for t in range(self.steps + 1)]

    def state(self, t: int) -> int:
        return int(self.batch.observation["state"][t, self.b])

    def allowed(self, t: int) -> list[int]:
        seen = self.batch.observation
        row = seen["action_mask"][t, self.b].tolist() if "action_mask" in seen else [1] * ACTIONS
        return [a for a in range(ACTIONS) if row[a]]

    def softmax(self, logits: Tensor) -> Any:
        def chances(t: int) -> list[float]:
            row, allowed = logits[self.state(t)].tolist(), self.allowed(t)
            parts = [math.exp(x) if a in allowed else 0.0 for a, x in enumerate(row)]
            return [x / sum(parts) for x in parts]

        return chances

    def expected(self, t: int) -> float:
        return float(sum(p * q for p, q in zip(self.pi(t), self.q[self.state(t)], strict=True)))

    def at(self, name: str, t: int) -> Any:
        return getattr(self.batch, name)[t, self.b].item()

    def action(self, t: int) -> int:
        return int(self.batch.action["action"][t, self.b])

    def ratio(self, t: int, a: int) -> float:
        return float(self.pi(t)[a] / self.batch.memo["logits"][t, self.b, a].exp().item())

    def discount(self, t: int) -> float:
        return 0.0 if self.at("terminated", t) else GAMMA

    def goes_on(self, t: int) -> bool:
        """Whether row t + 1 is the next step of the same episode, in this window."""
        ended = self.at("terminated", t) or self.at("truncated", t)
        return t + 1 < self.steps and not ended and self.at("valid", t + 1)

    def retrace(self, t: int) -> float:
        later = 0.0
        if self.goes_on(t):
            a = self.action(t + 1)
            error = self.retrace(t + 1) - self.q[self.state(t + 1)][a]
            later = self.lam * min(1.0, self.ratio(t + 1, a)) * error
        return float(self.at("reward", t) + self.discount(t) * (self.v[t + 1] + later))

    def v_trace(self, t: int) -> float:
        ratio = self.ratio(t, self.action(t))
        error = self.at("reward", t) + self.discount(t) * self.v[t + 1] - self.v[t]
        later = self.v_trace(t + 1) - self.v[t + 1] if self.goes_on(t) else 0.0
        rho, c = min(self.agent.config.rho, ratio), min(self.agent.config.c, ratio)
        return float(self.v[t] + rho * error + self.discount(t) * self.lam * c * later)

    def target(self, t: int) -> float:
        if not isinstance(self.agent, ACERVTrace):
            return self.retrace(t)
        later = self.v_trace(t + 1) - self.v[t + 1] if self.goes_on(t) else 0.0
        return float(self.at("reward", t) + self.discount(t) * (self.v[t + 1] + self.lam * later))

    def z(self, t: int) -> list[float]:
        """The policy's gradient by probability, zero where an action is forbidden."""
        bound, trust = self.agent.config.truncation, self.agent.config.trust
        g, k = [0.0] * ACTIONS, [0.0] * ACTIONS
        for a in self.allowed(t):
            ratio, q = self.ratio(t, a), self.q[self.state(t)][a]
            g[a] = max(0.0, 1 - bound / ratio) * (q - self.v[t])
            if a == self.action(t):
                g[a] += min(bound, ratio) * (self.target(t) - self.v[t]) / self.pi(t)[a]
            k[a] = -self.average(t)[a] / self.pi(t)[a]
        if not trust:
            return g
        over = sum(x * y for x, y in zip(k, g, strict=True)) - trust
        share = max(0.0, over / sum(x * x for x in k))
        return [x - share * y for x, y in zip(g, k, strict=True)]


def slow_gradients(agent: Any, batch: Experience) -> tuple[Tensor, Tensor]:
    """Of the policy's and the Q-values' losses by the entries of their tables."""
    policy, q = torch.zeros(2, STATES, ACTIONS)
    count = int(batch.valid.sum())
    for b in range(batch.reward.shape[1]):
        slow = Slow(agent, batch, b)
        for t in range(slow.steps):
            if not slow.at("valid", t):
                continue
            state, pi, z = slow.state(t), slow.pi(t), slow.z(t)
            mean = sum(x * y for x, y in zip(pi, z, strict=True))
            for a in range(ACTIONS):
                policy[state, a] -= pi[a] * (z[a] - mean) / count
            a = slow.action(t)
            q[state, a] += (slow.q[state][a] - slow.target(t)) / count
    return policy, q


def gradients(agent: Any, batch: Experience, loss: str) -> tuple[Tensor, Tensor]:
    module = agent.network.module
    module.zero_grad()
    agent.compute_loss(batch)[0][loss].backward()
    zero = torch.zeros(STATES, ACTIONS)
    found = [zero if p.grad is None else p.grad.clone() for p in (module.policy, module.q)]
    return found[0], found[1]


def moved_average(agent: Any) -> Any:
    """The agent with an average policy that is unlike its own."""
    agent.average.network.module.policy.copy_(random_tables(7)[0])
    return agent


SETTINGS: list[dict[str, Any]] = [
    {"trust": 0.0},
    {"trust": 0.05, "lam": 0.7},
    {"trust": 1.0, "truncation": 1.5},
    {"trust": 0.0, "truncation": 0.5},
]


@KINDS
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("settings", SETTINGS)
def test_gradients_are_those_of_loops(kind: Any, masked: bool, settings: dict[str, Any]) -> None:
    if kind is ACERVTrace:
        settings = settings | {"rho": 1.2, "c": 0.8}
    agent, batch = (
        moved_average(agent_with(kind, value_coef=1.0, **settings)),
        windows(8, 12, masked),
    )
    policy, q = slow_gradients(agent, batch)
    torch.testing.assert_close(gradients(agent, batch, "policy")[0], policy, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients(agent, batch, "value")[1], q, rtol=1e-4, atol=1e-5)
    ends = (batch.terminated.sum(), batch.truncated.sum(), (~batch.valid).sum())
    assert min(map(int, ends)) >= 5


@KINDS
def test_each_loss_moves_only_what_it_is_about(kind: Any) -> None:
    agent, batch = moved_average(agent_with(kind)), windows()
    assert gradients(agent, batch, "policy")[1].abs().max() == 0
    assert gradients(agent, batch, "entropy")[1].abs().max() == 0
    assert gradients(agent, batch, "value")[0].abs().max() == 0
    assert gradients(agent, batch, "policy")[0].abs().max() > 0


def test_of_own_actions_and_values_the_targets_are_discounted_returns() -> None:
    policy, _ = random_tables()
    level = torch.randn(STATES, 1, generator=torch.Generator().manual_seed(3)).expand(-1, ACTIONS)
    for kind in (ACER, ACERVTrace):
        agent = agent_with(kind, (policy, level), lam=1.0)
        batch = own_actions(agent, windows())
        after = level[:, 0][batch.observation["state"][1:]]
        discount = GAMMA * ~batch.terminated
        expected = returns.discounted(batch.reward, after, discount, batch.cut)
        state_value = level[:, 0][batch.observation["state"]]
        target = agent.targets(batch, torch.zeros_like(after), state_value[:-1], state_value)
        torch.testing.assert_close(target[batch.valid], expected[batch.valid])


@KINDS
def test_a_window_of_one_step_has_one_reward_and_the_value_after_it(kind: Any) -> None:
    agent, batch = agent_with(kind), windows(1, 40)
    by_kind = slow_gradients(agent, batch)[1]
    other = agent_with(ACER if kind is ACERVTrace else ACERVTrace)
    torch.testing.assert_close(by_kind, gradients(other, batch, "value")[1] * 2)


def own_actions(agent: Any, batch: Experience) -> Experience:
    """The windows as if the policy of today had acted."""
    out, _ = agent.network(batch.observation, HiddenState(), batch.first)
    logits = out["policy.action"][:-1].log_softmax(-1).detach()
    return batch._replace(memo={"logits": logits})


def advantages(agent: Any, batch: Experience) -> Tensor:
    """By the loops, zero where nothing was decided."""
    found = torch.zeros_like(batch.reward)
    for t, b in batch.valid.nonzero().tolist():
        slow = Slow(agent, batch, b)
        found[t, b] = slow.target(t) - slow.v[t]
    return found


class ByTable(nn.Module):
    """A policy of the same entries, and a value that expects what ACER's Q-values do."""

    def __init__(self, policy: Tensor, q: Tensor) -> None:
        super().__init__()
        self.policy = nn.Parameter(policy.clone())
        self.value = nn.Parameter((policy.softmax(-1) * q).sum(-1, keepdim=True))

    def forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        seen = observation["state"]
        return {"policy.action": self.policy[seen], "value": self.value[seen]}, HiddenState()


@KINDS
def test_of_own_actions_the_gradient_is_that_of_a2c_with_the_same_advantage(kind: Any) -> None:
    agent, batch = agent_with(kind, trust=0.0), windows()
    batch = own_actions(agent, batch)
    network = CustomNetwork(ByTable(*random_tables()))
    a2c = ActorCritic(network, SPACE, RolloutCache(8), A2CConfig(), seed=1)
    advantage = advantages(agent, batch)
    other = Batch(
        observation={"state": batch.observation["state"][:-1]},
        hidden_state={},
        first=batch.first[:-1],
        action=batch.action,
        log_prob=None,
        advantage=advantage,
        target=advantage,
        valid=batch.valid,
    )
    a2c.compute_loss(other, batch.valid)[0]["policy"].backward()
    expected = network.module.policy.grad
    torch.testing.assert_close(gradients(agent, batch, "policy")[0], expected, rtol=1e-4, atol=1e-6)


def test_the_entropy_bonus_is_the_mean_entropy_of_what_was_decided() -> None:
    agent, batch = agent_with(entropy_coef=0.5), windows(8, 12, masked=True)
    entropy = 0.0
    for t, b in batch.valid.nonzero().tolist():
        chances = Slow(agent, batch, b).pi(t)
        entropy -= sum(p * math.log(p) for p in chances if p) / int(batch.valid.sum())
    losses, metrics = agent.compute_loss(batch)
    assert losses["entropy"].item() == pytest.approx(-0.5 * entropy)
    assert metrics["entropy_loss"].item() == pytest.approx(-entropy)


def test_what_was_never_decided_may_hold_anything() -> None:
    agent, batch = agent_with(), windows()
    before = gradients(agent, batch, "policy"), gradients(agent, batch, "value")
    batch.memo["logits"][~batch.valid] = math.nan
    after = gradients(agent, batch, "policy"), gradients(agent, batch, "value")
    for one, other in zip(before, after, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_an_action_that_became_impossible_leaves_every_gradient_finite() -> None:
    policy, q = random_tables()
    agent = moved_average(agent_with(tables=(policy * 400, q)))
    batch = windows()
    policy_slope, _ = gradients(agent, batch, "policy")
    assert bool(torch.isfinite(policy_slope).all())
    assert torch.isfinite(torch.stack(list(agent.compute_loss(batch)[1].values()))).all()


@pytest.mark.parametrize("masked", [False, True])
def test_acting_leaves_the_log_probabilities_of_all_actions_behind(masked: bool) -> None:
    policy, q = random_tables()
    seen = {"state": torch.arange(STATES)}
    if masked:
        seen["action_mask"] = torch.tensor([[1, 0, 1]]).expand(STATES, 3)
        policy[:, 1] = -math.inf
    action, memo = agent_with(tables=(policy.nan_to_num(neginf=0.0), q)).act(seen)
    chances = memo.tensors["logits"].exp()
    torch.testing.assert_close(chances, policy.softmax(-1))
    assert bool(torch.isfinite(memo.tensors["logits"]).all())
    assert not masked or 1 not in action["action"].tolist()


def test_numpy_leaves_the_same_behind() -> None:
    spaces = Spaces({"x": Box(-1, 1, (4,))}, SPACE)
    agent = create("acer", spaces, NetworkConfig(hidden=(8,)), {})
    seen = {"x": torch.randn(5, 4, generator=torch.Generator().manual_seed(1))}
    assert agent.actor.numpy_forward is not None
    _, quick = agent.act(seen)
    agent.actor.numpy_forward = None
    _, plain = agent.act(seen)
    torch.testing.assert_close(quick.tensors["logits"], plain.tensors["logits"])
    assert quick.tensors["logits"].exp().sum(-1).tolist() == pytest.approx([1.0] * 5)


def recorded(agent: Any) -> list[tuple[int, ...]]:
    """Shapes of the batches that it learns from, from now on."""
    shapes: list[tuple[int, ...]] = []
    plain = agent.descents[0].program

    def program(batch: Experience) -> Any:
        shapes.append(tuple(batch.reward.shape))
        return plain(batch)

    agent.descents[0].program = program
    return shapes


def test_an_update_is_one_gradient_of_the_newest_steps_and_then_as_many_as_drawn() -> None:
    agent = agent_with(replay_ratio=3.0, batch_size=2)
    shapes, counts = recorded(agent), []
    for i in range(60):
        agent.memory.store(chunk(4, 5, seed=i))
        shapes.clear()
        assert agent.update()["n_updates"] == agent.updates
        assert shapes[0] == (4, 5)
        assert set(shapes[1:]) <= {(4, 2)}
        counts.append(len(shapes) - 1)
    assert min(counts) == 0
    assert sum(counts) / 60 == pytest.approx(3.0, abs=0.5)
    assert agent.updates == 60 + sum(counts)


def test_replay_begins_when_learning_starts_and_new_steps_are_learned_from_at_once() -> None:
    agent = agent_with(replay_ratio=50.0)
    agent.memory.min_size = 30
    counts = []
    for i in range(3):
        agent.memory.store(chunk(4, 5, seed=i)._replace(valid=torch.ones(4, 5, dtype=torch.bool)))
        agent.update()
        counts.append(len(agent.learned))
    assert counts[0] == 1
    assert min(counts[1:]) > 20
    assert agent.update() == {}


def test_in_a_loop_of_ones_own_it_learns_whenever_a_window_is_new() -> None:
    agent, updates = agent_with(replay_ratio=0.0), []
    no = np.zeros(2, bool)
    for i in range(9):
        seen = {"state": np.full(2, i % STATES)}
        action, memo = agent.act({"state": torch.from_numpy(seen["state"])})
        after = {"state": np.full(2, (i + 1) % STATES)}
        step = EnvStep(after, np.ones(2, np.float32), no, no, ~no, None, {})
        agent.observe(seen, action, memo, step)
        updates.append(bool(agent.update()))
    assert updates == [False, False, False, True] * 2 + [False]


def test_the_average_policy_follows_after_each_gradient() -> None:
    agent = agent_with(replay_ratio=0.0, tau=0.25, lr=Schedule(0.1))
    before = agent.network.module.policy.detach().clone()
    agent.memory.store(chunk(4, 5))
    agent.update()
    after = agent.network.module.policy.detach()
    assert (after - before).abs().max() > 0.05
    torch.testing.assert_close(agent.average.network.module.policy, 0.75 * before + 0.25 * after)


def test_without_a_trust_region_the_average_policy_is_never_asked() -> None:
    agent, batch = agent_with(trust=0.0), windows()
    agent.average.network.forward = None
    assert agent.compute_loss(batch)[0]["policy"].item() != 0
    with pytest.raises(TypeError):
        agent_with_broken_average().compute_loss(batch)


def agent_with_broken_average() -> Any:
    agent = agent_with(trust=1.0)
    agent.average.network.forward = None
    return agent


def test_a_window_is_unrolled_from_the_memory_of_its_first_row() -> None:
    agent = agent_with(step=1.0, trust=0.5, value_coef=1.0)
    carried = torch.tensor([[[5.0]], [[6.0]], [[7.0]]])
    first = torch.tensor([[False], [False], [True]])
    batch = windows(2, 1)._replace(hidden_state={"count": carried[:1]}, first=first)
    batch = batch._replace(valid=torch.ones(2, 1, dtype=torch.bool))
    out = unroll(agent.network, batch, None)
    row = agent.network.module.q[batch.observation["state"][:, 0]]
    counts = torch.tensor([6.0, 7.0, 1.0])[:, None]  # fresh where an episode begins
    torch.testing.assert_close(out["q.action"][:, 0], row + counts * agent.network.module.q[0])
    assert torch.isfinite(total(agent.compute_loss(batch)[0]))


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({"move": Box(-1, 1, (2,))}, r"action 'move' is Box\(.*\)"),
        ({"move": MultiDiscrete([2, 3])}, r"action 'move' is MultiDiscrete\(\[2 3\]\)"),
        ({"a": Discrete(2), "b": Discrete(3)}, "actions 'a', 'b' are several"),
    ],
)
def test_other_actions_are_refused_with_a_remedy(space: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said + r": ACER learns .* Discrete action.* use ppo, or"):
        ACER.output_space(space)


def test_how_often_it_replays_goes_on_from_where_it_was_saved() -> None:
    one, other = agent_with(), agent_with()
    one.random.poisson(4.0, size=7)
    other.load_state_dict(one.state_dict())
    assert one.random.poisson(4.0, size=20).tolist() == other.random.poisson(4.0, size=20).tolist()


def test_a_run_has_so_many_gradient_steps_on_average() -> None:
    config = ACERConfig(length=20, replay_ratio=4.0, batch_size=16)
    assert config.gradient_steps(16_000, num_envs=8) == 500
    assert config.gradient_rows(num_envs=8) == 320
