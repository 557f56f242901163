"""Run directories with a configuration and a log, without training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from operant.config import dump_yaml

DEFAULTS: dict[str, Any] = {
    "algorithm": "ppo",
    "steps": 1_000,
    "seed": 1,
    "device": "cpu",
    "threads": 1,
    "compile": "off",
    "sampler": "serial",
    "log_every": 100,
    "agent": {"lr": 0.001, "gamma": 0.99, "clip": 0.2},
    "env": {"id": "CartPole-v1", "num_envs": 8, "manager": "simple", "workers": 0, "kwargs": {}},
    "network": {"hidden": [64, 64], "separate": None, "normalize": False},
    "eval": {"every": 100, "episodes": 20},
    "checkpoint": {"seconds": 30.0},
}


def merged(tree: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A tree of settings with others in it."""
    found = dict(tree)
    for key, value in changes.items():
        inner = found.get(key)
        found[key] = merged(inner, value) if isinstance(inner, dict) else value
    return found


def logged(
    run: Path, values: Sequence[float | None], at: Sequence[int] = (), **settings: Any
) -> Path:
    """A run whose log has these values at every hundredth step, or at these steps."""
    run.mkdir(parents=True)
    (run / "config.yaml").write_text(dump_yaml(merged(DEFAULTS, settings)))
    lines = [
        {"step": step, "rollout/ep_rew_mean": value, "eval/mean_reward": value}
        for step, value in zip(at or range(0, 100 * len(values), 100), values, strict=True)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run
