"""An agent whose noise remembers, which is one more array that acting carries on."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from fragile import LENGTH, SEED, make, shares
from script import Script
from torch import Generator, nn

from operant.core.experience import Arrays, Decision, HiddenState, Memo, Tensors
from operant.core.protocols import Rows
from operant.envs.managers.simple import SimpleEnvManager
from operant.samplers.alternating import AlternatingSampler
from operant.samplers.asynchronous import AsyncSampler
from operant.samplers.collector import Collecting
from operant.samplers.parallel import ParallelSampler
from operant.samplers.serial import SerialSampler

ENVS = 4


class NoisyActor:
    """Acts by Ornstein–Uhlenbeck noise alone: each draw adds to nine tenths of the last."""

    def __init__(self, seed: int, remote: bool = False) -> None:
        self.rows: Rows | None = None
        self.remote = remote  # as if it lived on another device, where nothing else can draw
        self.network = nn.Linear(1, 1)
        self.generator = Generator().manual_seed(seed)
        self.noise = np.zeros(ENVS)

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        start, stop, _ = self.rows or (0, len(observation["observation"]), ENVS)
        if explore:
            assert not self.remote
            drawn = torch.randn(ENVS, generator=self.generator, dtype=torch.float64)
            self.noise = 0.9 * self.noise + drawn.numpy()
        noise = torch.from_numpy(self.noise[start:stop].copy())
        return {"action": (10 * noise).long() % 3}, Memo({"noise": noise}, HiddenState())

    def carried(self) -> Arrays:
        return {"generator": self.generator.get_state().numpy(), "noise": self.noise}

    def carry_on(self, carried: Arrays) -> None:
        if "generator" in carried:
            self.generator.set_state(torch.from_numpy(carried["generator"].copy()))
        if "noise" in carried:
            self.noise = carried["noise"].copy()

    state_dict, load_state_dict = carried, carry_on

    def portable(self) -> NoisyActor:
        return NoisyActor(self.generator.initial_seed()) if self.remote else self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "generator": self.generator.get_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, generator=Generator())
        self.generator.set_state(state["generator"])


class NoisyAgent(Script):
    """Its actor is all that there is of it."""

    def __init__(self, seed: int = SEED, remote: bool = False) -> None:
        super().__init__()
        self.actor = NoisyActor(seed, remote)

    def initial_state(self, batch_size: int) -> HiddenState:
        return HiddenState()

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        decision: Decision = self.actor.act(observation, hidden_state, explore)
        return decision

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.actor.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.actor.load_state_dict(state)


def sampler_of(kind: str, seed: int = SEED, remote: bool = False) -> Any:
    """Four Counters under this sampler, with the agent of this seed."""
    agent, plan = NoisyAgent(seed, remote), Collecting(LENGTH, seed)
    if kind in ("parallel", "async"):
        return (ParallelSampler if kind == "parallel" else AsyncSampler)(shares(), agent, plan)
    fns = [partial(make, i) for i in range(ENVS)]
    if kind == "serial":
        return SerialSampler(SimpleEnvManager(fns, seed), agent, LENGTH, seed)
    halves = [SimpleEnvManager(fns[i : i + 2], seed, i) for i in (0, 2)]
    return AlternatingSampler(halves, agent, plan)
