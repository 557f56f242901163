"""Drives a container through training and evaluation, and logs and saves what happens."""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, Self

import numpy as np

from operant.core.errors import UsageError
from operant.core.experience import Metrics
from operant.core.protocols import Container
from operant.core.state import restore, state_of
from operant.samplers.explorer import Explorer
from operant.session.best import keep_best
from operant.session.build import build
from operant.session.callbacks import CallbackFault, Callbacks, Event
from operant.session.figures import evaluate_now, summary
from operant.session.inexact import find_obstacle
from operant.session.log import MetricLog
from operant.session.session import Session, fitting, warn
from operant.session.stop_signal import CompilationStopped, StopSignal
from operant.session.view import View

WINDOW = 100  # episodes behind `rollout/ep_rew_mean`
STATE = (
    *("container", "step", "iterations", "next_log", "next_test", "window", "tested", "pending"),
    *("ending", "callbacks"),
)
ADDED: dict[str, Any] = {"pending": {}, "ending": "", "callbacks": {}}  # not in older checkpoints


class Runner:
    """Trains a run from its newest checkpoint, or from the start, to its last step.

    `explorer`, `memory` and `agents` are the parts by name.
    """

    def __init__(self, session: Session) -> None:
        self.session, self.config = session, session.config
        self.callbacks = Callbacks(self.config.callbacks)
        keep_best(self.callbacks, self.config)
        self.signal = StopSignal()
        self.container: Container = build(session.trial, self.signal.__bool__)
        self.obstacle = find_obstacle(self.config, self.container.reasons())
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
        self.pending: Metrics = {}  # a line of the log that is not written yet
        self.ending = ""  # the callback that asked to end the run, if one did
        saved = session.load()
        if saved is not None:
            with fitting(saved):
                restore(self, ADDED | saved.state, *STATE)
        if not self.pending:
            self.ending = ""  # of an earlier end; now the run is to be longer
        self.log = MetricLog(session.run, saved.state["log"] if saved else None, warn)
        self.saved_at, self.saving = time.monotonic(), 0.0  # when, and how long it took
        self.saved_step = saved.step if saved else 0
        self.earlier_restarts = int(saved.state.get("restarts", 0)) if saved else 0

    @property
    def restarts(self) -> int:
        """Worker processes that were lost and replaced since the run began."""
        return self.earlier_restarts + self.container.sampler.manager.restarts

    @property
    def stopped(self) -> int | None:
        """The number of the signal that ended training early, if one did."""
        return self.signal.number

    def train(self, view: View | None = None) -> Self:
        """Train to the last step, or until a signal or a callback asks to stop; save at the end."""
        compiled = self.config.compile == "on"
        with self.signal.handled(self.container.stop, compiled), view or nullcontext():
            try:
                self._train(view)
            except CompilationStopped:  # the state is that of half an update: not to be saved
                self.step = self.saved_step
            except Exception as error:
                self._fail(error)
        if self.stopped is None:
            by = {"stopped_by": self.ending} if self.ending else {}
            lost = {"worker_restarts": self.restarts} if self.restarts else {}
            self.session.finish({"step": self.step, **self.tested, **by, **lost})
        return self

    def _train(self, view: View | None) -> None:
        self.tell("on_start")
        if self.step == 0:
            self.save()
        while (self.pending or self._goes_on()) and self.stopped is None:
            metrics = self.epoch()
            if view is not None and metrics:
                view.update(self.step, metrics)
        self.save(last=True)
        reason = "finished" if self.stopped is None else "signal"
        self.tell("on_stop", self.tested, self.ending or reason)

    def _goes_on(self) -> bool:
        return self.step < self.config.steps and not self.ending

    def _fail(self, error: Exception) -> None:
        """Raise an error on; that of a callback does not lose what was trained."""
        if isinstance(error, CallbackFault):
            self.session.save(self.step, self.state_dict, self.reasons, last=True)
            if self.stopped is not None:
                return  # in an evaluation of its own that was stopped; it is called again
        with suppress(CallbackFault, UsageError):  # the first error is the one to show
            self.tell("on_stop", self.tested, "failed")
        raise error

    def epoch(self) -> Metrics:
        """Train up to the next line of the log, evaluate and save when due; the metrics logged.

        They are empty if training was stopped before. A line waits in `pending` until it is
        written, so that resuming goes on with its evaluation or callback.
        """
        told = bool(self.pending and self.ending)  # only the last evaluation is missing
        metrics = self.pending = self.pending or self.collect()
        if not metrics:
            return {}
        due = self.test_due()
        if due and not self.test(metrics):
            return {}
        if not told and self.tell("on_log", metrics) and not due and self.next_test is not None:
            self.next_test = self.step  # a run that ends has an evaluation of its end
            if not self.test(metrics):
                return {}
        self.write(metrics)
        self.pending = {}
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
        self.window += [
            [e.reward, e.length, float(e.success or 0), *(e.agents or {}).values()]
            for e in episodes
        ]
        self.window = self.window[-WINDOW:]
        metrics: Metrics = {}
        if self.window:
            rewards, lengths, _, *each = np.mean(self.window, axis=0).tolist()
            metrics |= {"rollout/ep_rew_mean": rewards, "rollout/ep_len_mean": lengths}
            names = self.container.sampler.manager.spaces.agents
            metrics |= {f"rollout/ep_rew_mean/{k}": x for k, x in zip(names, each, strict=True)}
        if any(e.success is not None for e in episodes):
            metrics["rollout/success_rate"] = float(np.mean(self.window, axis=0)[2])
        for name in ("exploration_rate", "staleness"):
            if name in learned:
                metrics[f"rollout/{name}"] = learned.pop(name)
        if self.restarts:
            metrics["rollout/worker_restarts"] = self.restarts
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

    def test(self, metrics: Metrics) -> bool:
        """Evaluate: figures of whole episodes without exploration; False if a signal came."""
        episodes = self.explorer["test"].play()
        if not episodes:
            return False
        tested = summary(episodes)
        self.tell("on_evaluation", tested)
        every = self.config.eval.every or self.config.steps
        self.next_test = (self.step // every + 1) * every
        self.tested = tested
        metrics |= tested
        return True

    def tell(self, moment: str, metrics: Metrics | None = None, reason: str = "") -> str:
        """Call the callbacks; the name of one that asks to end the run, if one does."""
        shown = {} if metrics is None else metrics
        agent, run = self.container.agent, self.session.run
        evaluate = partial(evaluate_now, self.config, agent, self.signal.__bool__)
        event = Event(run, self.config, self.step, agent, evaluate, shown, reason)
        asked = self.callbacks.call(moment, event)
        self.ending = self.ending or asked
        return asked

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
        if not self.session.failed_saves:
            self.saved_step = self.step
            self.tell("on_checkpoint")

    def reasons(self) -> list[str]:
        """Why going on from a checkpoint would not be bit for bit; empty if it would be."""
        found = self.container.reasons()
        return [*found, self.obstacle] if found and self.obstacle else found

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to resume training."""
        return state_of(self, *STATE, "restarts") | {"log": self.log.state_dict()}

    def close(self) -> None:
        """Close the environments and the log."""
        self.container.close()
        self.log.close()


BaseRunner = Runner  # rlpyt's name
