"""Environments taken up again: bit for bit where they can be, honestly where they cannot."""

from __future__ import annotations

import json
import os
import socket
from collections import deque
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest

from operant.core import tree
from operant.core.errors import EnvironmentFault
from operant.core.protocols import EnvironmentManager
from operant.core.seeds import derived
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.envs.managers.exactness import (
    random_actions,
    resumes_exactly,
    same_bytes,
)
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.providers.gymnasium import GymEnv, make_env
from operant.envs.snapshot import capture, restore, why_inexact
from operant.session.checkpoint import checkpoint

MANAGERS = [("CartPole-v1", kind) for kind in ("simple", "native", "subproc")]
GAMES = ["Pendulum-v1", "Acrobot-v1", "MountainCar-v0", "MinAtar/Breakout-v1", "FrozenLake-v1"]
SIMULATORS = ["ALE/Breakout-v5", "HalfCheetah-v5", "Ant-v5"]


def manager_of(env_id: str, kind: Any = "simple") -> EnvironmentManager:
    return make_manager(EnvConfig(id=env_id, manager=kind, num_envs=3, workers=2), seed=5)


def play(manager: EnvironmentManager, seed: int, steps: int = 60) -> list[Any]:
    rng = np.random.default_rng(seed)
    actions = [random_actions(manager.spaces, rng, manager.num_envs) for _ in range(steps)]
    return [tree.map(np.copy, list(manager.step(action)[:6])) for action in actions]


@pytest.mark.parametrize(("env_id", "kind"), MANAGERS + [(env_id, "simple") for env_id in GAMES])
def test_a_restored_manager_goes_on_bit_for_bit(env_id: str, kind: str) -> None:
    original, other = manager_of(env_id, kind), manager_of(env_id, kind)
    original.reset(1)
    play(original, 1)
    state = original.state_dict()
    other.reset(2)
    other.load_state_dict(state)
    assert original.exact
    assert same_bytes(play(original, 2), play(other, 2))
    original.close()
    other.close()


@pytest.mark.parametrize("env_id", SIMULATORS)
def test_simulators_written_in_c_are_restored_exactly(env_id: str) -> None:
    config = EnvConfig(id=env_id, num_envs=1, manager="simple")
    assert resumes_exactly(lambda: make_env(config))


def test_sticky_atari_is_not_called_exact() -> None:
    config = EnvConfig(id="ALE/Breakout-v5", sticky=0.25)
    assert not resumes_exactly(lambda: make_env(config))


def test_a_snapshot_survives_a_checkpoint_of_arrays_and_json() -> None:
    manager = manager_of("CartPole-v1")
    manager.reset(1)
    play(manager, 1, steps=10)
    state = manager.state_dict()
    expected = play(manager, 2)
    arrays = {path: x for path, x in tree.leaves(state) if isinstance(x, np.ndarray)}
    plain = tree.map(lambda x: None if isinstance(x, np.ndarray) else x, state)
    manager.load_state_dict(_joined(json.loads(json.dumps(plain)), arrays))
    assert same_bytes(play(manager, 2), expected)


def _joined(plain: Any, arrays: dict[str, Any], path: str = "") -> Any:
    if path in arrays:
        return arrays[path]
    if isinstance(plain, dict | list):
        items = plain.items() if isinstance(plain, dict) else enumerate(plain)
        parts = {k: _joined(v, arrays, f"{path}.{k}" if path else str(k)) for k, v in items}
        return parts if isinstance(plain, dict) else list(parts.values())
    return plain


