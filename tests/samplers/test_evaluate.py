"""Whole episodes: shared out evenly, the same every time."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces as gs
from script import MODES, SEED, Script, by_hand, manager_of

from operant.core.experience import Decision, EnvStep, HiddenState, Memo, Tensors
from operant.core.protocols import EnvironmentManager
from operant.envs.managers.simple import SimpleEnvManager, restart_step
from operant.envs.providers.gymnasium import GymEnv
from operant.samplers.evaluate import Evaluation, evaluate
from operant.samplers.explorer import Explorer
from operant.samplers.serial import SerialSampler

LONG = 30


class Lottery(gymnasium.Env[Any, Any]):
    """Episodes of one step or of many, by chance; each step is worth one."""

    observation_space = gs.Box(0, 1, (1,), np.float32)
    action_space = gs.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = int(self.np_random.choice([1, LONG]))
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return np.zeros(1, np.float32), 1.0, self.left == 0, False, {}


class Idle(Script):
    """Does nothing."""

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        count = len(observation["observation"])
        return {"action": torch.zeros(count, dtype=torch.long)}, Memo({}, HiddenState())


def lotteries(count: int) -> SimpleEnvManager:
    return SimpleEnvManager([lambda i=i: GymEnv(Lottery(), i) for i in range(count)])  # type: ignore[misc]  # a default


def test_each_environment_plays_its_share_however_long_its_episodes_are() -> None:
    found = [info.length for info in evaluate(Idle(), lotteries(4), 10, SEED)]
    expected = []
    for b, share in enumerate([3, 3, 2, 2]):
        env = Lottery()
        env.reset(seed=SEED + b)
        for _ in range(share):
            expected.append(env.left)
            env.reset()
    assert found == expected


def test_short_episodes_are_not_favoured() -> None:
    lengths = [info.length for info in evaluate(Idle(), lotteries(16), 160, SEED)]
    assert np.mean(lengths) == pytest.approx((1 + LONG) / 2, abs=4.5)  # deviation: 1.15


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_those_of_environments_stepped_by_hand(mode: str) -> None:
    agent = Script()
    found = evaluate(agent, manager_of(mode), 8, SEED)
    expected = [e for b, share in enumerate([3, 3, 2]) for e in by_hand(SEED + b, 40)[1][:share]]
    assert [info.length for info in found] == [length for length, _ in expected]
    assert [info.reward for info in found] == pytest.approx([total for _, total in expected])
    assert not any(agent.explored)


class Losing:
    """Counters whose first episodes are all lost at the second step."""

    def __init__(self) -> None:
        self.manager, self.steps = manager_of("simple"), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.manager, name)

    def step(self, actions: Any) -> EnvStep:
        self.steps += 1
        if self.steps == 2:
            seen = by_hand(SEED, 2)[0][1][0]
            return restart_step({"observation": np.array([seen] * 3)}, self.manager.reset)
        return self.manager.step(actions)


def test_an_episode_that_was_lost_does_not_count() -> None:
    manager: Any = Losing()
    found = evaluate(Script(), manager, 6, SEED)
    expected = [e for b in range(3) for e in by_hand(SEED + b, 40)[1][1:3]]
    assert [info.length for info in found] == [length for length, _ in expected]


class Source:
    """Makes managers and remembers them."""

    def __init__(self) -> None:
        self.made: list[SimpleEnvManager] = []

    def __call__(self, count: int) -> EnvironmentManager:
        self.made.append(lotteries(count))
        return self.made[-1]


@pytest.mark.parametrize(("episodes", "envs"), [(3, 3), (16, 16), (20, 16)])
def test_no_more_environments_are_made_than_episodes_or_sixteen(episodes: int, envs: int) -> None:
    source = Source()
    assert len(Evaluation(source, episodes, SEED).run(Idle())) == episodes
    assert [manager.num_envs for manager in source.made] == [envs]


def test_every_evaluation_plays_the_same_episodes_and_closes_what_it_made() -> None:
    source = Source()
    evaluation = Evaluation(source, 20, SEED)
    assert evaluation.run(Idle(), 0) == evaluation.run(Idle(), 9)
    assert [manager.closed for manager in source.made] == [True, True]


def test_environments_are_closed_when_the_agent_fails() -> None:
    source = Source()
    with pytest.raises(KeyError, match="steps"):
        Evaluation(source, 2, SEED).run(Forgetful())
    assert source.made[0].closed


class Forgetful(Script):
    """Wants a state that it does not give."""

    def initial_state(self, batch_size: int) -> HiddenState:
        return HiddenState()


def explorer(mode: Any) -> Explorer:
    evaluation = Evaluation(lambda count: manager_of("simple", count), 4, SEED)
    sampler = SerialSampler(manager_of("simple"), Script(), 5, SEED, evaluation=evaluation)
    return Explorer(sampler, mode)


def test_in_training_each_update_is_the_next_chunk() -> None:
    train = explorer("train")
    counts = [len(train.finished)]
    begins = []
    for _ in range(3):
        begins.append(train.update().observation["observation"][0, 0].tolist())
        counts.append(len(train.finished))
    assert begins == [by_hand(SEED, 11)[0][t][0] for t in (0, 5, 10)]
    assert counts[0] == 0
    assert sum(counts) == sum(len(by_hand(SEED + b, 15)[1]) for b in range(3))
    assert train.itr == 3


@pytest.mark.parametrize("mode", ["test", "eval"])
def test_in_other_modes_whole_episodes_are_played(mode: str) -> None:
    other = explorer(mode)
    found = other.play()
    assert found == other.finished
    assert [info.length for info in found] == [by_hand(SEED + b, 9)[1][0][0] for b in range(4)]
    with pytest.raises(ValueError, match=f"mode = '{mode}': .*'train'; call play"):
        other.update()


def test_a_restored_explorer_goes_on_where_it_was() -> None:
    one, two = explorer("train"), explorer("train")
    one.update()
    two.load_state_dict(one.state_dict())
    assert two.itr == 1
    assert two.update().reward.tolist() == one.update().reward.tolist()


def test_an_explorer_that_tests_saves_no_environments() -> None:
    assert explorer("test").state_dict() == {"itr": 0}


class Endless(Lottery):
    """Episodes of one step, or without an end; each step is worth one."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), 1.0, self.left == 1, False, {}


