"""A loop of one's own: what `write` is given is what is stored, also after a reset by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from agent_parts import create

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import EnvStep, HiddenState, Memo
from operant.core.schedule import Schedule
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.memory.prioritized import PrioritizedReplay
from operant.memory.replay import ExperienceReplay
from operant.memory.rollout import RolloutCache
from operant.networks.assemble import NetworkConfig
from operant.samplers.serial import SerialSampler

GUIDE = Path(__file__).parents[2] / "docs" / "getting-started.md"
NOTHING = Memo({}, HiddenState())


def seen(*values: float) -> dict[str, Any]:
    return {"o": np.array(values, np.float32)[:, None]}


def write(memory: Any, before: Any, after: Any, ended: Any = (0, 0), final: Any = None) -> None:
    """One step of two environments; ends are terminations."""
    terminated, truncated, valid = np.array([ended, (0, 0), (1, 1)], bool)
    step = EnvStep(after, np.ones(2, np.float32), terminated, truncated, valid, final, {})
    memory.write(before, {"a": torch.tensor([0, 0])}, NOTHING, step)


def values(field: Any) -> Any:
    return field.squeeze(-1).tolist()


def reset_by_hand(memory: Any) -> Any:
    """Environment 0: 10, 11, 12, then reset by hand to 50, 51, 52; environment 1 goes on."""
    write(memory, seen(10, 20), seen(11, 21))
    write(memory, seen(11, 21), seen(12, 22))
    write(memory, seen(50, 22), seen(51, 23))
    write(memory, seen(51, 23), seen(52, 24))
    return memory


def test_a_reset_by_hand_begins_an_episode_in_a_rollout() -> None:
    chunk = reset_by_hand(RolloutCache(4)).read()
    assert values(chunk.observation["o"]) == [[10, 20], [11, 21], [50, 22], [51, 23], [52, 24]]
    assert values(chunk.next_observation["o"]) == [[11, 21], [12, 22], [51, 23], [52, 24]]
    assert chunk.first[:, 0].tolist() == [True, False, True, False, False]
    assert chunk.first[:, 1].tolist() == [True, False, False, False, False]
    assert chunk.truncated.tolist() == [[False] * 2, [True, False], [False] * 2, [False] * 2]
    assert not chunk.terminated.any()


def test_a_reset_by_hand_between_two_chunks_begins_the_second() -> None:
    cache = reset_by_hand(RolloutCache(2))
    assert values(cache.read().observation["o"]) == [[50, 22], [51, 23], [52, 24]]
    assert cache.read().first[0].tolist() == [True, False]


def test_a_reset_by_hand_right_after_an_episode_leaves_its_end_as_it_was() -> None:
    cache = RolloutCache(2)
    write(cache, seen(10, 20), seen(30, 21), (1, 0), seen(11, 0))
    write(cache, seen(50, 21), seen(51, 22))
    chunk = cache.read()
    assert values(chunk.next_observation["o"]) == [[11, 21], [51, 22]]
    assert values(chunk.observation["o"][1]) == [50, 21]
    assert not chunk.truncated.any()


def test_an_end_that_waits_for_a_reset_by_hand_keeps_its_final_observation() -> None:
    cache = RolloutCache(2)
    write(cache, seen(10, 20), seen(11, 21), (1, 0))
    write(cache, seen(50, 21), seen(51, 22))
    chunk = cache.read()
    assert values(chunk.next_observation["o"]) == [[11, 21], [51, 22]]
    assert chunk.first[:, 0].tolist() == [True, True, False]
    assert not chunk.truncated.any()


REPLAYS: dict[str, Callable[[], ExperienceReplay]] = {
    "uniform": partial(ExperienceReplay, 40, 1, 0),
    "prioritized": partial(PrioritizedReplay, 40, 1, 0, 0.6, Schedule(1.0)),
}


@pytest.mark.parametrize("kind", REPLAYS)
@pytest.mark.parametrize("length", [1, 2])
def test_a_replay_draws_no_step_that_never_happened(kind: str, length: int) -> None:
    replay = reset_by_hand(REPLAYS[kind]())
    batch = replay.sample(400, length).experience
    drawn = {tuple(x.tolist()) for x in batch.observation["o"].flatten(1).T}
    one = [10, 11, 12, 50, 51, 52]  # 12 is what a step led to, and none is taken there
    other = [20, 21, 22, 23, 24]
    runs = [tuple(x[i : i + length + 1]) for x in (one, other) for i in range(len(x) - length)]
    assert drawn == {run for run in runs if run[0] != 12}
    assert replay.stored == 8


@pytest.mark.parametrize("kind", REPLAYS)
def test_a_replay_cuts_returns_at_a_reset_by_hand(kind: str) -> None:
    batch = reset_by_hand(REPLAYS[kind]()).sample(400, 2).experience
    at = values(batch.observation["o"][0]).index(11)
    assert values(batch.next_observation["o"])[0][at] == 12
    assert batch.valid[:, at].tolist() == [True, False]
    assert batch.cut[:, at].tolist()[0]


def test_a_start_that_a_reset_by_hand_makes_whole_can_be_drawn_by_priority() -> None:
    replay = PrioritizedReplay(40, 1, 0, 0.6, Schedule(1.0))
    write(replay, seen(0, 0), seen(10, 20))
    write(replay, seen(10, 20), seen(11, 21))
    replay.sample(1, 2)  # from now on, only starts of two steps have a priority
    write(replay, seen(50, 60), seen(51, 61))
    drawn = replay.sample(200, 2).experience.observation["o"][0]
    assert set(drawn.flatten().tolist()) == {0, 10, 20}


def test_a_full_ring_keeps_environments_in_step_when_one_is_reset_by_hand() -> None:
    replay = ExperienceReplay(12, 1, 0)  # seven rows
    write(replay, seen(0, 100), seen(1, 101))
    for t in range(1, 30):
        start = 1000 * t if t % 4 == 0 else t % 4 + 1000 * (t - t % 4)
        write(replay, seen(start, 100 + t), seen(start + 1, 101 + t))
    batch = replay.sample(500, 1).experience
    runs = {tuple(x.tolist()) for x in batch.observation["o"].flatten(1).T}
    assert {b - a for a, b in runs} == {1}
    assert {a for a, _ in runs if 100 <= a < 200} == {124, 125, 126, 127, 128, 129}


def test_stacked_frames_survive_a_reset_by_hand() -> None:
    def stack(*frames: int) -> dict[str, Any]:
        return {"o": np.array([[[f] for f in frames]] * 2, np.float32)}

    replay = ExperienceReplay(40, 1, seed=0, stacked=("o",))
    write(replay, stack(0, 1), stack(1, 2))
    write(replay, stack(8, 9), stack(9, 10))
    batch = replay.sample(200, 1).experience
    drawn = {tuple(x.flatten().tolist()) for x in batch.observation["o"].transpose(0, 1)}
    assert drawn == {(0, 1, 1, 2), (8, 9, 9, 10)}


def test_an_observation_that_the_step_has_overwritten_is_refused() -> None:
    same = seen(10, 20)
    with pytest.raises(UsageError, match=r"observation 'o' was overwritten .* copy it before"):
        write(RolloutCache(2), same, same)


@pytest.mark.parametrize("kind", ["simple", "subproc", "native"])
def test_what_a_manager_returned_stays_as_it_was(kind: Any) -> None:
    manager = make_manager(EnvConfig(num_envs=2, workers=1, manager=kind, time_limit=2), seed=0)
    shown = [manager.reset(0)]
    copies = [tree.map(np.copy, shown[0])]
    for _ in range(4):
        shown.append(manager.step({"action": np.zeros(2, np.int64)}).observation)
        copies.append(tree.map(np.copy, shown[-1]))
    manager.close()
    assert [x["observation"].tolist() for x in shown] == [x["observation"].tolist() for x in copies]


def made(kind: Any) -> tuple[Any, Any]:
    config = EnvConfig(num_envs=8, workers=1, manager=kind, time_limit=7)
    manager = make_manager(config, seed=1)
    network = NetworkConfig(hidden=(8,))
    return manager, create("ppo", manager.spaces, network, {"length": 20})


@pytest.mark.parametrize("kind", ["simple", "subproc", "native"])
def test_the_loop_of_the_guide_stores_what_the_sampler_stores(kind: Any) -> None:
    text = GUIDE.read_text().partition("## A loop of your own")[2]
    block = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    loop = block[block.index("observation, state =") :]  # before it, parts of its own are made
    manager, agent = made(kind)
    chunks: list[Any] = []

    def update() -> None:
        if agent.memory.ready():
            chunks.append(tree.map(torch.clone, agent.memory.read()))

    agent.update = update
    exec(loop, {"manager": manager, "agent": agent, "tree": tree})
    sampler = SerialSampler(*made(kind), length=20, seed=1)
    assert len(chunks) == 5
    for itr, chunk in enumerate(chunks):
        wanted = sampler.obtain_samples(itr)[0]
        for (path, x), (_, y) in zip(tree.leaves(chunk), tree.leaves(wanted), strict=True):
            assert x.equal(y), path
    sampler.close()
