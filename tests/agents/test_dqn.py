"""DQN against hand-worked numbers and a slow reference."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from worked import Column, column, entries, masked, record, slopes
from worked import q_table as table
from worked import q_totalling as totalling

from operant.agents.dqn import DQN, DQNConfig
from operant.core.errors import UsageError
from operant.core.experience import Experience
from operant.core.protocols import Network
from operant.core.schedule import Schedule
from operant.core.spaces import Space, Spaces
from operant.memory.replay import ExperienceReplay
from operant.memory.replay_settings import make_replay
from operant.networks.assemble import NetworkConfig

GAMMA = 0.9
ONLINE = [[1.0, 2.0], [8.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
TARGET = [[10.0, 20.0], [30.0, 50.0], [60.0, 40.0], [70.0, 80.0]]
PLAIN: dict[str, Any] = {"gamma": GAMMA, "max_grad_norm": 0, "learning_starts": 0}


def dqn(network: Network, space: Space | None = None, **settings: Any) -> DQN:
    config = DQNConfig(**(PLAIN | settings))
    memory = ExperienceReplay(1000, config.learning_starts, seed=1)
    return DQN(network, {"action": space or Discrete(2)}, memory, config, seed=1)


def apart(**settings: Any) -> DQN:
    """An agent whose online and target networks prefer different actions."""
    agent = dqn(table(action=ONLINE), **settings)
    agent.target.load_state_dict(table(action=TARGET).state_dict())
    return agent


def slow_target(chunk: Experience, t: int, b: int, n: int, worth: list[float]) -> float:
    """Up to `n` rewards of the row's own episode, then the worth of what followed."""
    target, weight = 0.0, 1.0
    for k in range(t, min(t + n, len(chunk.reward))):
        target += weight * float(chunk.reward[k, b])
        weight *= GAMMA
        if chunk.terminated[k, b]:
            return target
        if chunk.truncated[k, b]:
            break
    return target + weight * worth[int(chunk.observation["state"][k + 1, b])]


@pytest.mark.parametrize(
    ("double", "ended", "expected"),
    [
        (False, {}, 1 + GAMMA * 50),  # the target network's own best
        (True, {}, 1 + GAMMA * 30),  # the online network's choice, judged by the target network
        (True, {"truncated": (0,)}, 1 + GAMMA * 30),  # the clock ended it: it keeps its worth
        (True, {"terminated": (0,)}, 1.0),
        (False, {"terminated": (0,), "truncated": (0,)}, 1.0),
    ],
)
def test_the_target_of_one_step(double: bool, ended: Any, expected: float) -> None:
    agent = apart(double=double)
    target = agent.targets(record(Column([0, 1], [1.0], **ended)))
    assert target.item() == pytest.approx(expected)


@pytest.mark.parametrize(("double", "expected"), [(False, 1 + GAMMA * 30), (True, 1 + GAMMA * 50)])
def test_a_forbidden_action_is_never_the_best_next_one(double: bool, expected: float) -> None:
    agent = apart(double=double)
    allowed = [0, 1] if double else [1, 0]  # forbids what would have been chosen
    chunk = masked(record(Column([0, 1], [1.0])), [1, 1], allowed)
    assert agent.targets(chunk).item() == pytest.approx(expected)


def test_the_next_actions_mask_is_that_of_the_next_row() -> None:
    chunk = masked(record(Column([0, 1], [1.0])), [1, 0], [1, 1])
    assert apart(double=False).targets(chunk).item() == pytest.approx(1 + GAMMA * 50)