class Secretive(gymnasium.Env[Any, Any]):
    """Keeps what matters where no snapshot looks."""

    observation_space = gymnasium.spaces.Box(0, 1e6, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.count = iter(range(10**6))

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        return np.array([next(self.count)], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.array([next(self.count)], np.float32), 0.0, False, False, {}


def test_the_probe_sees_state_that_a_snapshot_misses() -> None:
    assert not resumes_exactly(lambda: GymEnv(Secretive()))


def test_probing_does_not_disturb_the_running_environments() -> None:
    one, other = manager_of("CartPole-v1"), manager_of("CartPole-v1")
    for manager in (one, other):
        manager.reset(3)
    assert one.exact
    one.state_dict()
    assert same_bytes(play(one, 1), play(other, 1))


@pytest.mark.parametrize("env_id", ["envpool/CartPole-v1", "ALE/Breakout-v5"])
def test_what_cannot_be_restored_begins_anew_under_a_new_seed(env_id: str) -> None:
    manager = manager_of(env_id, "native")
    first = tree.map(np.copy, manager.reset(1))
    play(manager, 1, steps=3)
    with pytest.warns(UserWarning, match="cannot be restored"):
        manager.load_state_dict(manager.state_dict())
    cut, *rest = play(manager, 2, steps=3)
    assert not manager.exact
    assert cut[4].tolist() == [False] * 3  # not valid
    assert cut[3].tolist() == [True] * 3  # truncated
    assert not same_bytes(cut[0], first)
    assert all(step[4].all() for step in rest)
    manager.close()


def test_a_snapshot_of_another_environment_is_refused() -> None:
    state = capture(gymnasium.make("CartPole-v1").unwrapped)
    with pytest.raises(EnvironmentFault, match="saved environment is a 'CartPoleEnv'"):
        restore(gymnasium.make("Pendulum-v1").unwrapped, state)


class Holder(Secretive):
    """Keeps one thing of each kind, and changes its array in place."""

    def __init__(self) -> None:
        self.array = np.zeros(2)
        self.kept: dict[int, Any] = {}

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.kept = {}
        return np.zeros(1, np.float32), {}


def test_every_kind_of_attribute_comes_back_as_it_was() -> None:
    env = Holder()
    history = deque([(1, None), [2.5, "a"]], maxlen=3)
    env.kept = {1: np.float32(0.1), 2: history, 3: np.random.RandomState(4)}
    state = capture(env)
    env.array += 1
    drawn = env.kept[3].random_sample()
    restore(env, state)
    assert env.array.tolist() == [0, 0]
    assert type(env.kept[1]) is np.float32
    assert env.kept[2] == history
    assert env.kept[2].maxlen == 3
    assert env.kept[3].random_sample() == drawn


def test_what_happens_after_is_not_in_an_earlier_snapshot() -> None:
    env: Any = gymnasium.wrappers.FrameStackObservation(gymnasium.make("Pendulum-v1"), 3)
    env.reset(seed=0)
    state = capture(env)
    before = env.step(np.zeros(1, np.float32))[0].copy()
    env.step(np.ones(1, np.float32))
    restore(env, state)
    assert env.step(np.zeros(1, np.float32))[0].tolist() == before.tolist()


def test_derived_seeds_are_far_apart_and_repeatable() -> None:
    seeds = [derived(seed, step) for seed in range(20) for step in range(20)]
    assert len(set(seeds)) == 400
    assert seeds[0] == derived(0, 0)
    assert min(seeds) >= 0


class Point(NamedTuple):
    x: int
    y: complex


RARE = [
    np.array([b"SF", b"HG"]),
    np.array(["2024-01-02", "NaT"], "datetime64[D]"),
    np.array([1 + 2j]),
    np.array([1 + 2j], np.complex64),
    np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]),
    np.array(["ab", "c"], "<U9"),
    np.array([0.1], np.longdouble),
    np.datetime64("2024-01-02"),
    np.bytes_(b"ab"),
    np.complex128(1j),
    b"\x00\xff",
    3 - 4j,
]


@pytest.mark.parametrize("value", RARE, ids=lambda value: str(getattr(value, "dtype", value)))
def test_rare_types_of_numbers_come_back_through_a_checkpoint(value: Any, tmp_path: Path) -> None:
    env = Holder()
    env.kept = {1: value}
    checkpoint.save(tmp_path, 0, capture(env))
    restore(env, checkpoint.newest(tmp_path).state)
    found = env.kept[1]
    assert type(found) is type(value)
    assert np.asarray(found).dtype == np.asarray(value).dtype
    assert np.asarray(found).tobytes() == np.asarray(value).tobytes()


def test_named_tuples_keep_their_names() -> None:
    env: Any = Holder()
    env.point = Point(1, 2j)
    state = capture(env)
    env.point = Point(5, 6j)
    restore(env, state)
    assert (env.point.x, env.point.y) == (1, 2j)


