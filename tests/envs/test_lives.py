"""Losing a life ends an episode for learning; the game and its score go on."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from lives_task import LIFE, LIVES, ThreeLives

from operant.core.errors import UsageError
from operant.core.experience import EnvStep, HiddenState, Memo, TrajInfo
from operant.envs.env_settings import EnvConfig
from operant.envs.lives import LIFE_LOST, BatchLives, LifeLoss
from operant.envs.managers.choose import make_manager
from operant.envs.managers.native import NativeEnvManager
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.managers.subproc import SubProcEnvManager
from operant.envs.providers.gymnasium import GymEnv
from operant.memory.rollout import RolloutCache
from operant.samplers.trajectory import TrajTracker

NOTHING = {"action": np.zeros(2, np.int64)}
KINDS = ["simple", "subproc", *AutoresetMode]


def game() -> GymEnv:
    return GymEnv(LifeLoss(ThreeLives()))


def manager_of(kind: Any) -> Any:
    if kind == "simple":
        return SimpleEnvManager([game, game])
    if kind == "subproc":
        return SubProcEnvManager([game, game], workers=1)
    make = partial(SyncVectorEnv, [ThreeLives, ThreeLives], autoreset_mode=kind)
    return NativeEnvManager(lambda seed: make(), episodic_life=True)


def collect(manager: Any, length: int) -> tuple[Any, list[TrajInfo]]:
    cache, tracker = RolloutCache(length), TrajTracker(2)
    observation, finished = manager.reset(0), []
    while not cache.ready():
        step = manager.step(NOTHING)
        action = {"action": torch.zeros(2, dtype=torch.int64)}
        cache.write(observation, action, Memo({}, HiddenState()), step)
        finished += tracker.add(step)
        observation = step.observation
    manager.close()
    return cache.read(), finished


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_life_terminates_and_the_game_is_scored_whole(kind: Any) -> None:
    chunk, finished = collect(manager_of(kind), LIFE * LIVES + 2)
    ends = chunk.terminated[:, 0].nonzero().flatten().tolist()
    assert ends == [3, 7, 11]
    assert finished == [TrajInfo(12, 12.0)] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_life_begins_with_the_next_observation(kind: Any) -> None:
    chunk, _ = collect(manager_of(kind), 10)
    assert chunk.valid.all()
    assert chunk.observation["observation"][:, 0, 0].tolist() == list(range(11))
    assert chunk.next_observation["observation"][:, 0, 0].tolist() == list(range(1, 11))
    assert chunk.first[:, 0].nonzero().flatten().tolist() == [0, 4, 8]


@pytest.mark.parametrize("kind", KINDS)
def test_lives_are_resumed_exactly(kind: Any) -> None:
    one, two = manager_of(kind), manager_of(kind)
    one.reset(0)
    for _ in range(6):
        one.step(NOTHING)
    two.load_state_dict(one.state_dict())
    assert one.exact
    steps = [[m.step(NOTHING).terminated.tolist() for _ in range(4)] for m in (one, two)]
    assert steps[0] == steps[1] == [[False] * 2, [True] * 2, [False] * 2, [False] * 2]
    one.close()
    two.close()


def test_one_game_may_end_while_another_loses_a_life() -> None:
    manager = manager_of(AutoresetMode.NEXT_STEP)
    manager.reset(0)
    manager.env.envs[1].time = 8  # its last life
    manager._lives.count[1] = 1
    tracker, steps = TrajTracker(2), []
    finished = []
    for _ in range(5):
        steps.append(manager.step(NOTHING))
        finished.append(len(tracker.add(steps[-1])))
    assert [step.terminated.tolist() for step in steps[3:]] == [[True, True], [False, False]]
    assert steps[3].infos[LIFE_LOST].tolist() == [True, False]
    assert steps[4].valid.tolist() == [True, False]
    assert finished == [0, 0, 0, 1, 0]


def test_what_a_lost_life_led_to_is_kept_beside_a_game_that_ended() -> None:
    manager = manager_of(AutoresetMode.SAME_STEP)
    manager.reset(0)
    manager.env.envs[1].time, manager._lives.count[1] = 8, 1  # its last life
    step = [manager.step(NOTHING) for _ in range(4)][-1]
    manager.close()
    assert step.final_observation["observation"][:, 0].tolist() == [4, 12]
    assert step.observation["observation"][:, 0].tolist() == [4, 0]


def test_rows_of_other_games_in_the_final_observations_say_nothing_of_a_lost_life() -> None:
    """A vector environment fills only the rows of games that ended: here the second."""
    lives = BatchLives({"lives": np.array([3, 1])})
    rows = {"observation": np.array([[4.0], [0.0]])}
    no, yes = np.zeros(2, bool), np.array([False, True])
    final = {"observation": np.array([[-1.0], [12.0]])}
    infos = {"lives": np.array([2, 3])}
    step = lives.mark(EnvStep(rows, np.zeros(2), yes, no, ~no, final, infos))
    assert step.final_observation is not None
    assert step.final_observation["observation"][:, 0].tolist() == [4, 12]
    assert step.terminated.tolist() == [True, True]
    assert step.infos[LIFE_LOST].tolist() == [True, False]
    assert final["observation"][0] == -1  # which is the environment's own array


@pytest.mark.parametrize("kind", ["simple", "subproc", "native"])
def test_an_environment_without_lives_is_named(kind: Any) -> None:
    config = EnvConfig(id="CartPole-v1", num_envs=1, manager=kind, episodic_life=True)
    with pytest.raises(UsageError, match=r"episodic_life = True: CartPole-v1 has no lives"):
        make_manager(config, seed=0)


def lives_lost(env_id: str, kind: Any, steps: int) -> tuple[list[list[bool]], list[float]]:
    config = EnvConfig(id=env_id, num_envs=2, manager=kind, workers=1, episodic_life=True)
    manager, rng = make_manager(config, 4), np.random.default_rng(0)
    manager.reset(4)
    marked, lost = [], []
    for _ in range(steps):
        step = manager.step({"action": rng.integers(0, 4, 2)})
        marked.append(step.terminated.tolist())
        lost.append(float(step.infos.get(LIFE_LOST, np.zeros(2)).sum()))
    manager.close()
    return marked, lost


def test_lives_of_atari_are_lost_alike_in_every_manager() -> None:
    simple, subproc, native = (
        lives_lost("ALE/Breakout-v5", kind, 130) for kind in ("simple", "subproc", "native")
    )
    assert simple == subproc == native
    assert sum(simple[1]) >= 4


def test_lives_of_envpool_are_lost_too() -> None:
    pytest.importorskip("envpool")
    marked, lost = lives_lost("envpool/Breakout-v5", "native", 130)
    assert sum(lost) >= 4
    assert np.sum(marked) >= sum(lost)
