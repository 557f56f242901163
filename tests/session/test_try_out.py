"""What a run would need, and the refusal of what does not fit."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from operant.agents.dqn import DQNConfig
from operant.core.errors import UsageError
from operant.core.experience import Decision, HiddenState, Memo
from operant.core.spaces import Spaces
from operant.envs.env_settings import EnvConfig
from operant.session.build import Trial
from operant.session.run_settings import run_config
from operant.session.try_out import BATCH, check_memory, human, memory_needed

GIB = 2**30
FRAMES = Spaces(
    {"observation": Box(0, 255, (4, 84, 84), np.uint8)},
    {"action": Discrete(6)},
    stacked=("observation",),
)
DISK = "replay buffer, when full, on disk"


@dataclass(frozen=True, kw_only=True)
class Remembering(DQNConfig):
    """Of DQN, only the replay buffer."""


class Small:
    """An agent next to which nothing needs memory."""

    network = SimpleNamespace(parameters=list)

    def initial_state(self, batch_size: int) -> HiddenState:
        return HiddenState()

    def act(self, observation: Any, state: HiddenState, explore: bool) -> Decision:
        return {}, Memo({}, HiddenState())


def trial(spaces: Spaces = FRAMES, num_envs: int = 8, **settings: Any) -> Trial:
    config = run_config("dqn")(env=EnvConfig(num_envs=num_envs))
    config = replace(config, agent=Remembering(**settings))
    return Trial(config, spaces, Small(), "")  # type: ignore[arg-type]  # as much as is asked of it


def memory(gib: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with so much memory."""
    sizes = {"SC_PHYS_PAGES": int(gib * GIB) // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)


@pytest.mark.parametrize(
    ("frames", "gib"), [("auto", 6.7), ("off", 26.3)], ids=["each frame once", "stacks"]
)
def test_a_million_atari_steps_are_foretold(frames: Any, gib: float) -> None:
    needed = memory_needed(trial(replay_size=1_000_000, replay_frames=frames))
    assert needed["replay buffer, when full"] / GIB == pytest.approx(gib, abs=0.05)
    others = needed["rollout"] + needed[BATCH]
    assert needed["total"] - needed["replay buffer, when full"] == others


def test_priorities_take_memory_of_their_own() -> None:
    needed = memory_needed(trial(replay_size=1_000_000, prioritized=True))
    assert needed["priorities"] / 1e6 == pytest.approx(9.14, abs=0.01)
    assert needed["total"] == sum(needed.values()) - needed["total"]


def test_a_replay_on_disk_takes_no_memory(tmp_path: Path) -> None:
    needed = memory_needed(trial(replay_size=1_000_000, replay_dir=str(tmp_path)))
    assert needed[DISK] / GIB == pytest.approx(6.7, abs=0.05)
    assert needed["total"] == needed["rollout"] + needed[BATCH]


def test_what_does_not_fit_is_refused_with_the_figures_and_the_remedies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory(4, monkeypatch)
    with pytest.raises(UsageError) as error:
        check_memory(trial(replay_size=1_000_000))
    told = (
        "needs 6.7 GiB of memory",
        "6.7 GiB of it for the replay buffer",
        "has 4.0 GiB",
    )
    remedies = ("agent.replay_size", "agent.replay_dir", "env.num_envs")
    assert [part for part in (*told, *remedies) if part not in str(error.value)] == []


def test_a_million_atari_steps_fit_into_24_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    memory(24, monkeypatch)
    check_memory(trial(replay_size=1_000_000))
    with pytest.raises(UsageError, match=r"26\.3 GiB"):
        check_memory(trial(replay_size=1_000_000, replay_frames="off"))


def test_on_disk_the_disk_counts_and_memory_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory(4, monkeypatch)
    asked = trial(replay_size=1_000_000, replay_dir=str(tmp_path))
    space = SimpleNamespace(f_bavail=10, f_frsize=GIB)
    monkeypatch.setattr(os, "statvfs", lambda path: space)
    check_memory(asked)
    space.f_bavail = 5
    with pytest.raises(UsageError, match=r"agent.replay_dir = .* needs 6.7 GiB .* 5.0 GiB are"):
        check_memory(asked)


def test_a_directory_that_is_not_there_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"agent\.replay_dir = '.*none': No such file"):
        check_memory(trial(replay_dir=str(tmp_path / "none")))


def test_a_replay_too_small_for_its_chunks_is_refused_before_the_run() -> None:
    with pytest.raises(UsageError, match=r"agent\.replay_size = 50: too small .* at least 72"):
        check_memory(trial(replay_size=50))
    check_memory(trial(replay_size=72))


def test_bytes_are_told_in_words() -> None:
    told = [human(size) for size in (7, 2048, 3.5 * 2**20, 6.7 * GIB, 2**41)]
    assert told == ["7 B", "2.0 KiB", "3.5 MiB", "6.7 GiB", "2.0 TiB"]
