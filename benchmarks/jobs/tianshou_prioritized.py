"""Tianshou's side of `prioritized-replay`; runs in an environment of its own."""

# mypy: ignore-errors
# Typed by a library that is not installed where the types are checked.
import numpy as np
from tianshou.data import Batch, PrioritizedReplayBuffer

from benchmarks.jobs.probe import arguments, cost, tell

CAPACITY, SIZE, SEEN = 1_000_000, 256, 4


def main() -> None:
    asked = arguments()
    replay = PrioritizedReplayBuffer(CAPACITY, alpha=0.6, beta=0.4)
    shown = np.zeros(SEEN, np.float32)
    fields = {"obs": shown, "act": 0, "rew": 1.0, "obs_next": shown, "info": {}}
    replay.add(Batch(**fields, terminated=False, truncated=False))
    # Adding one by one would take a minute: the arrays are there, so only count and weigh them.
    replay._size = CAPACITY
    replay._meta.done[:] = False
    random = np.random.default_rng(0)
    replay.weight[np.arange(CAPACITY)] = random.random(CAPACITY) + 0.1

    def pair() -> None:
        _, places = replay.sample(SIZE)
        replay.update_weight(places, random.random(SIZE))

    tell(asked, 1.0 / cost(pair, asked.seconds, asked.warm))


if __name__ == "__main__":
    main()
