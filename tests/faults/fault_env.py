"""An environment that goes wrong in a chosen way at a chosen moment, and a file that proves it.

Free of torch, so that workers of environments stay small.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces as gs

FINE = np.zeros(2, np.float32)
LEAK = 1 << 26  # bytes that are allocated at once
STALL = 0.15  # seconds
Step = tuple[Any, Any, bool, bool, dict[str, Any]]


class Steady(gymnasium.Env[Any, Any]):
    """Nothing ever goes wrong: ten steps of reward 1, numbered in hundredths."""

    observation_space: Any = gs.Box(-1, 1, (2,), np.float32)
    action_space = gs.Discrete(2)
    t = 0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.t = 0
        return FINE, {}

    def step(self, action: Any) -> Step:
        self.t += 1
        return FINE + self.t / 100, 1.0, False, self.t >= 10, {}


def throw() -> None:
    raise RuntimeError("the simulator broke")


def leak() -> None:
    """Take memory until a limit, a little above what is taken already, is reached."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 4 * LEAK
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    taken = []
    while True:
        taken.append(bytearray(LEAK))


def fork_then_die() -> None:
    """Leave a child behind that holds whatever was open, as simulators in processes do."""
    if os.fork() == 0:
        time.sleep(4)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


def write_to_outputs() -> None:
    """Print as Python does and as a library in C does."""
    print("a word of the simulator", flush=True)
    for output in (1, 2):
        os.write(output, b"a word of its library\n")


DEEDS: dict[str, Callable[[], Any]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(7),
    "sys exit": lambda: sys.exit(0),
    "throw": throw,
    "hang": lambda: time.sleep(1e6),
    "stall": lambda: time.sleep(STALL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "leak": leak,
    "print": write_to_outputs,
    "fork": fork_then_die,
}
WRONG: dict[str, tuple[Any, Any]] = {  # observation and reward
    "nan": (np.array([0, np.nan], np.float32), 1.0),
    "inf": (np.array([np.inf, 0], np.float32), 1.0),
    "shape": (np.zeros(3, np.float32), 1.0),
    "dtype": (np.array(["a", "b"]), 1.0),
    "none": (None, 1.0),
    "outside": (np.array([0, 1e6], np.float32), 1.0),
    "reward nan": (FINE, float("nan")),
    "reward none": (FINE, None),
    "reward array": (FINE, np.zeros(2)),
    "reward int": (FINE, 1),
    "reward bool": (FINE, True),
}


class Event(NamedTuple):
    """A line of the survivor file: what happened, where, and when by the monotonic clock."""

    mode: str
    process: int
    step: int
    moment: float


class FaultEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment, by default Steady, with a fault: `mode` is a key of DEEDS or WRONG.

    It happens in the method `place`: construct, reset, step or close, once `at` steps were taken.
    `index` is that of the one environment which has it, counted from the seed `base` of the first;
    `probability` is that of each moment; `times` is how often it happens in all processes together.
    Each time is a line of the file `record`, which outlives whatever happens. With `workers`, it
    happens only in worker processes.
    """

    def __init__(  # noqa: PLR0913  # what can be chosen of a fault
        self,
        env: gymnasium.Env[Any, Any] | str | None = None,
        *,
        mode: str = "",
        at: int = 3,
        place: str = "step",
        index: int = -1,
        base: int = 3,
        probability: float = 1.0,
        times: int = 0,
        record: str = "",
        workers: bool = False,
    ) -> None:
        made = gymnasium.make(env) if isinstance(env, str) else env
        super().__init__(Steady() if made is None else made)
        self.mode, self.at, self.place, self.taken = mode, at, place, 0
        self.index, self.base, self.probability = index, base, probability
        self.times, self.record, self.workers = times, record, workers
        self.chosen = index < 0  # whether this is the environment that has the fault
        self.chance = np.random.default_rng(os.getpid())
        self._perhaps("construct")

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        if seed is not None and self.index >= 0:
            self.chosen = seed == self.base + self.index
        observation, info = self.env.reset(seed=seed, **kwargs)
        wrong = self._perhaps("reset")
        return (observation if wrong is None else wrong[0]), info

    def step(self, action: Any) -> Any:
        self.taken += 1
        observation, reward, *ends = self.env.step(action)
        wrong = self._perhaps("step")
        return (*((observation, reward) if wrong is None else wrong), *ends)

    def close(self) -> None:
        self._perhaps("close")
        super().close()

    def _perhaps(self, place: str) -> tuple[Any, Any] | None:
        """Go wrong if it is time to; a wrong observation and reward, if that is the fault."""
        if place != self.place or not self.mode or not self._due():
            return None
        if self.record:
            note(self.record, Event(self.mode, os.getpid(), self.taken, time.monotonic()))
        if self.mode in DEEDS:
            DEEDS[self.mode]()
        return WRONG.get(self.mode)

    def _due(self) -> bool:
        spared = self.workers and multiprocessing.parent_process() is None
        done = bool(self.times) and len(events(self.record)) >= self.times
        early = self.place != "construct" and self.taken < self.at
        if early or spared or done or not self.chosen:
            return False
        return bool(self.chance.random() < self.probability)


def note(record: str | Path, event: Event) -> None:
    """Add a line to a survivor file, whole even if several processes write."""
    with Path(record).open("ab", buffering=0) as file:
        file.write((" ".join(map(str, (event.mode.replace(" ", "-"), *event[1:]))) + "\n").encode())


def events(record: str | Path) -> list[Event]:
    """What a survivor file says has happened."""
    path = Path(record)
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [Event(mode, int(pid), int(at), float(when)) for mode, pid, at, when in lines]


gymnasium.register("Fault-v0", FaultEnv)  # type: ignore[arg-type]  # a class makes them too
