"""What nobody's start can do without: importing torch and Gymnasium, and making CartPole."""

from __future__ import annotations

import time

import gymnasium
import torch

if __name__ == "__main__":
    gymnasium.make_vec("CartPole-v1", 8, vectorization_mode="vector_entry_point").reset(seed=0)
    torch.nn.Linear(4, 64)
    print(f"first update at {time.time()}", flush=True)
