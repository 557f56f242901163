"""Rainbow: DQN with atoms and noise, against hand-worked numbers and a slow reference."""

from __future__ import annotations

from copy import deepcopy
from math import ceil, exp, floor, log
from typing import Any

import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from torch import Tensor
from worked import Column, entries, masked, q_table, record, slopes

from operant.agents.dqn import DQN, DQNConfig, RainbowConfig
from operant.agents.modes import noisy_layers
from operant.agents.registry import AGENTS
from operant.core.errors import UsageError
from operant.core.experience import Experience
from operant.core.schedule import Schedule
from operant.core.spaces import Space, Spaces
from operant.memory.replay import ExperienceReplay
from operant.memory.replay_settings import make_replay
from operant.networks.assemble import NetworkConfig
from operant.networks.noisy import NoisyLinear

GAMMA, LOW, HIGH, ATOMS = 0.9, -1.0, 2.0, 4
VALUES = [-1.0, 0.0, 1.0, 2.0]
STATES = 3
CARTPOLE = Spaces({"x": Box(-1, 1, (2,))}, {"action": Discrete(2)})
PLAIN: dict[str, Any] = {"gamma": GAMMA, "max_grad_norm": 0, "learning_starts": 0, "double": False}
PLAIN |= {"atoms": ATOMS, "value_min": LOW, "value_max": HIGH}


def logits(seed: int, *shape: int) -> list[Any]:
    drawn = torch.randn(STATES, *shape, generator=torch.Generator().manual_seed(seed))
    return list(drawn.tolist())


ONLINE, OTHER = logits(1, 2 * ATOMS), logits(2, 2 * ATOMS)


def rainbow(tables: dict[str, Any] | None = None, **settings: Any) -> DQN:
    """An agent over tables of logits, whose target network has others."""
    config = DQNConfig(**(PLAIN | settings))
    memory = ExperienceReplay(1000, 0, seed=1)
    network = q_table(**(tables or {"action": ONLINE}))
    agent = DQN(network, {"action": Discrete(2)}, memory, config, seed=1)
    if tables is None:
        agent.target.load_state_dict(q_table(action=OTHER).state_dict())
    return agent


def softmax(row: list[float]) -> list[float]:
    total = sum(map(exp, row))
    return [exp(x) / total for x in row]


def by_choice(table: list[Any], state: int) -> list[list[float]]:
    """The probabilities of each choice."""
    row = table[state]
    return [softmax(row[:ATOMS]), softmax(row[ATOMS:])]


def expectation(probability: list[float]) -> float:
    return sum(p * z for p, z in zip(probability, VALUES, strict=True))


def slow_target(chunk: Experience, t: int, b: int, n: int, chooser: list[Any]) -> list[float]:
    """Up to `n` rewards, then each atom of what followed, given to its neighbours."""
    total, weight = 0.0, 1.0
    for k in range(t, min(t + n, len(chunk.reward))):
        total += weight * float(chunk.reward[k, b])
        weight *= 0.0 if chunk.terminated[k, b] else GAMMA
        if chunk.ended[k, b]:
            break
    state = int(chunk.observation["state"][k + 1, b])
    means = list(map(expectation, by_choice(chooser, state)))
    following = by_choice(OTHER, state)[means.index(max(means))]
    found = [0.0] * ATOMS
    for p, z in zip(following, VALUES, strict=True):
        place = min(max(total + weight * z, LOW), HIGH) - LOW  # atoms are one apart
        below, above = floor(place), ceil(place)
        found[below] += p * (1.0 if below == above else above - place)
        found[above] += p * (place - below)
    return found


def episodes(n: int) -> Experience:
    generator = torch.Generator().manual_seed(n)
    kind = torch.rand(7, 4, generator=generator)
    return record(*[Column([0] * 8, [0.0] * 7)] * 4)._replace(
        observation={"state": torch.randint(STATES, (8, 4), generator=generator)},
        action={"action": torch.randint(2, (7, 4), generator=generator)},
        reward=torch.randn(7, 4, generator=generator),
        terminated=kind < 0.2,
        truncated=kind > 0.8,
    )


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_targets_are_those_of_a_walk_atom_by_atom(n: int, double: bool) -> None:
    chunk, chooser = episodes(n), ONLINE if double else OTHER
    found = rainbow(n_step=n, double=double).targets(chunk)
    expected = [[slow_target(chunk, t, b, n, chooser) for b in range(4)] for t in range(7)]
    torch.testing.assert_close(found, torch.tensor(expected))