@pytest.mark.parametrize(
    ("column_of", "expected"),
    [
        (Column([0, 0, 0, 1], [1, 2, 4]), 1 + GAMMA * (2 + GAMMA * (4 + GAMMA * 50))),
        (Column([0, 0, 1, 0], [1, 2, 1e6], terminated=(1,)), 1 + GAMMA * 2),
        (Column([0, 0, 1, 0], [1, 2, 1e6], truncated=(1,)), 1 + GAMMA * (2 + GAMMA * 50)),
        (Column([0, 1, 0, 0], [1, 0, 1e6], truncated=(0,), invalid=(1,)), 1 + GAMMA * 50),
        (Column([0, 1, 0, 0], [1, 0, 1e6], terminated=(0,), invalid=(1,)), 1),
        (Column([0, 1, 0, 0], [1, 1e6, 1e6], invalid=(1,)), 1 + GAMMA * 50),  # lost
    ],
)
def test_the_target_of_three_steps(column_of: Column, expected: float) -> None:
    agent = apart(double=False, n_step=3)
    assert agent.targets(record(column_of))[0, 0].item() == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_targets_over_many_episodes_are_those_of_a_walk_through_each(n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    kind = torch.rand(9, 5, generator=generator)
    chunk = record(*[Column([0] * 10, [0.0] * 9)] * 5)._replace(
        observation={"state": torch.randint(4, (10, 5), generator=generator)},
        reward=torch.randn(9, 5, generator=generator),
        terminated=kind < 0.2,
        truncated=kind > 0.8,
    )
    found = apart(double=False, n_step=n).targets(chunk)
    worth = [max(row) for row in TARGET]
    expected = [[slow_target(chunk, t, b, n, worth) for b in range(5)] for t in range(9)]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_the_worth_of_several_parts_adds_up() -> None:
    network = table(action=[[0.0] * 5, [1.0, 4.0, 2.0, 10.0, 30.0]])
    agent = dqn(network, MultiDiscrete([3, 2]))
    assert agent.targets(record(Column([0, 1], [1.0]))).item() == pytest.approx(1 + GAMMA * 34)
    action, _ = agent.act({"state": torch.tensor([1])}, explore=False)
    assert action["action"].tolist() == [[1, 1]]


def test_duelling_centres_advantages_on_the_state_value() -> None:
    network = table(action=[[1.0, 3.0], [2.0, 8.0]], value=[[10.0], [20.0]])
    agent = dqn(network, dueling=True)
    chunk = record(Column([0, 1], [1.0], action=[1]))
    loss, metrics = agent.compute_loss(chunk)
    assert metrics["q_values"].item() == pytest.approx(10 + 1)
    assert agent.targets(chunk).item() == pytest.approx(1 + GAMMA * (20 + 3))
    loss["q"].backward()
    assert slopes(network, "action")[:2] == pytest.approx(
        [0.5, -0.5]
    )  # pulled up: the value by one, these half


@pytest.mark.parametrize(
    ("reward", "expected", "slope"),
    [(2.5, 0.5 * 0.5**2, -0.5), (12.0, 10 - 0.5, -1.0), (-8.0, 10 - 0.5, 1.0)],
)
def test_the_loss_is_hubers_and_its_slope_reaches_the_action_taken_alone(
    reward: float, expected: float, slope: float
) -> None:
    network = table(action=ONLINE)
    agent = dqn(network)
    loss, _ = agent.compute_loss(record(Column([0, 1], [reward], action=[1], terminated=(0,))))
    loss["q"].backward()
    assert loss["q"].item() == pytest.approx(expected)
    assert slopes(network, "action") == pytest.approx([0, slope] + [0] * 6)


def test_no_gradient_reaches_what_the_target_is_made_of() -> None:
    network = table(action=ONLINE)
    agent = dqn(network)
    agent.compute_loss(record(Column([0, 1], [1.0])))[0]["q"].backward()
    assert slopes(network, "action")[2:4] == [0.0, 0.0]
    assert all(p.grad is None and not p.requires_grad for p in agent.target.network.parameters())


def windows() -> Experience:
    """A window of three: fresh, ending in between, a wasted row, and a new episode."""
    total = torch.full((1, 1, 1), 100.0)
    flags: Any = {"terminated": (0,), "invalid": (1,), "first": (0, 2)}
    return record(Column([2, 4, 3, 5], [1, 1e6, 1], **flags), total=total)


def test_memory_is_fresh_where_an_episode_begins_inside_a_window() -> None:
    agent = dqn(totalling(action=[1.0, 2.0]), sequence=3)
    assert column(agent.targets(windows()))[::2] == pytest.approx([1, 1 + GAMMA * 2 * (3 + 5)])
    q = agent.predict(agent.network, windows(), (0, 3))["action"]
    assert q[:, 0, 0].tolist() == [2.0, 6.0, 3.0]


def test_memory_goes_on_from_what_was_stored() -> None:
    agent = dqn(totalling(action=[1.0, 2.0]), sequence=2)
    chunk = record(Column([2, 4, 3], [0, 0], first=()), total=torch.full((1, 1, 1), 100.0))
    assert column(agent.targets(chunk)) == pytest.approx([GAMMA * 2 * 106, GAMMA * 2 * 109])


def test_a_wasted_row_weighs_nothing_in_the_loss() -> None:
    agent = dqn(totalling(action=[1.0, 2.0]), sequence=3)
    loss, _ = agent.compute_loss(windows())
    errors = [abs(2 - 1), abs(3 - (1 + GAMMA * 16))]
    assert loss["q"].item() == pytest.approx(sum(e - 0.5 for e in errors) / 2)


def test_a_window_learns_its_first_steps_and_uses_the_others_for_rewards() -> None:
    agent = dqn(totalling(action=[1.0, 1.0]), sequence=2, n_step=2)
    chunk = record(Column([1, 1, 1, 1], [1, 10, 100]), total=torch.zeros(1, 1, 1))
    loss, _ = agent.compute_loss(chunk)
    targets = [1 + GAMMA * (10 + GAMMA * 3), 10 + GAMMA * (100 + GAMMA * 4)]
    errors = [targets[0] - 1, targets[1] - 2]
    assert loss["q"].item() == pytest.approx(sum(e - 0.5 for e in errors) / 2)


def fill(agent: DQN, steps: int) -> None:
    agent.memory.store(record(Column([0] * (steps + 1), [5.0] * steps, terminated=range(steps))))


def test_a_step_of_learning_moves_the_value_towards_its_target() -> None:
    network = table(action=[[0.0, 0.0]])
    agent = dqn(network, updates_per_step=1.0, lr=Schedule(0.1))
    fill(agent, 3)
    agent.update()
    assert entries(network, "action")[0].tolist() == pytest.approx([0.3, 0.0], rel=1e-2)


def test_the_target_network_moves_every_so_many_updates_and_never_between() -> None:
    agent = apart(updates_per_step=1.0, target_every=3, lr=Schedule(0.1))
    fill(agent, 2)
    agent.update()
    held = next(agent.target.network.parameters()).tolist()
    fill(agent, 1)
    agent.update()
    moved, online = next(agent.target.network.parameters()), next(agent.network.parameters())
    assert (held, agent.updates) == (TARGET, 3)
    assert moved.tolist() == online.tolist()


def test_the_target_network_moves_by_tau() -> None:
    agent = apart(updates_per_step=1.0, target_every=1, tau=0.25, lr=Schedule(0.1))
    fill(agent, 1)
    agent.update()
    online = next(agent.network.parameters())
    expected = 0.75 * torch.tensor(TARGET) + 0.25 * online
    torch.testing.assert_close(next(agent.target.network.parameters()), expected)


def test_updates_follow_the_steps_beyond_those_that_learning_waits_for() -> None:
    agent = dqn(table(action=[[0.0, 0.0]]), learning_starts=10, updates_per_step=0.5)
    done = []
    for steps in (10, 1, 1, 1, 7):
        fill(agent, steps)
        agent.update()
        done.append(agent.updates)
    assert done == [0, 0, 1, 1, 5]


def test_a_restored_agent_owes_no_updates_and_goes_on_bit_for_bit() -> None:
    agents = [dqn(table(action=[[0.0, 1.0]]), updates_per_step=1.0) for _ in range(2)]
    fill(agents[0], 5)
    agents[0].update()
    agents[1].load_state_dict(deepcopy(agents[0].state_dict()))
    assert agents[1].update() == {}
    seen = []
    for agent in agents:
        fill(agent, 2)
        action, _ = agent.act({"state": torch.zeros(64, dtype=torch.int64)})
        seen.append((agent.update(), action["action"].tolist(), agent.actor.acted, agent.updates))
    assert seen[0] == seen[1]


def test_a_wasted_step_earns_no_update() -> None:
    agent = dqn(table(action=[[0.0, 0.0]]), updates_per_step=1.0)
    chunk = record(Column([0, 0, 0], [1, 0], terminated=(0,), invalid=(1,)))
    agent.memory.store(chunk)
    assert agent.update()["n_updates"] == 1


def test_epsilon_falls_with_the_steps_explored_and_with_no_others() -> None:
    agent = dqn(table(action=[[0.0, 1.0]]), epsilon=Schedule(1.0, 0.0, 400), updates_per_step=1.0)
    rows = {"state": torch.zeros(100, dtype=torch.int64)}
    agent.act(rows, explore=False)
    fill(agent, 1)
    rates = []
    for _ in range(3):
        agent.act(rows)
        fill(agent, 1)
        rates.append(agent.update()["exploration_rate"])
    assert rates == pytest.approx([0.75, 0.5, 0.25])


@pytest.mark.parametrize(("epsilon", "share"), [(0.0, 1.0), (0.5, 0.75), (1.0, 0.5)])
def test_epsilon_is_the_share_of_random_actions(epsilon: float, share: float) -> None:
    agent = dqn(table(action=[[0.0, 1.0]]), epsilon=Schedule(epsilon))
    action, _ = agent.act({"state": torch.zeros(4000, dtype=torch.int64)})
    assert action["action"].float().mean().item() == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_a_forbidden_action_is_never_taken(epsilon: float) -> None:
    agent = dqn(table(action=[[0.0, 1.0]]), epsilon=Schedule(epsilon))
    mask = torch.tensor([[1, 0]]).expand(500, 2)
    action, _ = agent.act({"state": torch.zeros(500, dtype=torch.int64), "action_mask": mask})
    assert action["action"].sum() == 0


def test_a_continuous_action_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"'force'.*Box.*use sac or ppo"):
        DQN.output_space({"force": Box(-1, 1, (2,))})


