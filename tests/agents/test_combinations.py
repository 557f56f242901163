"""Every agent with every network, observation, mask and action: it trains, or says why not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from combinations import (
    ALL,
    BASES,
    NETWORKS,
    OBSERVATIONS,
    REFUSED,
    STEPS,
    TRAINABLE,
    Combination,
    covering,
    glimpse,
    learning,
    page,
    values_of,
)
from torch import nn

from operant.agents import actor
from operant.agents.ddpg import DDPG
from operant.agents.maddpg import MADDPG
from operant.agents.sac import SAC
from operant.core import tree
from operant.core.errors import EnvironmentFault, UsageError
from operant.envs.probe_tasks import best_return, random_return
from operant.networks.image import NatureCNN, SmallCNN
from operant.session.build import build
from operant.session.try_out import try_out

PAGE = Path(__file__).parents[2] / "docs" / "combinations.md"
LOSSES = {
    "a2c": ("policy_gradient_loss", "value_loss", "entropy_loss"),
    "ppo": ("policy_gradient_loss", "value_loss", "entropy_loss"),
    "trpo": ("policy_gradient_loss", "value_loss", "entropy_loss", "kl"),
    "vtrace": ("policy_gradient_loss", "value_loss", "entropy_loss"),
    "acer": ("policy_gradient_loss", "value_loss", "entropy_loss"),
    "dqn": ("loss",),
    "rainbow": ("loss",),
    "ddpg": ("critic_loss", "actor_loss"),
    "maddpg": ("critic_loss", "actor_loss"),
    "sac": ("critic_loss", "actor_loss", "ent_coef_loss"),
}
FEW = covering()
OTHERS = [c for c in TRAINABLE if c not in FEW]
ROUNDS = 8  # evaluations in a run, the first good one of which ends it


def untouched(agent: object) -> list[str]:
    """Learned parameters without a gradient; target networks are frozen, and so not learned."""
    parameters: dict[str, nn.Parameter] = {}
    agent = agent.members[""] if isinstance(agent, MADDPG) else agent
    parts = vars(agent) | (vars(agent.critics) if isinstance(agent, SAC | DDPG) else {})
    for path, part in tree.leaves(parts):
        if isinstance(part, nn.Module):
            parameters |= {f"{path}.{name}": p for name, p in part.named_parameters()}
        elif isinstance(part, nn.Parameter):
            parameters[path] = part
    learned = {name: p for name, p in parameters.items() if p.requires_grad}
    return [k for k, p in learned.items() if p.grad is None or not float(p.grad.abs().sum()) > 0]


def needed(combination: Combination) -> float:
    """The way from random to best: more than one part of a dict, seen or done, is worth alone.

    A Gaussian that runs into the bounds of its Box stops at 0.8.
    """
    return 0.7 if combination.action in ("Box", "Dict") else 0.85


def solved(combination: Combination, memory: bool) -> float:
    """How far of the way from random to best play a run gets until it is enough."""
    variant = combination.variant(memory)
    random, best = random_return(variant), best_return(variant)
    worker = build(try_out(learning(combination, memory)))
    share, steps = 0.0, STEPS[combination.agent] // ROUNDS
    for part in range(ROUNDS):
        worker.run(steps, part * steps)
        returns = [info.reward for info in worker.sampler.evaluate_agents(part)]
        share = (sum(returns) / len(returns) - random) / (best - random)
        if share > needed(combination):
            break
    worker.env.close()
    return share


@pytest.mark.parametrize("combination", TRAINABLE, ids=str)
def test_it_trains(combination: Combination) -> None:
    worker = build(try_out(glimpse(combination)))
    worker.run(1)
    _, metrics = worker.drain()
    assert all(math.isfinite(metrics[name]) for name in LOSSES[combination.agent])
    assert untouched(worker.agent) == []
    # A forbidden action raises, also among those at random and explored on the way here.
    assert len(worker.sampler.evaluate_agents(0)) == 16
    worker.env.close()


@pytest.mark.parametrize("combination", REFUSED, ids=str)
def test_it_is_refused_with_the_reason(combination: Combination) -> None:
    config = glimpse(combination)
    with pytest.raises(UsageError) as refused:
        try_out(config)
    said = str(refused.value).removeprefix(f"{combination.agent} on {config.env.id}: ")
    assert said == combination.refusal


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("network", NETWORKS)
def test_the_network_reads_as_the_table_says(network: str, observation: str) -> None:
    worker = build(try_out(glimpse(Combination("ppo", network, observation, False, "Discrete"))))
    images = [x for x in worker.env.spaces.observation.values() if len(x.shape or ()) == 3]
    convolutions = [
        part for part in worker.network.modules() if isinstance(part, NatureCNN | SmallCNN)
    ]
    assert len(convolutions) == (0 if network == "MLP" else len(images))
    assert len(images) >= (network == "CNN" or observation == "image + vector")
    assert worker.network.recurrent == (network == "LSTM")
    worker.env.close()


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("network", NETWORKS)
def test_rainbow_combines_as_dqn_does(network: str, observation: str, mask: bool) -> None:
    test_it_trains(Combination("rainbow", network, observation, mask, "Discrete"))


def test_only_masks_over_nothing_maxima_over_a_box_and_slopes_of_choices_are_refused() -> None:
    assert (len(ALL), len(TRAINABLE), len(REFUSED)) == (648, 441, 207)


@pytest.mark.parametrize("agent", sorted({c.agent for c in TRAINABLE if c.mask}))
@pytest.mark.parametrize("greedy", [False, True])
def test_an_agent_that_overlooks_the_mask_is_found_out(
    agent: str, greedy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = "Discrete" if agent == "acer" else "MultiDiscrete"
    worker = build(try_out(glimpse(Combination(agent, "MLP", "Box", True, action))))
    monkeypatch.setattr(actor, "masks_of", lambda *_: {})
    with pytest.raises(EnvironmentFault, match="forbidden by the action mask"):
        worker.sampler.evaluate_agents(0) if greedy else worker.run(1)


@pytest.mark.parametrize("combination", FEW, ids=str)
def test_it_solves_the_probe(combination: Combination) -> None:
    assert solved(combination, combination.network == "LSTM") > needed(combination)


def test_every_agent_solves_the_probe_with_every_value_of_every_axis() -> None:
    met: set[Any] = set().union(*map(values_of, FEW))
    assert met == set().union(*map(values_of, TRAINABLE))
    assert len(FEW) <= 4 * len(BASES)


@pytest.mark.parametrize("agent", BASES)
def test_without_a_memory_what_was_seen_before_is_lost(agent: str) -> None:
    found = [c for c in TRAINABLE if c.agent == agent and c.action in ("Discrete", "Box")]
    assert solved(found[0], memory=True) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("combination", OTHERS, ids=str)
def test_every_other_one_solves_it_too(combination: Combination) -> None:
    assert solved(combination, combination.network == "LSTM") > needed(combination)


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(), (
        "run `python tests/agents/combinations.py > docs/combinations.md`"
    )
