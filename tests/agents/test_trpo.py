"""TRPO against matrices that are written out, and its bound against many random batches."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import Tensor, nn
from torch.distributions import Categorical, Normal, kl_divergence
from worked import Column, entries, masked, record, table
from worked import policy_table as policy_of

from operant.agents.advantages import advantages, values
from operant.agents.trpo import TRPO, TRPOConfig
from operant.core import tree
from operant.core.experience import Experience, HiddenState, Tensors
from operant.core.schedule import Schedule
from operant.core.spaces import Space, Spaces
from operant.memory.rollout import RolloutCache
from operant.networks.assemble import NetworkConfig
from operant.networks.custom import CustomNetwork

GAMMA, LAM = 0.9, 0.5
LOGITS = [[0.0, 0.0], [0.5, -0.5], [1.0, 0.2], [0.0, 0.0]]
VALUE = [[5.0], [7.0], [10.0], [20.0]]
PLAIN: dict[str, Any] = {"gamma": GAMMA, "lam": LAM, "normalize_advantage": False, "epochs": 1}


def trpo(logits: Any = LOGITS, value: Any = VALUE, **settings: Any) -> TRPO:
    config = TRPOConfig(**PLAIN | settings)
    networks = policy_of(action=logits), table(value=value)
    return TRPO(*networks, {"action": Discrete(2)}, RolloutCache(1), config, seed=1)


def updated(agent: TRPO, chunk: Experience) -> dict[str, float]:
    agent.memory.store(chunk)
    return agent.update()


def two_columns() -> Experience:
    """Rows of three states with both actions, an end of either kind and a wasted step."""
    return record(
        Column([0, 1, 2, 0], [3.0, -1.0, 12.0], [0, 1, 1], [-0.7, -1.2, -1.0], truncated=(1,)),
        Column(
            [1, 0, 3, 1], [9.0, 2.0, 1e6], [0, 1, 0], [-0.4, -0.7, -9.0],
            terminated=(1,), invalid=(2,),
        ),
    )  # fmt: skip


def softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum()


def slow_step(chunk: Experience, advantage: Tensor, config: TRPOConfig) -> Any:
    """The new logits, by the whole Fisher matrix and a loop over rows."""
    logits = np.array(LOGITS)
    rows = [(t, b) for t in range(3) for b in range(2) if chunk.valid[t, b]]
    seen = [int(chunk.observation["state"][row]) for row in rows]
    taken = [int(chunk.action["action"][row]) for row in rows]
    acted = [float(chunk.memo["log_prob"][row]) for row in rows]
    good = [float(advantage[row]) for row in rows]

    def gain(x: Any) -> float:
        terms = zip(seen, taken, acted, good, strict=True)
        return float(np.mean([softmax(x[s])[a] / math.exp(old) * g for s, a, old, g in terms]))

    def kl(x: Any) -> float:
        pairs = [(softmax(logits[s]), softmax(x[s])) for s in seen]
        return float(np.mean([(p * np.log(p / q)).sum() for p, q in pairs]))

    slope, fisher = np.zeros(8), config.damping * np.eye(8)
    for s, a, old, g in zip(seen, taken, acted, good, strict=True):
        p, here = softmax(logits[s]), slice(2 * s, 2 * s + 2)
        slope[here] += p[a] / math.exp(old) * g * (np.eye(2)[a] - p) / len(rows)
        fisher[here, here] += (np.diag(p) - np.outer(p, p)) / len(rows)
    direction = np.linalg.solve(fisher, slope)
    step = math.sqrt(2 * config.max_kl / (direction @ fisher @ direction)) * direction
    for i in range(config.backtracks):
        new = logits + config.shrink**i * step.reshape(4, 2)
        if kl(new) <= config.max_kl and gain(new) > gain(logits):
            return new, kl(new), gain(new)
    return logits, 0.0, gain(logits)


@pytest.mark.parametrize("max_kl", [0.001, 0.01, 0.3])
@pytest.mark.parametrize("damping", [0.01, 0.1])
def test_the_step_is_that_of_the_whole_fisher_matrix(max_kl: float, damping: float) -> None:
    agent = trpo(max_kl=max_kl, damping=damping, shrink=0.5)
    chunk = two_columns()
    # GAE by hand: a wasted step counts for nothing, a time limit bootstraps from the next row.
    second = -1 + GAMMA * 10 - 7
    advantage = torch.tensor(
        [[3 + GAMMA * 7 - 5 + GAMMA * LAM * second, 9 + GAMMA * 5 - 7 + GAMMA * LAM * (2 - 5)],
         [second, 2 - 5], [12 + GAMMA * 5 - 10, 0]]
    )  # fmt: skip
    metrics = updated(agent, chunk)
    logits, kl, gain = slow_step(chunk, advantage, agent.config)
    np.testing.assert_allclose(entries(agent.network, "action").detach(), logits, rtol=1e-4)
    assert metrics["kl"] == pytest.approx(kl, rel=1e-3)
    assert metrics["policy_gradient_loss"] == pytest.approx(-gain, rel=1e-4)
    assert metrics["line_search_success"] == 1


def unlikely() -> Experience:
    """An action that is seldom taken, and better than expected."""
    return record(Column([0, 1], [9.0], [1], [-3.0], terminated=(0,)))


def test_a_step_whose_divergence_grows_faster_than_its_square_is_shortened() -> None:
    steps = []
    for shrink in (0.5, 0.9):
        agent = trpo([[3.0, 0.0]] * 4, max_kl=0.5, damping=0.0, shrink=shrink)
        steps.append(updated(agent, unlikely())["kl"])
    assert 0 < steps[0] < steps[1] <= 0.5


def test_a_step_that_is_never_short_enough_leaves_every_weight_as_it_was() -> None:
    agent = trpo([[3.0, 0.0]] * 4, max_kl=0.5, damping=0.0, backtracks=1)
    before = entries(agent.network, "action").clone()
    metrics = updated(agent, unlikely())
    assert torch.equal(entries(agent.network, "action"), before)
    assert (metrics["kl"], metrics["line_search_success"]) == (0, 0)


def test_without_anything_to_gain_the_value_still_learns_and_the_rollout_is_forgotten() -> None:
    agent = trpo(value=[[0.0]] * 4)
    before = entries(agent.network, "action").clone()
    metrics = updated(agent, record(Column([0, 1], [0.0], terminated=(0,))))
    assert torch.equal(entries(agent.network, "action"), before)
    assert (metrics["kl"], metrics["value_loss"]) == (0, 0)
    assert agent.update() == {}


def test_rows_in_which_nothing_was_decided_move_neither_network() -> None:
    agent = trpo()
    before = deepcopy(agent.state_dict())
    updated(agent, record(Column([0, 1, 2], [1.0, 1.0], invalid=(0, 1))))
    assert torch.equal(entries(agent.network, "action"), before["network"]["module.rows.action"])
    assert torch.equal(entries(agent.critic, "value"), before["critic"]["module.rows.value"])


def test_advantages_are_standardised_over_what_was_decided() -> None:
    # Of 4 and 0, which are 1 and -1; without, the worse action would become likelier as well.
    agent = trpo([[0.0, 0.0]] * 4, normalize_advantage=True)
    rows = Column([0, 1, 2], [9.0, 7.0, 1e6][:2], [0, 0], [math.log(0.5)] * 2, terminated=(0, 1))
    updated(agent, record(rows))
    better, worse = entries(agent.network, "action")[:2].softmax(-1)[:, 0].tolist()
    assert better > 0.5 > worse
    assert better - 0.5 == pytest.approx(0.5 - worse, rel=1e-4)


def test_an_action_that_an_older_policy_took_counts_by_the_ratio() -> None:
    def gain(log_prob: float) -> float:
        rows = Column([0, 1], [9.0], log_prob=[log_prob], terminated=(0,))
        return updated(trpo(backtracks=1, max_kl=9.0, damping=0.0), record(rows))[
            "policy_gradient_loss"
        ]

    assert gain(math.log(0.25)) == pytest.approx(2 * gain(math.log(0.5)))


def test_a_forbidden_action_is_neither_learned_about_nor_part_of_the_divergence() -> None:
    agent = trpo([[0.0, 50.0]] * 4)
    rows = Column([0, 1], [9.0], terminated=(0,))
    metrics = updated(agent, masked(record(rows), [1, 0], [1, 1]))
    assert (metrics["kl"], metrics["line_search_success"]) == (0, 0)


def test_the_value_takes_a_gradient_step_for_each_minibatch_of_each_epoch() -> None:
    agent = trpo(epochs=3, minibatch=2, optimizer="sgd", lr=Schedule(0.1))
    rows = Column([0, 1, 2, 3, 0], [6.0, 9.0, 8.0, 22.0], terminated=(0, 1, 2, 3))
    metrics = updated(agent, record(rows))
    # Each row is once in a minibatch of two: v += 0.1 (target - v) / 2, three times.
    targets = [6.0, 9.0, 8.0, 22.0]
    expected = [t + 0.95**3 * (v[0] - t) for t, v in zip(targets, VALUE, strict=True)]
    assert entries(agent.critic, "value").flatten().tolist() == pytest.approx(expected)
    assert metrics["n_updates"] == 1 + 3 * 2


def test_the_value_loss_is_half_the_squared_error_of_the_steps_decided() -> None:
    agent = trpo(lr=Schedule(0.0))
    rows = Column([0, 3, 1], [6.0, 1e3], terminated=(0,), invalid=(1,))
    metrics = updated(agent, record(rows))
    assert metrics["value_loss"] == pytest.approx(0.5)


def test_gradients_of_the_loss_are_left_where_users_look() -> None:
    agent = trpo()
    log_prob = [math.log(0.5)]
    updated(agent, record(Column([0, 1], [7.0], log_prob=log_prob, terminated=(0,))))
    found = entries(agent.network, "action").grad
    assert found is not None
    assert found[0].tolist() == pytest.approx([-2 * 0.5, 2 * 0.5])


class Dropping(nn.Module):
    """Logits or values behind dropout and batch norm; remembers in which mode it has run."""

    def __init__(self, output: str, size: int) -> None:
        super().__init__()
        self.output, self.layer = output, nn.Linear(1, size)
        self.norm, self.drop = nn.BatchNorm1d(size), nn.Dropout(0.5)
        self.ran: list[bool] = []

    def forward(self, observation: Tensors) -> Tensors:
        self.ran.append(self.norm.training and self.drop.training)
        x = self.layer(observation["state"].float().unsqueeze(-1))
        return {self.output: self.drop(self.norm(x))}


def test_the_policy_is_judged_as_it_acts_and_only_the_value_is_in_training_mode() -> None:
    torch.manual_seed(0)
    policy, value = Dropping("policy.action", 2), Dropping("value", 1)
    networks = CustomNetwork(policy), CustomNetwork(value)
    config = TRPOConfig(**PLAIN | {"epochs": 2})
    agent = TRPO(*networks, {"action": Discrete(2)}, RolloutCache(1), config, seed=1)
    before = value.norm.running_mean
    assert before is not None
    before = before.clone()
    updated(agent, two_columns())
    assert not any(policy.ran)
    assert value.ran == [False, True, True]  # targets, then two epochs
    assert not torch.equal(value.norm.running_mean, before)  # type: ignore[arg-type]  # it has one
    assert not value.norm.training


def test_policy_and_value_share_no_weight_whatever_the_network_settings_say() -> None:
    settings = NetworkConfig(hidden=(4,), separate=False)
    agent = create("trpo", spaces_of({"move": Discrete(3)}), settings, {})
    policy = {id(p) for p in agent.network.parameters()}
    assert not policy & {id(p) for p in agent.critic.parameters()}
    assert {id(p) for p in agent.optimizer.parameters} == {id(p) for p in agent.critic.parameters()}


def test_a_final_observation_is_judged_by_the_values_own_memory_of_the_episode() -> None:
    agent = made("continuous", lstm=4)
    chunk = random_chunk(agent, "continuous", torch.Generator().manual_seed(1))
    last = torch.zeros_like(chunk.replaced)
    last[2, 1] = True
    shown = {"x": torch.full((5, 3, 2), 0.7)}
    chunk = chunk._replace(replaced=last, truncated=last, final_observation=shown)
    memory = {k.removeprefix("critic."): x[3, 1:2] for k, x in chunk.hidden_state.items()}
    own = HiddenState({k: x for k, x in memory.items() if not k.startswith("actor.")})
    expected = agent.critic({"x": shown["x"][0, :1]}, own)[0]["value"].item()
    assert values(agent.critic, chunk, "critic")[1][2, 1].item() == pytest.approx(expected)


def test_the_value_is_learned_from_its_own_memory() -> None:
    agent = made("continuous", lstm=4, lr=Schedule(0.0), minibatch=15)
    chunk = random_chunk(agent, "continuous", torch.Generator().manual_seed(1))
    middle = {k: x + i for i, (k, x) in enumerate(sorted(chunk.hidden_state.items()))}
    chunk = chunk._replace(hidden_state=middle, first=torch.zeros_like(chunk.first))
    known = {k.removeprefix("critic."): x for k, x in middle.items() if k.startswith("critic.")}
    batch = advantages(agent.critic, chunk._replace(hidden_state=known), GAMMA, LAM)
    expected = 0.5 * batch.advantage[chunk.valid].square().mean().item()
    assert updated(agent, chunk)["value_loss"] == pytest.approx(expected)


def test_recurrent_policy_and_value_each_carry_their_own_memory_while_acting() -> None:
    agent = made("continuous", lstm=4)
    _, memo = agent.act({"x": torch.ones(3, 2)}, agent.initial_state(3))
    carried = memo.hidden_state
    assert sorted(carried) == ["actor.body.c", "actor.body.h", "critic.body.c", "critic.body.h"]
    own = agent.critic({"x": torch.ones(3, 2)}, agent.critic.initial_state(3))[1]
    torch.testing.assert_close(carried["critic.body.h"], own["body.h"])


ACTIONS: dict[str, dict[str, Space]] = {
    "discrete, masked": {"move": Discrete(3)},
    "continuous": {"force": Box(-1, 1, (2,))},
    "mixed": {"move": MultiDiscrete([2, 3]), "force": Box(-1, 1, (1,))},
}


def spaces_of(actions: dict[str, Space]) -> Spaces:
    return Spaces({"x": Box(-9, 9, (2,))}, actions)


def made(kind: str, lstm: int = 0, **settings: Any) -> TRPO:
    network = NetworkConfig(hidden=(8,), lstm=lstm, init="default")
    agent = create("trpo", spaces_of(ACTIONS[kind]), network, PLAIN | settings)
    assert isinstance(agent, TRPO)
    return agent


def random_chunk(agent: TRPO, kind: str, generator: torch.Generator) -> Experience:
    """What the agent does in random states; rewards, ends and masks are random too."""
    rows, envs = 5, 3
    seen = {"x": 3 * torch.randn(rows + 1, envs, 2, generator=generator)}
    if kind == "discrete, masked":
        seen["action_mask"] = torch.rand(rows + 1, envs, 3, generator=generator) < 0.7
    state, first = agent.initial_state(envs), torch.rand(rows + 1, envs, generator=generator) < 0.2
    states, actions, memos = [state], [], []
    for t in range(rows):
        action, memo = agent.act(tree.index(seen, t), state.reset(first[t]))
        state = memo.hidden_state
        actions.append(action)
        memos.append(memo.tensors)
        states.append(state)
    flags = torch.rand(3, rows, envs, generator=generator)
    return Experience(
        observation=seen,
        hidden_state={k: torch.stack([s[k] for s in states]) for k in states[0]},
        first=first,
        action={k: torch.stack([a[k] for a in actions]) for k in actions[0]},
        memo={k: torch.stack([m[k] for m in memos]) for k in memos[0]},
        reward=torch.randn(rows, envs, generator=generator),
        terminated=flags[0] < 0.1,
        truncated=flags[1] < 0.1,
        valid=flags[2] < 0.9,
        final_observation=tree.index(seen, slice(0, rows)),
        replaced=torch.zeros(rows, envs, dtype=torch.bool),
    )


def distributions(agent: TRPO, chunk: Experience) -> list[Any]:
    """The policy in every row, as PyTorch's own distributions, from the parts of the action."""
    fresh = HiddenState({k: x[0] for k, x in chunk.hidden_state.items() if k.startswith("actor.")})
    state = HiddenState({k.removeprefix("actor."): x for k, x in fresh.items()})
    shown = tree.index(chunk.observation, slice(0, -1))
    out = {k: x.detach() for k, x in agent.network(shown, state, chunk.first[:-1])[0].items()}
    found: list[Any] = []
    for name, space in agent_spaces(agent).items():
        params = out[f"policy.{name}"]
        if isinstance(space, Box):
            found.append(
                Normal(params, out[f"log_std.{name}"].clamp(-20, 2).exp().expand_as(params))
            )
        elif isinstance(space, MultiDiscrete):
            found += [Categorical(logits=x) for x in params.split(space.nvec.tolist(), -1)]
        else:
            allowed = chunk.observation["action_mask"][:-1]
            nothing = ~allowed.any(-1, keepdim=True)
            found.append(Categorical(logits=params.masked_fill(~(allowed | nothing), -1e9)))
    return found