def endless(count: int) -> SimpleEnvManager:
    return SimpleEnvManager([lambda i=i: GymEnv(Endless(), i) for i in range(count)])  # type: ignore[misc]  # a default


def test_an_episode_without_an_end_counts_as_it_is_at_the_limit() -> None:
    found = evaluate(Idle(), endless(4), 11, SEED, max_steps=7)
    assert len(found) == 11
    assert {(info.length, info.reward) for info in found} == {(1, 1.0), (7, 7.0)}


def test_a_limit_that_no_episode_reaches_changes_nothing() -> None:
    plain = evaluate(Idle(), lotteries(4), 10, SEED)
    assert evaluate(Idle(), lotteries(4), 10, SEED, max_steps=LONG) == plain


def test_after_a_cut_a_new_episode_begins() -> None:
    found = evaluate(Idle(), lotteries(1), 6, SEED, max_steps=5)
    env = Lottery()
    env.reset(seed=SEED)
    expected = []
    for _ in range(6):
        expected.append(min(env.left, 5))
        env.reset()
    assert [info.length for info in found] == expected
    assert 5 in expected


def test_an_evaluation_that_is_asked_to_stop_has_no_result() -> None:
    asked = iter([False] * 4 + [True])
    source = Source()
    assert Evaluation(source, 20, SEED, stopping=lambda: next(asked)).run(Idle()) == []
    assert source.made[0].closed
    assert source.made[0].steps == 3