@pytest.mark.parametrize("flag", [{}, {"terminated": (0,)}, {"truncated": (0,)}])
@pytest.mark.parametrize("reward", [-9.0, 0.5, 9.0])
def test_the_probabilities_of_a_target_sum_to_one(reward: float, flag: Any) -> None:
    target = rainbow().targets(record(Column([0, 1], [reward], **flag)))
    assert target.sum().item() == pytest.approx(1)
    if abs(reward) > HIGH - LOW:  # all of it at the border
        assert target[0, 0, -1 if reward > 0 else 0].item() == pytest.approx(1)


def test_nothing_follows_the_end_of_the_task() -> None:
    target = rainbow().targets(record(Column([0, 1], [0.25], terminated=(0,))))
    assert target.flatten().tolist() == pytest.approx([0, 0.75, 0.25, 0])


def test_a_forbidden_action_is_never_the_best_next_one() -> None:
    free, agent = record(Column([0, 1], [0.0])), rainbow()
    means = list(map(expectation, by_choice(OTHER, 1)))
    allowed = [int(mean < max(means)) for mean in means]  # forbids what would have been chosen
    target = agent.targets(masked(free, [1, 1], allowed))
    following = by_choice(OTHER, 1)[allowed.index(1)]
    assert agent.head.mean(target.log()).item() == pytest.approx(GAMMA * expectation(following))


def slow_loss(agent: DQN, chunk: Experience) -> tuple[list[float], list[float]]:
    """The cross-entropy and the divergence of each first step."""
    entropies, divergences = [], []
    for b in range(chunk.reward.shape[1]):
        target = slow_target(chunk, 0, b, agent.config.n_step, OTHER)
        state, action = int(chunk.observation["state"][0, b]), int(chunk.action["action"][0, b])
        guess = by_choice(ONLINE, state)[action]
        pairs = list(zip(target, guess, strict=True))
        entropies.append(-sum(m * log(p) for m, p in pairs))
        divergences.append(sum(m * log(m / p) for m, p in pairs if m))
    return entropies, divergences


def test_the_loss_is_weighed_cross_entropy_and_the_error_the_divergence() -> None:
    agent, chunk = rainbow(n_step=3), episodes(3)
    weight = torch.tensor([1.0, 0.5, 0.25, 0.0])
    losses, metrics = agent.compute_loss(chunk, weight)
    entropies, divergences = slow_loss(agent, chunk)
    weighed = [w * x for w, x in zip(weight.tolist(), entropies, strict=True)]
    assert losses["q"].item() == pytest.approx(sum(weighed) / 4)
    assert metrics["td_error"].tolist() == pytest.approx(divergences, rel=1e-4)


def test_the_slope_reaches_the_atoms_of_the_action_taken_alone() -> None:
    agent = rainbow({"action": [[0.0] * 8] * STATES})
    chunk = record(Column([0, 1], [1.0], action=[1], terminated=(0,)))
    agent.compute_loss(chunk)[0]["q"].backward()
    pulled = [0.25, 0.25, 0.25 - 1, 0.25]
    assert slopes(agent.network, "action") == pytest.approx([0] * 4 + pulled + [0] * 16)


def test_metrics_tell_the_mean_and_the_probability_at_the_borders() -> None:
    agent = rainbow({"action": [[0.0] * 8] * STATES})
    columns = [Column([0, 1], [reward], terminated=(0,)) for reward in (7.0, 0.0)]
    _, metrics = agent.compute_loss(record(*columns))
    assert metrics["q_values"].item() == pytest.approx(0.5)  # of four even atoms
    assert metrics["border_mass"].item() == pytest.approx(0.5)  # all of the first, nothing else


