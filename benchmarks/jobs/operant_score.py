"""Operant's side of a score: trains one agent on one task, and evaluates it without exploration."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.suites import MAX_STEPS
from operant.recipes import RECIPES
from operant.session.build import build_evaluation
from operant.session.compose import compose
from operant.session.runner import Runner
from operant.session.session import Session

EPISODES, EVAL_SEED = 20, 1_000


def main() -> None:
    env, agent, steps, num_envs, seed, contender = sys.argv[1:7]
    recipe = "auto" if contender == "operant-recipe" else "none"
    count = int(steps)
    tree = {
        "steps": count,
        "seed": int(seed),
        "threads": 1,
        "compile": "off",
        "sampler": "serial",
        "env": {"id": env, "num_envs": int(num_envs)},
        "eval": {"every": count, "episodes": 1, "max_steps": MAX_STEPS},
    }
    config, found = compose(agent, tree, recipe=recipe, recipes=RECIPES)
    if recipe == "auto" and found is None:
        print(json.dumps({"skipped": "there is no recipe"}))
        return
    with tempfile.TemporaryDirectory() as root, Session.create(config, Path(root), []) as session:
        runner = Runner(session)
        try:
            runner.train()
            played = build_evaluation(session.config, EPISODES, EVAL_SEED).run(
                runner.container.agent
            )
        finally:
            runner.close()
    rewards = [info.reward for info in played]
    print(json.dumps({"score": sum(rewards) / len(rewards), "steps": runner.step}))


if __name__ == "__main__":
    main()