def agent_spaces(agent: TRPO) -> dict[str, Space]:
    names = set(agent.distribution.parts)
    return next(spaces for spaces in ACTIONS.values() if set(spaces) == names)


def exact_kl(old: list[Any], new: list[Any], valid: Tensor) -> float:
    """Mean over the rows that count of the sum over parts and dimensions."""
    total = torch.zeros(valid.shape)
    for p, q in zip(old, new, strict=True):
        part = kl_divergence(p, q)
        total += part.sum(-1) if part.dim() > valid.dim() else part
    return float(total[valid].mean())


@pytest.mark.parametrize("kind", ACTIONS)
def test_a_recurrent_policy_stays_in_the_trust_region(kind: str) -> None:
    generator = torch.Generator().manual_seed(2)
    agent = made(kind, lstm=6, max_kl=0.05)
    steps: list[float] = []
    for _ in range(12):
        chunk = random_chunk(agent, kind, generator)
        old = distributions(agent, chunk)
        metrics = updated(agent, chunk)
        steps.append(exact_kl(old, distributions(agent, chunk), chunk.valid))
        assert steps[-1] == pytest.approx(metrics["kl"], rel=1e-3, abs=1e-6)
    assert 0.02 < max(steps) <= 0.05


@pytest.mark.parametrize("kind", ACTIONS)
def test_no_step_of_hundreds_leaves_the_trust_region(kind: str) -> None:
    generator = torch.Generator().manual_seed(4)
    taken = 0.0
    agent = made(kind, minibatch=15)
    for i in range(334):
        agent.config = TRPOConfig(**PLAIN, max_kl=10.0 ** -(i % 4), damping=(0.0, 0.1)[i % 2])
        if i % 20 == 0:  # another policy, not only ever more certain ones
            agent = made(kind, minibatch=15)
            for p in agent.network.parameters():
                nn.init.normal_(p, std=1.0, generator=generator)
        chunk = random_chunk(agent, kind, generator)
        old = distributions(agent, chunk)
        metrics = updated(agent, chunk)
        kl = exact_kl(old, distributions(agent, chunk), chunk.valid)
        assert kl <= agent.config.max_kl * (1 + 1e-4)
        assert kl == pytest.approx(metrics["kl"], rel=1e-3, abs=1e-6)
        taken += metrics["line_search_success"]
    assert taken > 250
