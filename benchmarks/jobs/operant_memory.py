"""GiB that Atari transitions take in Operant's replay, above the process that holds none.

The replay is the one that a DQN on Pong makes, filled by chunks as in training. Nothing is learned,
and a network that is next to nothing chooses the actions, so that it is filled within a minute.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from benchmarks.jobs.definitions import TRAINING
from benchmarks.jobs.probe import arguments, cost, resident, tell
from operant.session.build import build
from operant.session.compose import compose
from operant.session.try_out import try_out


def main() -> None:
    asked = arguments()
    algorithm, settings = TRAINING["dqn-pong"]
    small = {"image": "flat", "hidden": [1]}
    agent = {**settings["agent"], "replay_size": asked.held}
    config, _ = compose(algorithm, {**settings, "network": small, "agent": agent}, recipe="none")
    container = build(try_out(replace(config, env=replace(config.env, num_envs=8))))
    memory: Any = container.memory  # that of a DQN
    container.explorer.update()
    before, begin, stored = resident(), time.perf_counter(), 0
    while stored < asked.held:
        chunk = container.explorer.update()
        memory.store(chunk)
        stored += int(chunk.valid.sum())
    seconds, gib = time.perf_counter() - begin, (resident() - before) / 2**30
    drawing = cost(lambda: memory.sample(32, 1), seconds=1.0)
    tell(asked, gib, gib=gib, sps=stored / seconds, held=stored, microseconds=1e6 * drawing)
    container.close()


if __name__ == "__main__":
    main()