def test_duelling_joins_value_and_centred_advantages_atom_by_atom() -> None:
    advantage, state_value = torch.tensor(ONLINE), torch.tensor(OTHER)[:, :ATOMS]
    tables = {"action": advantage.tolist(), "value": state_value.tolist()}
    agent = rainbow(tables, dueling=True)
    found = agent.predict(agent.network, record(Column([2, 1], [0.0])), (0, 1))["action"][0, 0]
    rows = advantage[2].view(2, ATOMS)
    joined = state_value[2] + rows - (rows[0] + rows[1]) / 2
    expected = torch.stack([torch.tensor(softmax(row.tolist())) for row in joined])
    torch.testing.assert_close(found.exp(), expected)


SURE = [[9.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0]]  # choices that give about -1 and 1


@pytest.mark.parametrize(("mask", "best"), [([1, 1], 1), ([1, 0], 0)])
def test_the_best_action_has_the_highest_mean_of_those_allowed(mask: list[int], best: int) -> None:
    agent = rainbow({"action": [SURE[0] + SURE[1]]}, epsilon=0.0)
    seen = {"state": torch.zeros(5, dtype=torch.int64), "action_mask": torch.tensor([mask] * 5)}
    for explore in (False, True):
        assert agent.act(seen, explore=explore)[0]["action"].tolist() == [best] * 5


def test_duelling_weighs_the_state_value_when_it_acts() -> None:
    # Advantages alone would prefer the first choice; the value makes its high atom unlikely.
    tables = {"action": [[0.0, 0, 0, 4, 0, 0, 3, 0]], "value": [[0.0, 0, 0, -9]]}
    agent = rainbow(tables, dueling=True)
    action, _ = agent.act({"state": torch.tensor([0])}, explore=False)
    assert (action["action"].item(), agent.head.acting) == (1, ("q.action", "value"))


@pytest.mark.parametrize(
    "space", [{"action": MultiDiscrete([3, 2])}, {"a": Discrete(2), "b": Discrete(3)}]
)
def test_distributions_of_several_parts_are_refused(space: dict[str, Space]) -> None:
    with pytest.raises(UsageError, match=r"atoms = 51: .* several parts .* use atoms = 0"):
        create("rainbow", Spaces(CARTPOLE.observation, space), NetworkConfig(), {})
    agent = create("rainbow", Spaces(CARTPOLE.observation, space), NetworkConfig(), {"atoms": 0})
    assert sum(map(len, agent.head.choices.values())) == 2


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(UsageError, match=r"value_min = 3: expected less than value_max = 3"):
        rainbow(value_min=3.0, value_max=3.0)


def test_a_box_is_refused_as_by_dqn() -> None:
    spaces = Spaces(CARTPOLE.observation, {"force": Box(-1, 1, (2,))})
    with pytest.raises(UsageError, match=r"'force'.*use sac or ppo"):
        create("rainbow", spaces, NetworkConfig(), {})


@pytest.mark.parametrize("atoms", [0, 1])
def test_fewer_than_two_atoms_are_q_values(atoms: int) -> None:
    agent = rainbow({"action": [[1.0, 2.0]] * 2}, atoms=atoms)
    target = agent.targets(record(Column([0, 1], [1.0])))
    assert target.tolist() == [[pytest.approx(1 + GAMMA * 2)]]


def test_rainbow_is_dqn_with_every_extension() -> None:
    assert AGENTS["rainbow"].cls is DQN
    config = RainbowConfig()
    switches = (config.double, config.dueling, config.noisy, config.prioritized)
    assert switches == (True,) * 4
    assert (config.n_step, config.atoms, config.priority_alpha) == (3, 51, 0.5)
    assert (config.value_min, config.value_max, config.epsilon(0)) == (-10.0, 10.0, 0.0)


SMALL: dict[str, Any] = {"learning_starts": 0, "batch_size": 4, "atoms": 5}


def noisy(**settings: Any) -> Any:
    network = NetworkConfig(hidden=(6,), init="default")
    return create("rainbow", CARTPOLE, network, SMALL | settings)


def noise(network: Any) -> Tensor:
    layers: list[Any] = list(noisy_layers(network))
    return torch.cat([torch.cat([x.noise_in, x.noise_out]) for x in layers])


def seen(rows: int = 3) -> dict[str, Tensor]:
    return {"x": torch.randn(rows, 2, generator=torch.Generator().manual_seed(rows))}


def test_exploring_draws_noise_anew_and_acting_for_the_best_has_none() -> None:
    agent, found = noisy(), []
    for explore in (True, True, False, True):
        agent.act(seen(), explore=explore)
        found.append(noise(agent.network))
    assert float(found[2].abs().sum()) == 0
    assert not torch.equal(found[0], found[1])
    assert not torch.equal(found[1], found[3])


