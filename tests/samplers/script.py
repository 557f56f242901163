"""An agent that knows what it should see: it acts by the observation and counts its own steps."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from counter import Counter, CounterVectorEnv
from gymnasium.vector import AutoresetMode

from operant.core.experience import (
    Arrays,
    Decision,
    EnvStep,
    HiddenState,
    Memo,
    Metrics,
    Tensors,
)
from operant.core.protocols import EnvironmentManager
from operant.envs.managers.native import NativeEnvManager
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.providers.gymnasium import GymEnv

ENVS, SEED = 3, 7
MODES = ("simple", "next-step", "same-step", "disabled")


class Script:
    """Plays Counter. Its hidden state is the number of steps since the episode began."""

    memory: Any = None
    network: Any = None
    actor: Any = None
    updates = 0

    def __init__(self) -> None:
        self.explored: list[bool] = []
        self.learned: list[Tensors] = []

    def initial_state(self, batch_size: int) -> HiddenState:
        return HiddenState(steps=torch.zeros(batch_size, 1))

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        assert hidden_state is not None
        self.explored.append(explore)
        seen, steps = observation["observation"], hidden_state["steps"]
        assert steps.squeeze(-1).tolist() == seen[:, 2].tolist(), "a state of another episode"
        action = choose(seen.long())
        return {"action": action}, Memo({"steps": steps.squeeze(-1)}, HiddenState(steps=steps + 1))

    def observe(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None:
        pass

    def update(self) -> Metrics:
        return {}

    def compile(self) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


def choose(seen: Any) -> Any:
    """An action from `[seed, episode, step, sum]`."""
    seed, episode, step = seen[..., 0], seen[..., 1], seen[..., 2]
    return (seed + episode + episode % 2 * step) % 3


def manager_of(mode: str, count: int = ENVS) -> EnvironmentManager:
    """Counters under this autoreset mode, or under the simple manager."""
    if mode == "simple":
        return SimpleEnvManager([partial(_counter, i) for i in range(count)])
    kind = AutoresetMode[mode.upper().replace("-", "_")]
    return NativeEnvManager(lambda seed: CounterVectorEnv(count, kind))


def _counter(index: int) -> GymEnv:
    return GymEnv(Counter(), index)


def by_hand(seed: int, steps: int) -> tuple[list[Any], list[tuple[int, float]]]:
    """Transitions of one Counter, and length and return of its episodes."""
    env, seen, ended = Counter(), [], []
    before, total, length = env.reset(seed=seed)[0], 0.0, 0
    for _ in range(steps):
        action = int(choose(before.astype(int)))
        after, reward, terminated, truncated, _ = env.step(action)
        seen.append((before.tolist(), action, reward, terminated, truncated, after.tolist()))
        total, length = total + reward, length + 1
        before = after
        if terminated or truncated:
            ended.append((length, total))
            before, total, length = env.reset()[0], 0.0, 0
    return seen, ended
