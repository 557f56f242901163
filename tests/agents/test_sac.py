"""SAC against hand-worked numbers and brute force over actions."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import Tensor
from worked import (
    Column,
    masked,
    policy_table,
    policy_totalling,
    q_table,
    q_totalling,
    record,
    sloped,
    slopes,
)

from operant.agents.sac import SAC, SACConfig
from operant.agents.target_entropy import TargetEntropy
from operant.core.errors import UsageError
from operant.core.experience import Experience
from operant.core.schedule import Schedule
from operant.core.spaces import Space, Spaces
from operant.memory.replay import ExperienceReplay
from operant.memory.replay_settings import make_replay
from operant.networks.assemble import NetworkConfig
from operant.networks.custom import CustomNetwork
from operant.networks.ensemble import Ensemble

GAMMA, ALPHA = 0.9, 0.5
ONE: Space = Box(-1, 1, (1,))
TWO: dict[str, Space] = {"choice": Discrete(2)}
FIXED = -20.0  # a log standard deviation so small that the action is the mean's tanh
PLAIN: dict[str, Any] = {"gamma": GAMMA, "alpha": ALPHA, "learning_starts": 0, "batch_size": 4}


def sac(
    actor: CustomNetwork, critics: list[CustomNetwork], spaces: dict[str, Space], **settings: Any
) -> SAC:
    config = SACConfig(**(PLAIN | settings))
    memory = ExperienceReplay(1000, config.learning_starts, seed=1)
    return SAC(actor, Ensemble(critics), spaces, memory, config, seed=1)


def worth(agent: SAC, chunk: Experience) -> Tensor:
    """The critics' targets, with noise from the agent's generator."""
    return agent.targets(chunk, agent.noise(chunk, len(chunk.reward)))


def actor_loss(agent: SAC, chunk: Experience) -> tuple[Tensor, Tensor]:
    """The policy's loss and entropy, with noise from the agent's generator."""
    losses, metrics = agent.actor_loss(chunk, agent.noise(chunk, agent.window))
    return losses["actor"], metrics["entropy"]


LOGITS = [[0.0, 1.0, -1.0], [0.5, 0.0, 2.0]]
LOW = [[1.0, 9.0, 2.0], [4.0, 5.0, 9.0]]
HIGH = [[2.0, 3.0, 7.0], [8.0, 1.0, 6.0]]


def choosing(**settings: Any) -> SAC:
    """Three choices, and critics each of which is lower somewhere."""
    critics = [q_table(choice=LOW), q_table(choice=HIGH)]
    return sac(policy_table(choice=LOGITS), critics, {"choice": Discrete(3)}, **settings)


def brute_value(state: int, allowed: tuple[int, ...] = (0, 1, 2)) -> float:
    """The expectation over choices of the lower worth minus alpha times the log-probability."""
    weights = [math.exp(LOGITS[state][a]) for a in allowed]
    chances = [w / sum(weights) for w in weights]
    lower = [min(LOW[state][a], HIGH[state][a]) for a in allowed]
    return sum(p * (q - ALPHA * math.log(p)) for p, q in zip(chances, lower, strict=True))


def chosen(column_of: Column, name: str = "choice") -> Experience:
    chunk = record(column_of)
    return chunk._replace(action={name: chunk.action["action"]})


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ({}, 1 + GAMMA * brute_value(1)),
        ({"truncated": (0,)}, 1 + GAMMA * brute_value(1)),
        ({"terminated": (0,)}, 1.0),
    ],
)
def test_the_target_of_one_step_is_the_brute_force_expectation(ended: Any, expected: float) -> None:
    target = worth(choosing(), chosen(Column([0, 1], [1.0], **ended)))
    assert target.item() == pytest.approx(expected)


def test_targets_come_from_the_target_critics() -> None:
    agent = choosing()
    for critic in members(agent.critics.network):
        critic.load_state_dict(q_table(choice=[[1000.0] * 3] * 2).state_dict())
    target = worth(agent, chosen(Column([0, 1], [1.0])))
    assert target.item() == pytest.approx(1 + GAMMA * brute_value(1))


@pytest.mark.parametrize(
    ("column_of", "expected"),
    [
        (Column([0, 0, 0, 1], [1, 2, 4]), 1 + GAMMA * (2 + GAMMA * (4 + GAMMA * brute_value(1)))),
        (Column([0, 0, 1, 0], [1, 2, 1e6], terminated=(1,)), 1 + GAMMA * 2),
        (
            Column([0, 0, 1, 0], [1, 2, 1e6], truncated=(1,)),
            1 + GAMMA * (2 + GAMMA * brute_value(1)),
        ),
        (
            Column([0, 1, 0, 0], [1, 0, 1e6], truncated=(0,), invalid=(1,)),
            1 + GAMMA * brute_value(1),
        ),
        (Column([0, 1, 0, 0], [1, 1e6, 1e6], invalid=(1,)), 1 + GAMMA * brute_value(1)),  # lost
    ],
)
def test_the_target_of_three_steps(column_of: Column, expected: float) -> None:
    assert worth(choosing(n_step=3), chosen(column_of))[0, 0].item() == pytest.approx(expected)


def test_a_forbidden_choice_is_worth_nothing_and_adds_no_entropy() -> None:
    chunk = masked(chosen(Column([0, 1], [1.0])), [1, 1, 1], [1, 1, 0])
    expected = 1 + GAMMA * brute_value(1, allowed=(0, 1))
    assert worth(choosing(), chunk).item() == pytest.approx(expected)


def test_the_actors_loss_is_minus_its_soft_value_by_its_own_critics() -> None:
    agent = choosing()
    members(agent.critics.target.network)[0].load_state_dict(
        q_table(choice=[[0.0] * 3] * 2).state_dict()
    )
    loss, entropy = actor_loss(agent, chosen(Column([0, 1], [1.0])))
    chances = torch.tensor(LOGITS[0]).softmax(-1)
    assert loss.item() == pytest.approx(-brute_value(0))
    assert entropy.item() == pytest.approx(-(chances * chances.log()).sum().item())


def test_the_actors_gradient_is_the_actors_alone() -> None:
    agent = choosing()
    chunk = chosen(Column([0, 1], [1.0]))
    (gradient,), _ = agent.descents[1].differentiate(chunk, agent.noise(chunk, 1))
    assert gradient is not None
    assert gradient[0].abs().max() > 0
    before = deepcopy(agent.critics.state_dict()["network"])
    agent.actor_optimizer.apply([gradient], 0)
    assert all(torch.equal(x, before[k]) for k, x in agent.critics.network.state_dict().items())


def test_the_critics_loss_leaves_actor_and_targets_without_gradient() -> None:
    agent = choosing()
    losses, _ = agent.compute_loss(chosen(Column([0, 1], [1.0], action=[2])))
    (losses["critic0"] + losses["critic1"]).backward()
    assert next(agent.network.parameters()).grad is None
    targets = list(agent.critics.target.network.parameters())
    assert len(targets) == 2
    assert all(p.grad is None and not p.requires_grad for p in targets)


def test_each_critic_is_pulled_to_the_same_target_at_the_choice_taken() -> None:
    agent = choosing()
    losses, _ = agent.compute_loss(chosen(Column([0, 1], [3.0], action=[2], terminated=(0,))))
    assert losses["critic0"].item() == pytest.approx(0.5 * (2 - 3) ** 2)
    assert losses["critic1"].item() == pytest.approx(0.5 * (7 - 3) ** 2)


def test_the_policy_leans_to_the_choice_of_higher_worth() -> None:
    actor = policy_table(choice=[[0.0, 0.0], [0.0, 0.0]])
    critics = [q_table(choice=[[1.0, 2.0]] * 2), q_table(choice=[[5.0, 6.0]] * 2)]
    agent = sac(actor, critics, {"choice": Discrete(2)}, alpha=1e-6)
    actor_loss(agent, chosen(Column([0, 1], [0.0])))[0].backward()
    assert slopes(actor, "choice")[:2] == pytest.approx(
        [0.25, -0.25]
    )  # p (1 - p) times the difference


def test_entropy_evens_out_a_policy_of_equal_worths() -> None:
    actor = policy_table(choice=[[0.0, 1.0], [0.0, 0.0]])
    critics = [q_table(choice=[[3.0, 3.0]] * 2) for _ in range(2)]
    agent = sac(actor, critics, {"choice": Discrete(2)})
    actor_loss(agent, chosen(Column([0, 1], [0.0])))[0].backward()
    # The slope of the entropy by the second logit is -p (1 - p) log(p / (1 - p)).
    p = 1 / (1 + math.exp(-1))
    assert slopes(actor, "choice")[:2] == pytest.approx([-ALPHA * p * (1 - p), ALPHA * p * (1 - p)])


MEANS = [[0.3, FIXED], [-0.4, FIXED]]


def moving(actor: list[list[float]] | None = None, **settings: Any) -> SAC:
    """One continuous action, and critics that cross."""
    critics = [
        sloped(value=[[1.0], [2.0]], slope=[[3.0], [4.0]]),
        sloped(value=[[1.5], [0.5]], slope=[[-2.0], [-1.0]]),
    ]
    return sac(policy_table(amount=actor or MEANS), critics, {"amount": ONE}, **settings)


def moved(amounts: list[float], **flags: Any) -> Experience:
    states = [0] * len(amounts) + [1]
    chunk = record(Column(states, [1.0] * len(amounts), **flags))
    return chunk._replace(action={"amount": torch.tensor(amounts)[:, None, None]})


def test_the_target_of_a_continuous_action_is_the_lower_of_both_critics() -> None:
    target = worth(moving(alpha=1e-9), moved([0.1]))
    lower = min(2 + 4 * math.tanh(-0.4), 0.5 - math.tanh(-0.4))
    assert target.item() == pytest.approx(1 + GAMMA * lower, rel=1e-5)


def test_the_target_of_a_continuous_action_counts_entropy_as_worth() -> None:
    agent = moving([[0.3, -1.0], [-0.4, -0.5]])
    noise = torch.empty(1, 1, 1).normal_(generator=deepcopy(agent.generator)).item()
    x = -0.4 + math.exp(-0.5) * noise
    log_prob = -0.5 * noise**2 + 0.5 - 0.5 * math.log(2 * math.pi)
    log_prob -= math.log(1 - math.tanh(x) ** 2)
    lower = min(2 + 4 * math.tanh(x), 0.5 - math.tanh(x))
    expected = 1 + GAMMA * (lower - ALPHA * log_prob)
    assert worth(agent, moved([0.1])).item() == pytest.approx(expected, rel=1e-5)


def test_critics_of_continuous_actions_are_judged_at_the_action_taken() -> None:
    losses, _ = moving().compute_loss(moved([0.1], terminated=(0,)))
    assert losses["critic0"].item() == pytest.approx(0.5 * (1 + 3 * 0.1 - 1) ** 2)
    assert losses["critic1"].item() == pytest.approx(0.5 * (1.5 - 2 * 0.1 - 1) ** 2)


@pytest.mark.parametrize("slope", [2.0, -2.0])
def test_a_continuous_policy_climbs_its_critics(slope: float) -> None:
    critics = [sloped(value=[[0.0]] * 2, slope=[[slope]] * 2) for _ in range(2)]
    actor = policy_table(amount=MEANS)
    agent = sac(actor, critics, {"amount": ONE}, alpha=1e-9)
    actor_loss(agent, moved([0.1]))[0].backward()
    assert slopes(actor, "amount")[0] == pytest.approx(-slope * (1 - math.tanh(0.3) ** 2), rel=1e-4)


def hybrid() -> SAC:
    critics = [
        sloped("q.", value=[[1.0]] * 2, slope=[[2.0]] * 2, choice=[[10.0, 20.0]] * 2)
        for _ in range(2)
    ]
    actor = policy_table(amount=MEANS, choice=[[0.0, math.log(3)]] * 2)
    return sac(actor, critics, {"amount": ONE, "choice": Discrete(2)}, alpha=1e-9)


def test_an_action_of_both_kinds_is_worth_the_sum_of_its_parts() -> None:
    agent = hybrid()
    chunk = moved([0.1], terminated=(0,))
    chunk = chunk._replace(action=chunk.action | {"choice": torch.tensor([[1]])})
    losses, _ = agent.compute_loss(chunk)
    assert losses["critic0"].item() == pytest.approx(0.5 * ((1 + 0.2) + 20 - 1) ** 2)


def test_the_target_of_an_action_of_both_kinds_is_the_sum_too() -> None:
    chunk = moved([0.1])._replace(action={"amount": torch.zeros(1, 1, 1)})
    expected = 1 + 2 * math.tanh(-0.4) + (10 * 0.25 + 20 * 0.75)
    assert worth(hybrid(), chunk).item() == pytest.approx(1 + GAMMA * expected, rel=1e-5)


def test_entropies_of_both_kinds_add_up() -> None:
    agent = hybrid()
    logits, normals = torch.tensor([0.0, math.log(3)]), torch.tensor([0.0, -1.0])
    params = {"policy.amount": normals, "policy.choice": logits}
    noise = 0.7
    _, entropy = agent.sample_actions(params, {}, {"amount": torch.tensor([noise])})
    normal = 0.5 * noise**2 - 1 + 0.5 * math.log(2 * math.pi)
    slope = math.log(1 - math.tanh(math.exp(-1) * noise) ** 2)
    choice = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert entropy.item() == pytest.approx(normal + slope + choice, rel=1e-5)


@pytest.mark.parametrize(
    ("spaces", "settings", "expected"),
    [
        ({"a": Box(-1, 1, (3,))}, {}, -3.0),
        ({"a": Box(-1, 1, (2, 2))}, {}, -4.0),
        ({"a": Discrete(4)}, {}, 0.3 * math.log(4)),
        ({"a": MultiDiscrete([3, 2])}, {"discrete_entropy": 0.5}, 0.5 * math.log(6)),
        ({"a": Discrete(4), "b": Box(-1, 1, (2,))}, {}, 0.3 * math.log(4) - 2),
        ({"a": Discrete(4), "b": Box(-1, 1, (2,))}, {"target_entropy": -0.7}, -0.7),
    ],
)
def test_the_entropy_to_keep_follows_the_action(
    spaces: dict[str, Space], settings: Any, expected: float
) -> None:
    config = SACConfig(**settings)
    target = TargetEntropy(spaces, config.target_entropy, config.discrete_entropy)
    assert target.unmasked() == pytest.approx(expected)


def fill(agent: SAC, steps: int) -> None:
    agent.memory.store(chosen(Column([0] * (steps + 1), [5.0] * steps, terminated=range(steps))))


@pytest.mark.parametrize(("target", "sign"), [(0.1, -1), (5.0, 1)])
def test_the_temperature_falls_while_the_policy_is_random_enough(target: float, sign: int) -> None:
    agent = choosing(target_entropy=target, lr=Schedule(0.01))
    fill(agent, 1)
    metrics = agent.update()
    assert metrics["ent_coef"] == pytest.approx(ALPHA * math.exp(sign * 0.01), rel=1e-4)


def test_a_fixed_temperature_stays() -> None:
    agent = choosing(target_entropy=5.0, learn_alpha=False)
    fill(agent, 1)
    assert agent.update()["ent_coef"] == pytest.approx(ALPHA)


def test_target_critics_move_by_tau_at_each_update() -> None:
    agent = choosing(tau=0.25, lr=Schedule(0.1))
    fill(agent, 1)
    agent.update()
    networks = (agent.critics.network, agent.critics.target.network)
    for before, *pair in zip((LOW, HIGH), *map(members, networks), strict=True):
        online, target = (next(member.parameters()) for member in pair)
        torch.testing.assert_close(target, 0.75 * torch.tensor(before) + 0.25 * online)
        assert not torch.equal(online, torch.tensor(before))


def test_an_update_moves_each_critic_towards_the_target() -> None:
    agent = choosing(lr=Schedule(0.1))
    fill(agent, 1)
    agent.update()
    worth = [next(c.parameters())[0, 0].item() for c in members(agent.critics.network)]
    assert worth == pytest.approx([1.1, 2.1], rel=1e-4)


def test_updates_follow_the_steps_beyond_those_that_learning_waits_for() -> None:
    agent = choosing(learning_starts=4, updates_per_step=2.0)
    done = []
    for steps in (4, 1, 3):
        fill(agent, steps)
        agent.update()
        done.append(agent.updates)
    assert done == [0, 2, 8]


def test_a_restored_agent_owes_no_updates_and_goes_on_bit_for_bit() -> None:
    agents = [choosing(lr=Schedule(0.1)) for _ in range(2)]
    fill(agents[0], 3)
    agents[0].update()
    agents[1].load_state_dict(deepcopy(agents[0].state_dict()))
    assert agents[1].update() == {}
    seen = []
    for agent in agents:
        fill(agent, 2)
        action, _ = agent.act({"state": torch.zeros(64, dtype=torch.int64)})
        seen.append((agent.update(), action["choice"].tolist(), agent.actor.acted, agent.updates))
    assert seen[0] == seen[1]


def shares(agent: SAC, explore: bool = True) -> list[float]:
    action, _ = agent.act({"state": torch.zeros(3000, dtype=torch.int64)}, explore=explore)
    return [(action["choice"] == a).float().mean().item() for a in range(3)]


def test_actions_are_even_at_first_then_as_likely_as_the_policy_says() -> None:
    agent = choosing(learning_starts=3000)
    assert shares(agent) == pytest.approx([1 / 3] * 3, abs=0.03)
    assert shares(agent) == pytest.approx(torch.tensor(LOGITS[0]).softmax(-1).tolist(), abs=0.03)


def test_without_exploring_the_likeliest_action_is_taken_and_not_counted() -> None:
    agent = choosing(learning_starts=3000)
    assert shares(agent, explore=False) == [0.0, 1.0, 0.0]
    assert agent.actor.acted == 0


def test_a_forbidden_choice_is_never_taken() -> None:
    for starts in (0, 10**6):
        agent = choosing(learning_starts=starts)
        mask = torch.tensor([[1, 0, 1]]).expand(500, 3)
        action, _ = agent.act({"state": torch.zeros(500, dtype=torch.int64), "action_mask": mask})
        assert (action["choice"] == 1).sum() == 0


def test_an_action_without_bounds_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"'force'.*bounds.*use ppo"):
        SAC.output_space({"force": Box(-math.inf, math.inf, (2,))})


def remembering() -> SAC:
    rows = ([0.0, 0.0], [1.0, 3.0], [9.0, 9.0])  # an even actor, a critic, and a higher one
    actor, critics = policy_totalling(choice=rows[0]), [q_totalling(choice=r) for r in rows[1:]]
    return sac(actor, critics, {"choice": Discrete(2)}, sequence=3, alpha=1e-9)


def memories(**totals: list[float]) -> dict[str, Tensor]:
    names = {"actor": "actor", "critic0": "critic.0", "critic1": "critic.1"}
    return {f"{names[k]}.total": torch.tensor(x)[None, :, None] for k, x in totals.items()}


def members(network: Any) -> Any:
    """The critics in an ensemble."""
    return network.members()


def test_each_network_goes_on_from_a_memory_of_its_own_and_is_fresh_where_told() -> None:
    flags: Any = {"truncated": (0,), "invalid": (1,), "first": (2,)}
    hidden = memories(actor=[1.0, 1.0], critic0=[100.0, 100.0], critic1=[1000.0, -1000.0])
    chunk = record(*[Column([2, 4, 3, 5], [1, 1e6, 1], **flags)] * 2, **hidden)
    chunk = chunk._replace(action={"choice": chunk.action["action"]})
    target = worth(remembering(), chunk)
    lower = [2 * (100 + 6), 9 * (-1000 + 6)]  # of the first critic, the even mean of 1 and 3
    assert target[0].tolist() == pytest.approx([1 + GAMMA * x for x in lower], rel=1e-5)
    assert target[2].tolist() == pytest.approx([1 + GAMMA * 2 * (3 + 5)] * 2, rel=1e-5)


def test_a_wasted_row_weighs_nothing_in_critics_and_actor() -> None:
    flags: Any = {"terminated": (0, 2), "invalid": (1,), "first": (0, 2)}
    hidden = memories(actor=[0.0], critic0=[0.0], critic1=[0.0])
    chunk = record(Column([2, 4, 3, 5], [1, 1e6, 1], **flags), **hidden)
    chunk = chunk._replace(action={"choice": chunk.action["action"]})
    losses, _ = remembering().compute_loss(chunk)
    assert losses["critic0"].item() == pytest.approx(0.5 * ((2 - 1) ** 2 + (3 - 1) ** 2) / 2)
    loss, _ = actor_loss(remembering(), chunk)
    assert loss.item() == pytest.approx(-(2 * 2 + 2 * 3) / 2, rel=1e-5)


def test_acting_carries_the_memory_of_actor_and_critics() -> None:
    agent = remembering()
    state = agent.initial_state(1)
    for seen in (2, 5):
        _, memo = agent.act({"state": torch.tensor([seen])}, state)
        state = memo.hidden_state
    assert {name: x.item() for name, x in state.items()} == dict.fromkeys(
        ("actor.total", "critic.0.total", "critic.1.total"), 7.0
    )


def test_critics_of_separate_networks_keep_up_while_acting() -> None:
    config = NetworkConfig(hidden=(4,), lstm=3, separate=True)
    spaces = Spaces({"x": Box(-1, 1, (2,))}, {"amount": ONE, "choice": Discrete(2)})
    agent = create("sac", spaces, config, {})
    _, memo = agent.act({"x": torch.ones(1, 2)}, agent.initial_state(1))
    assert all(x.abs().max().item() > 0 for x in memo.hidden_state.values())


def renamed(chunk: Experience) -> Experience:
    return chunk._replace(action={"choice": chunk.action["action"]})


def test_each_windows_loss_is_weighed() -> None:
    critics = [q_table(choice=[[0.0] * 2] * 2) for _ in range(2)]
    agent = sac(policy_table(choice=[[0.0] * 2] * 2), critics, TWO)
    columns = [Column([0, 1], [reward], terminated=(0,)) for reward in (0.5, 0.2)]
    losses, _ = agent.compute_loss(renamed(record(*columns)), torch.tensor([1.0, 0.25]))
    assert losses["critic1"].item() == pytest.approx((0.5**2 / 2 + 0.25 * 0.2**2 / 2) / 2)


def test_what_was_drawn_is_drawn_again_by_how_wrong_both_critics_were() -> None:
    config = SACConfig(**PLAIN | {"batch_size": 64}, prioritized=True, priority_alpha=1.0)
    memory = make_replay(config, Spaces({}, TWO), seed=1)
    critic = Ensemble([q_table(choice=[[guess] * 2] * 2) for guess in (1.0, -1.0)])
    agent = SAC(policy_table(choice=[[0.0] * 2] * 2), critic, TWO, memory, config, seed=1)
    columns = [Column([0, 1], [reward], terminated=(0,)) for reward in (0.0, 4.0)]
    memory.store(renamed(record(*columns)))
    agent.learn_from(memory.sample(64), agent.due())
    weight = memory.sample(64).weight
    assert weight is not None
    # Wrong by 1 and 1, and by 3 and 5.
    assert sorted(set(weight.tolist())) == pytest.approx([0.25**0.4, 1.0], rel=1e-4)
