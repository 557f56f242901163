"""Drives a container through training and evaluation, and logs and saves what happens."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

import numpy as np

from operant.core.experience import Metrics, TrajInfo
from operant.core.protocols import Container
from operant.core.state import restore, state_of
from operant.samplers.explorer import Explorer
from operant.session.build import build
from operant.session.inexact import inexact_reason
from operant.session.log import MetricLog
from operant.session.session import Session, fitting, warn

WINDOW = 100  # episodes behind `rollout/ep_rew_mean`
STOPPING = b"\noperant: stopping after this update; a second signal quits at once\n"
STATE = ("container", "step", "iterations", "next_log", "next_test", "window", "tested", "pending")


class View(Protocol):
    """Shows a run while it trains, such as `report.progress.ProgressView`."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def update(self, step: int, metrics: Metrics) -> None: ...


class Runner:
    """Trains a run from its newest checkpoint, or from the start, to its last step.

    `explorer`, `memory` and `agents` are the parts by name. `stopped` is the number of the signal
    that ended training early, if one did.
    """

    def __init__(self, session: Session) -> None:
        self.session, self.config = session, session.config
        self.stopped: int | None = None
        self.container: Container = build(session.trial, lambda: self.stopped is not None)
        self.obstacle = self._find_obstacle()
        self.explorer = {
            "train": self.container.explorer,
            "test": Explorer(self.container.sampler, "test"),
        }
        self.memory = self.container.memory
        self.agents = {self.config.algorithm: self.container.agent}
        self.step = self.iterations = 0
        self.next_log, self.next_test = self.config.log_every, self.config.eval.every
        self.window: list[list[float]] = []  # reward, length and success of the last episodes
        self.tested: Metrics = {}  # the result of the last evaluation
        self.pending: Metrics = {}  # a line of the log whose evaluation was stopped
        saved = session.load()
        if saved is not None:
            with fitting(saved):
                restore(self, {"pending": {}, **saved.state}, *STATE)  # older ones had none
        self.log = MetricLog(session.run, saved.state["log"] if saved else None, warn)
        self.saved_at, self.saving = time.monotonic(), 0.0  # when, and how long it took

    def train(self, view: View | None = None) -> Self:
        """Train to the last step, or until a signal asks to stop, and save a last checkpoint."""
        with self.signals(), view or nullcontext():
            if self.step == 0:
                self.save()
            while (self.pending or self.step < self.config.steps) and self.stopped is None:
                metrics = self.epoch()
                if view is not None and metrics:
                    view.update(self.step, metrics)
            self.save(last=True)
        if self.stopped is None:
            self.session.finish({"step": self.step, **self.tested})
        return self

    def epoch(self) -> Metrics:
        """Train up to the next line of the log, evaluate and save when due; the metrics logged.

        They are empty if training was stopped before.
        """
        metrics = self.pending or self.collect()
        self.pending = {}
        if metrics and self.test_due():
            tested = self.test()
            if not tested:  # stopped: the line waits for the evaluation, which resuming begins anew
                self.pending, metrics = metrics, {}
            metrics |= tested
        if metrics:
            self.write(metrics)
        if self.due():
            self.save()
        return metrics

    def collect(self) -> Metrics:
        """Train up to the next line of the log; its metrics, empty if training was stopped."""
        begin, count = time.perf_counter(), self.step
        target = min(self.next_log, self.config.steps)
        self.container.run(target - self.step, initial_step=self.step)
        self.step = self.container.local_step_count
        seconds = time.perf_counter() - begin
        if self.step < target:
            return {}
        self.next_log = (self.step // self.config.log_every + 1) * self.config.log_every
        return self.report(self.step - count, seconds)

    def test_due(self) -> bool:
        """Whether it is time for an evaluation, if there are any: always at the end of the run."""
        return self.next_test is not None and self.step >= min(self.next_test, self.config.steps)

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        since, rule = time.monotonic() - self.saved_at, self.config.checkpoint
        return since > rule.seconds and self.saving <= rule.share * since

    def report(self, steps: int, seconds: float) -> Metrics:
        """Metrics of the epoch, under the names that Stable-Baselines3 made common."""
        episodes, learned = self.container.drain()
        self.iterations += 1
        self.window += [[e.reward, e.length, float(e.success or 0)] for e in episodes]
        self.window = self.window[-WINDOW:]
        metrics: Metrics = {}
        if self.window:
            rewards, lengths, _ = np.mean(self.window, axis=0).tolist()
            metrics |= {"rollout/ep_rew_mean": rewards, "rollout/ep_len_mean": lengths}
        if any(e.success is not None for e in episodes):
            metrics["rollout/success_rate"] = float(np.mean(self.window, axis=0)[2])
        for name in {"exploration_rate", "staleness"} & learned.keys():
            metrics[f"rollout/{name}"] = learned.pop(name)
        metrics |= {f"train/{name}": value for name, value in learned.items()}
        metrics |= {"time/total_timesteps": self.step, "time/iterations": self.iterations}
        return metrics | self.timing(steps, seconds)

    def timing(self, steps: int, seconds: float) -> Metrics:
        """Steps and simulator frames per second, and each activity's share of the time."""
        spent = self.container.drain_seconds()
        shares = {f"time/share_{name}": value / seconds for name, value in spent.items()}
        fps = steps / seconds
        frames = fps * self.container.frames_per_step
        return {"time/fps": fps, "time/frames_per_second": frames, **shares}

    def test(self) -> Metrics:
        """Evaluate: whole episodes without exploration; empty if a signal stopped it."""
        episodes = self.explorer["test"].play()
        if not episodes:
            return {}
        every = self.config.eval.every or self.config.steps
        self.next_test = (self.step // every + 1) * every
        self.tested = summary(episodes)
        return self.tested

    def write(self, metrics: Metrics) -> None:
        """Write a line of the log; on a full disk training goes on without it."""
        try:
            self.log.write(self.step, metrics)
        except OSError as error:
            warn(f"{self.session.run}: step {self.step} could not be logged: {error.strerror}")

    def save(self, last: bool = False) -> None:
        """Write a checkpoint."""
        begin = time.monotonic()
        self.session.save(self.step, self.state_dict, self.reasons, last)
        self.saved_at = time.monotonic()
        self.saving = self.saved_at - begin

    def reasons(self) -> list[str]:
        """Why going on from a checkpoint would not be bit for bit; empty if it would be."""
        found = self.container.reasons()
        return [*found, self.obstacle] if found and self.obstacle else found

    def _find_obstacle(self) -> str:
        """What keeps the run from being resumed exactly, which is said before training starts."""
        if not self.container.reasons():
            return ""
        why = inexact_reason(self.config)
        warn(
            f"env.id = {self.config.env.id!r}: {why}, so resuming is not exact: it begins new "
            f"episodes; weights and all else are saved"
        )
        return why

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to resume training."""
        return state_of(self, *STATE) | {"log": self.log.state_dict()}

    def close(self) -> None:
        """Close the environments and the log."""
        self.container.close()
        self.log.close()

    @contextmanager
    def signals(self) -> Iterator[None]:
        """SIGINT or SIGTERM once: finish the update and save; twice: quit at once."""

        def handle(number: int, frame: FrameType | None) -> None:
            if self.stopped is not None:
                signal.signal(number, signal.SIG_DFL)  # a third one kills the process
                raise KeyboardInterrupt(number)
            self.stopped = number
            self.container.stop()
            with suppress(OSError):  # not `print`, which the signal may have interrupted
                os.write(2, STOPPING)

        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread can handle signals
            return
        before = {s: signal.signal(s, handle) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


BaseRunner = Runner  # rlpyt's name


def summary(episodes: list[TrajInfo]) -> Metrics:
    """Mean and standard deviation of the returns of episodes, and their mean length."""
    rewards = [e.reward for e in episodes]
    metrics: Metrics = {
        "eval/mean_reward": float(np.mean(rewards)),
        "eval/std_reward": float(np.std(rewards)),
        "eval/mean_ep_length": float(np.mean([e.length for e in episodes])),
    }
    if any(e.success is not None for e in episodes):
        metrics["eval/success_rate"] = float(np.mean([bool(e.success) for e in episodes]))
    return metrics