def test_learning_waits_for_a_whole_window() -> None:
    agent = dqn(totalling(action=[1.0, 2.0]), sequence=16, learning_starts=2, updates_per_step=1.0)
    chunk = record(*[Column([0] * 5, [1.0] * 4)] * 8, total=torch.zeros(5, 8, 1))
    agent.memory.store(chunk)
    assert agent.update() == {}


def test_a_separate_value_network_keeps_up_while_acting() -> None:
    config = NetworkConfig(hidden=(4,), lstm=3, separate=True)
    spaces = Spaces({"x": Box(-1, 1, (2,))}, {"action": Discrete(2)})
    agent = create("dqn", spaces, config, {"dueling": True})
    _, memo = agent.act({"x": torch.ones(1, 2)}, agent.initial_state(1))
    moved = {name.split(".")[0]: x.abs().max().item() > 0 for name, x in memo.hidden_state.items()}
    assert moved == {"policy": True, "value": True}


def test_each_windows_loss_is_weighed() -> None:
    agent = dqn(table(action=[[0.0, 0.0]] * 2))
    columns = [Column([0, 1], [reward], terminated=(0,)) for reward in (0.5, 0.2)]
    losses, _ = agent.compute_loss(record(*columns), torch.tensor([1.0, 0.25]))
    assert losses["q"].item() == pytest.approx((0.5**2 / 2 + 0.25 * 0.2**2 / 2) / 2)


