"""Operant's side of `prioritized-replay`: draw 256 of a million, and weigh them anew."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.jobs.probe import arguments, cost, tell
from operant.core.experience import Experience, HiddenState
from operant.core.schedule import Schedule
from operant.memory.prioritized import PrioritizedReplay

CAPACITY, SIZE, SEEN, CHUNK = 1_000_000, 256, 4, 10_000


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)  # as Operant chooses for vectors
    memory = PrioritizedReplay(CAPACITY, 1, 0, 0.6, Schedule(0.4))
    filled = chunk()
    for _ in range(CAPACITY // CHUNK):
        memory.store(filled)
    generator = torch.Generator().manual_seed(0)

    def pair(size: int = SIZE) -> None:
        drawn = memory.sample(size, 1)
        memory.prioritize(drawn.place, torch.rand(size, generator=generator))

    for _ in range(20):
        pair(CAPACITY // 10)  # priorities of all sizes, as after a while of learning
    whole = cost(pair, asked.seconds, asked.warm)
    drawing = cost(lambda: memory.tree.draw(memory.random.random(SIZE)), asked.seconds / 5)
    sampling = cost(lambda: memory.sample(SIZE, 1), asked.seconds / 5)
    parts = {"drawing": drawing, "reading": sampling - drawing, "weighing": whole - sampling}
    tell(asked, 1.0 / whole, spent={name: round(1e6 * x, 2) for name, x in parts.items()})


def chunk() -> Experience:
    """Steps of one environment whose episode never ends."""
    seen, flags = np.zeros((CHUNK + 1, 1, SEEN), np.float32), np.zeros((CHUNK, 1), bool)
    return Experience(
        observation={"observation": torch.from_numpy(seen)},
        hidden_state=HiddenState(),
        first=torch.zeros(CHUNK + 1, 1, dtype=torch.bool),
        action={"action": torch.zeros(CHUNK, 1, dtype=torch.int64)},
        memo={},
        reward=torch.ones(CHUNK, 1),
        terminated=torch.from_numpy(flags),
        truncated=torch.from_numpy(flags),
        valid=torch.ones(CHUNK, 1, dtype=torch.bool),
        final_observation={"observation": torch.zeros(CHUNK, 1, SEEN)},
        replaced=torch.from_numpy(flags),
    )


if __name__ == "__main__":
    main()
