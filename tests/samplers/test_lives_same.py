"""Lives lost in worker processes are those lost in one process."""

from __future__ import annotations

from typing import Any

import pytest

from operant.core import tree
from operant.core.experience import TrajInfo
from operant.session.build import build
from operant.session.compose import compose
from operant.session.try_out import try_out

SETTINGS: dict[str, Any] = {
    "env": {"id": "ALE/Breakout-v5", "num_envs": 2, "workers": 2, "episodic_life": True},
    "agent": {"length": 200},
    "network": {"precision": "fp32"},
    "compile": "off",
    "threads": 1,
}


def collected(sampler: str) -> tuple[dict[str, bytes], list[TrajInfo]]:
    env = SETTINGS["env"] | {"manager": "auto" if sampler == "alternating" else "simple"}
    worker = build(try_out(compose("a2c", SETTINGS | {"env": env, "sampler": sampler})[0]))
    chunk, finished = worker.sampler.obtain_samples(0)
    names = ("reward", "terminated", "first", "observation", "valid")
    seen = {k: x.numpy().tobytes() for k, x in tree.leaves({n: getattr(chunk, n) for n in names})}
    assert int(chunk.ended.sum()) > len(finished) > 0
    worker.close()
    return seen, finished


@pytest.mark.parametrize("sampler", ["parallel", "alternating"])
def test_samplers_lose_the_same_lives(sampler: str) -> None:
    assert collected(sampler) == collected("serial")