def test_what_was_drawn_is_drawn_again_by_how_wrong_it_was() -> None:
    config = DQNConfig(**PLAIN, prioritized=True, priority_alpha=1.0, batch_size=64)
    spaces = Spaces({}, {"action": Discrete(2)})
    memory = make_replay(config, spaces, seed=1)
    agent = DQN(table(action=[[0.0, 0.0]] * 2), spaces.action, memory, config, seed=1)
    columns = [Column([0, 1], [reward], terminated=(0,)) for reward in (0.5, -2.0)]
    memory.store(record(*columns))
    agent.learn_from(memory.sample(64), agent.due())
    weight = memory.sample(64).weight
    assert weight is not None
    # One is drawn four times as often, and weighs so much less, by the power of beta.
    assert sorted(set(weight.tolist())) == pytest.approx([0.25**0.4, 1.0], rel=1e-4)


def test_actions_are_random_at_first_and_the_best_when_the_schedule_is_over() -> None:
    agent = dqn(table(action=[[0.0, 1.0]]), epsilon=Schedule(1.0, 0.0, 1000))
    rows = {"state": torch.zeros(1000, dtype=torch.int64)}
    best = [agent.act(rows)[0]["action"].float().mean().item() for _ in range(2)]
    assert best == [pytest.approx(0.5, abs=0.08), 1.0]
