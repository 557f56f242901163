"""Figures of evaluation, by their names in the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from operant.core.experience import Metrics, TrajInfo
from operant.core.protocols import Agent
from operant.session.build import build_evaluation
from operant.session.run_settings import RunConfig


def summary(episodes: list[TrajInfo]) -> Metrics:
    """Mean and standard deviation of the returns of episodes, and their mean length."""
    rewards = [e.reward for e in episodes]
    metrics: Metrics = {
        "eval/mean_reward": float(np.mean(rewards)),
        "eval/std_reward": float(np.std(rewards)),
        "eval/mean_ep_length": float(np.mean([e.length for e in episodes])),
    }
    names = episodes[0].agents or {}
    for name in names:
        each = [(e.agents or {})[name] for e in episodes]
        metrics[f"eval/mean_reward/{name}"] = float(np.mean(each))
    if any(e.success is not None for e in episodes):
        metrics["eval/success_rate"] = float(np.mean([bool(e.success) for e in episodes]))
    return metrics


def evaluate_now(
    config: RunConfig,
    agent: Agent,
    stopping: Callable[[], bool],
    episodes: int | None = None,
    seed: int | None = None,
    env: Mapping[str, Any] | None = None,
) -> Metrics:
    """Figures of whole episodes, also with other settings `env`; empty once `stopping()`."""
    config = replace(config, env=replace(config.env, **(env or {})))
    evaluation = build_evaluation(config, episodes or config.eval.episodes, seed)
    evaluation.stopping = stopping
    played = evaluation.run(agent)
    return summary(played) if played else {}