class Open(Holder):
    """Holds a file, a socket and an array of objects."""

    def __init__(self) -> None:
        super().__init__()
        self.file, self.line = open(os.devnull), socket.socket()  # noqa: SIM115  # the very defect
        self.objects = np.array([None, {}], object)

    def close(self) -> None:
        self.file.close()
        self.line.close()


def test_files_and_sockets_are_not_called_exact_and_are_named() -> None:
    assert not resumes_exactly(lambda: GymEnv(Open()))
    env = Open()
    assert why_inexact(env) == "file (TextIOWrapper), line (socket) cannot be saved"
    env.close()


def test_what_the_trial_found_missing_is_named() -> None:
    assert why_inexact(Secretive()) == "count (range_iterator) cannot be saved"


class Untouchable(Secretive):
    """Cannot be captured at all: it holds a list that holds itself."""

    def __init__(self) -> None:
        super().__init__()
        self.loop: list[Any] = []
        self.loop.append(self.loop)


def test_an_environment_that_cannot_be_read_at_all_is_not_exact() -> None:
    assert not resumes_exactly(lambda: GymEnv(Untouchable()))
    assert "RecursionError" in why_inexact(Untouchable())


class Late(Holder):
    """Holds a list that holds itself from the 50th step on, after the trial of exact resume."""

    steps = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps == 50:
            self.kept[1] = [self.kept]
        return np.zeros(1, np.float32), 0.0, False, False, {}


def test_a_state_that_cannot_be_read_any_more_is_saved_as_not_exact() -> None:
    manager = SimpleEnvManager([lambda: GymEnv(Late())])
    manager.reset(1)
    play(manager, 1, steps=10)
    assert manager.state_dict()["exact"]
    play(manager, 1, steps=60)
    with pytest.warns(UserWarning, match="can no longer be saved"):
        state = manager.state_dict()
    assert state == {"seed": 1, "steps": 70, "exact": False}


class Strict(gymnasium.Env[Any, Any]):
    """Raises on an action that its mask forbids; the mask turns with every step."""

    observation_space = gymnasium.spaces.Box(0, 9, (1,), np.float32)

    def __init__(self, action_space: Any, share: Any) -> None:
        self.action_space, self.share, self.turn = action_space, share, 0

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        sizes = getattr(self.action_space, "nvec", [getattr(self.action_space, "n", 0)])
        self.allowed = [np.roll(np.arange(n) == 0, self.turn) for n in sizes]
        return np.full(1, self.turn % 9, np.float32), {"action_mask": tuple(self.allowed)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.turn = self.share
        return self._seen()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        for choice, mask in zip(np.atleast_1d(action), self.allowed, strict=True):
            if not mask[choice]:
                raise ValueError(f"illegal action {choice}")
        self.turn += 1
        observation, info = self._seen()
        return observation, 0.0, self.turn % 7 == 0, False, info


@pytest.mark.parametrize(
    "space", [gymnasium.spaces.Discrete(5), gymnasium.spaces.MultiDiscrete([3, 4])], ids=str
)
def test_environments_that_raise_on_illegal_actions_resume_exactly(space: Any) -> None:
    assert resumes_exactly(lambda: GymEnv(Strict(space, 2)))


def test_random_actions_under_a_mask_are_all_that_it_allows() -> None:
    spaces = GymEnv(Strict(gymnasium.spaces.MultiDiscrete([2, 3]), 0)).spaces
    masks = np.array([[0, 1, 1, 0, 1], [1, 0, 0, 1, 0]], bool)
    rng, seen = np.random.default_rng(0), set()
    for _ in range(50):
        drawn = random_actions(spaces, rng, 2, observation={"action_mask": masks})["action"]
        seen.add(tuple(map(tuple, drawn.tolist())))
    assert seen == {((1, 0), (0, 1)), ((1, 2), (0, 1))}


class Phase(Enum):
    OPENING = "opening"
    ENDGAME = "endgame"


def test_a_member_of_an_enum_is_restored_and_the_enum_left_as_it_is() -> None:
    env: Any = Holder()
    env.phase = Phase.OPENING
    state = capture(env)
    env.phase = Phase.ENDGAME
    restore(env, state)
    assert env.phase is Phase.OPENING
    assert [phase.value for phase in Phase] == ["opening", "endgame"]
