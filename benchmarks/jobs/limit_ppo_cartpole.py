"""What `ppo-cartpole` costs when nothing but its arithmetic is paid for: the serial limit.

The environment, the policy's forward pass and the gradient steps are timed bare, one after
another, with one thread and a fused Adam; their sum bounds any loop that does them in turn.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import gymnasium
import torch
from torch import nn

from benchmarks.jobs.probe import seconds

ENVS, LENGTH, MINIBATCHES, SIZE = 8, 128, 16, 256


def tower(outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
    )


def cost(work: Callable[[], object], duration: float) -> float:
    """Mean seconds of one call."""
    begin, calls = time.perf_counter(), 0
    while time.perf_counter() - begin < duration:
        work()
        calls += 1
    return (time.perf_counter() - begin) / calls


def main() -> None:
    torch.set_num_threads(1)
    duration = seconds() / 3
    env = gymnasium.make_vec("CartPole-v1", ENVS, vectorization_mode="vector_entry_point")
    env.reset(seed=0)
    actions = env.action_space.sample()
    policy, value = tower(2), tower(1)
    adam = torch.optim.Adam([*policy.parameters(), *value.parameters()], fused=True)
    few, many = torch.randn(ENVS, 4), torch.randn(SIZE, 4)

    @torch.inference_mode()
    def act() -> None:
        policy(few).exponential_().argmax(-1)

    def learn() -> None:
        adam.zero_grad(set_to_none=True)
        (policy(many).log_softmax(-1).mean() + value(many).square().mean()).backward()
        adam.step()

    step = cost(lambda: env.step(actions), duration) + cost(act, duration)
    whole = LENGTH * step + MINIBATCHES * cost(learn, duration)
    print(json.dumps({"sps": ENVS * LENGTH / whole}))


if __name__ == "__main__":
    main()
