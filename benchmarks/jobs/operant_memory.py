"""GiB that 50k Atari transitions take in Operant's replay, above the process that holds none.

The replay is the one that a DQN on Pong makes, filled by chunks as in training. Nothing is learned,
and a network that is next to nothing chooses the actions, so that it is filled within a minute.
"""

from __future__ import annotations

import time
from dataclasses import replace

from benchmarks.jobs.definitions import HELD, TRAINING
from benchmarks.jobs.probe import arguments, resident, tell
from operant.recipes.compose import compose
from operant.session.build import build
from operant.session.preview import try_out


def main() -> None:
    asked = arguments()
    algorithm, settings = TRAINING["dqn-pong"]
    small = {"image": "flat", "hidden": [1]}
    config, _ = compose(algorithm, {**settings, "network": small}, recipe="none")
    config, *_ = try_out(replace(config, env=replace(config.env, num_envs=8)))
    container = build(config)
    container.explorer.update()
    before, begin, stored = resident(), time.perf_counter(), 0
    while stored < HELD:
        chunk = container.explorer.update()
        container.memory.store(chunk)
        stored += int(chunk.valid.sum())
    seconds, gib = time.perf_counter() - begin, (resident() - before) / 2**30
    tell(asked, gib, gib=gib, sps=stored / seconds, held=stored)
    container.close()


if __name__ == "__main__":
    main()
