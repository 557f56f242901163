"""What recipes of value-based agents and discrete SAC reach, on three seeds."""

from __future__ import annotations

import pytest

from operant.recipes import RECIPES
from operant.session.build import build, build_evaluation
from operant.session.compose import compose
from operant.session.try_out import try_out

SOLVED, EPISODES = 475, 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("agent", ["dqn-per", "rainbow", "sac"])
def test_cartpole_is_solved_within_200k_steps(agent: str, seed: int) -> None:
    tree = {"env": {"id": "CartPole-v1"}, "seed": seed, "threads": 1, "sampler": "serial"}
    config, recipe = compose(agent, {**tree, "compile": "off"}, recipes=RECIPES)
    assert recipe is not None
    assert config.steps <= 200_000
    worker = build(try_out(config))
    worker.run(config.steps)
    worker.env.close()
    rewards = [info.reward for info in build_evaluation(config, EPISODES).run(worker.agent)]
    assert sum(rewards) / EPISODES >= SOLVED