def test_noise_is_what_explores() -> None:
    agent = noisy()
    actions = [agent.act({"x": torch.zeros(1, 2)})[0]["action"].item() for _ in range(60)]
    assert 5 < sum(actions) < 55
    best = {agent.act({"x": torch.zeros(1, 2)}, explore=False)[0]["action"].item() for _ in "12"}
    assert len(best) == 1


def filled(agent: Any) -> None:
    agent.memory.store(episodes(1)._replace(observation={"x": torch.randn(8, 4, 2)}))


def test_each_gradient_step_has_noise_of_its_own_in_both_networks() -> None:
    agent = noisy()
    filled(agent)
    found = []
    for _ in range(2):
        agent.learn_from(agent.memory.sample(4, agent.length), agent.due())
        found.append((noise(agent.network), noise(agent.target.network)))
    (online, target), (again, _) = found
    assert float(online.abs().sum()) > 0
    assert not torch.equal(online, target)
    assert not torch.equal(online, again)


def test_every_sigma_is_learned() -> None:
    agent = noisy(updates_per_step=0.1)
    filled(agent)
    agent.update()
    layers = [layer for layer in agent.network.modules() if isinstance(layer, NoisyLinear)]
    found: list[Any] = [p.grad for layer in layers for p in layer.parameters()]
    assert len(found) == 12
    assert min(float(x.abs().sum()) for x in found) > 0


def test_a_restored_agent_draws_the_noise_that_it_would_have_drawn() -> None:
    agents = [noisy(updates_per_step=0.1) for _ in range(2)]
    torch.manual_seed(0)
    filled(agents[0])
    agents[0].update()
    agents[0].act(seen())
    agents[1].load_state_dict(deepcopy(agents[0].state_dict()))
    found = []
    for agent in agents:
        torch.manual_seed(1)
        filled(agent)
        found.append((agent.update(), agent.act(seen(64))[0]["action"].tolist()))
    assert found[0] == found[1]


def test_what_was_drawn_is_drawn_again_by_its_divergence() -> None:
    config = DQNConfig(**PLAIN, prioritized=True, priority_alpha=1.0, batch_size=64)
    spaces = Spaces({}, {"action": Discrete(2)})
    memory = make_replay(config, spaces, seed=1)
    network = q_table(action=[[0.0] * 8] * 2)
    agent = DQN(network, spaces.action, memory, config, seed=1)
    # Certain of one atom, and halfway between two: log 4 and log 4 − log 2 from even ones.
    columns = [Column([0, 1], [reward], terminated=(0,)) for reward in (1.0, 0.5)]
    memory.store(record(*columns))
    agent.learn_from(memory.sample(64), agent.due())
    weight = memory.sample(64).weight
    assert weight is not None
    assert sorted(set(weight.tolist())) == pytest.approx([0.5**0.4, 1.0], rel=1e-4)


def test_the_distribution_comes_to_that_of_the_rewards() -> None:
    agent = rainbow({"action": [[0.0] * 8]}, lr=Schedule(0.05), updates_per_step=4.0)
    rewards = [1.0, -1.0, -1.0, 2.0] * 20
    agent.memory.store(record(Column([0] * 81, rewards, terminated=range(80))))
    agent.update()
    learned = entries(agent.network, "action").detach()[0, :ATOMS].softmax(-1)
    assert learned.tolist() == pytest.approx([0.5, 0.0, 0.25, 0.25], abs=0.08)


def test_a_dict_of_observations_and_a_memory_are_read_as_by_dqn() -> None:
    spaces = Spaces(dict(Dict({"x": Box(-1, 1, (2,)), "y": Box(-1, 1, (3,))})), CARTPOLE.action)
    agent = create("rainbow", spaces, NetworkConfig(hidden=(6,), lstm=4, separate=True), SMALL)
    shown = {"x": torch.ones(2, 2), "y": torch.ones(2, 3)}
    action, memo = agent.act(shown, agent.initial_state(2))
    assert action["action"].shape == (2,)
    assert all(float(x.abs().sum()) > 0 for x in memo.hidden_state.values())
