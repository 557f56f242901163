"""Code of the user's own that a run calls while it trains.

A callback has any of the methods `on_start`, `on_log`, `on_evaluation`, `on_checkpoint` and
`on_stop`; a plain function is an `on_log`. Each is given an `Event`. Returning `"stop"` ends the
run well. What has `state_dict` and `load_state_dict` is saved in checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operant.core.errors import UsageError
from operant.core.experience import Metrics
from operant.core.protocols import Agent, Stateful
from operant.session.callback_names import SETTING, find_callback
from operant.session.run_settings import RunConfig

MOMENTS = ("on_start", "on_log", "on_evaluation", "on_checkpoint", "on_stop")
STOP = "stop"


class CallbackFault(RuntimeError):  # noqa: N818  # what happened in the user's code, not in ours
    """A callback raised; names it, the moment and the step."""


@dataclass
class Event:
    """What a callback gets to know, and can do."""

    run: Path  # directory of the run
    config: RunConfig
    step: int  # environment steps so far
    agent: Agent
    # Plays whole episodes without exploration and gives their figures; takes `episodes`, `seed`
    # and `env`, a dict of other settings of the environment. Empty if a signal stops the run.
    evaluate: Callable[..., Metrics]
    # Of the line of the log, the evaluation, or for `on_stop` the last evaluation. What `on_log`
    # and `on_evaluation` add or replace is logged.
    metrics: Metrics = field(default_factory=dict)
    reason: str = ""  # for `on_stop`: finished, the name of a callback, signal, or failed


class Callbacks:
    """The callbacks of a run with the names they were given, in the order of their calls."""

    def __init__(self, names: Sequence[str]) -> None:
        self.named: list[tuple[str, Any]] = [(name, find_callback(name)) for name in names]
        for name, callback in self.named:
            _check(name, callback)

    def call(self, moment: str, event: Event) -> str:
        """Tell every callback; the name of one that asks to stop, or an empty string."""
        asked = ""
        for name, callback in self.named:
            method = _method(callback, moment)
            if method is not None and self._call(method, name, moment, event) == STOP:
                asked = asked or name
        return asked

    def _call(self, method: Callable[[Event], Any], name: str, moment: str, event: Event) -> Any:
        try:
            answer = method(event)
        except UsageError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise CallbackFault(
                f"callback {name} raised in {moment} at step {event.step}: {what}"
            ) from error
        if answer is not None and answer != STOP:
            raise CallbackFault(
                f"callback {name} returned {answer!r} from {moment}; expected None or {STOP!r}"
            )
        return answer

    def state_dict(self) -> dict[str, Any]:
        """The state of those that have one, by their place and name."""
        return {
            f"{i} {name}": callback.state_dict()
            for i, (name, callback) in enumerate(self.named)
            if isinstance(callback, Stateful)
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave, of those that are still there."""
        for i, (name, callback) in enumerate(self.named):
            if f"{i} {name}" in state and isinstance(callback, Stateful):
                callback.load_state_dict(state[f"{i} {name}"])


def _method(callback: Any, moment: str) -> Callable[[Event], Any] | None:
    found: Callable[[Event], Any] | None = getattr(callback, moment, None)
    if found is None and moment == "on_log" and not _moments(callback):
        found = callback
    return found


def _moments(callback: Any) -> list[str]:
    return [moment for moment in MOMENTS if callable(getattr(callback, moment, None))]


def _check(name: str, callback: Any) -> None:
    if not _moments(callback) and not callable(callback):
        raise UsageError(
            f"{SETTING} = {name!r}: is a {type(callback).__name__}; expected a function, or an "
            f"object with a method among {', '.join(MOMENTS)}"
        )
