"""Vector environments: settings, masks, masks under autoreset, and what it costs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from counter import CounterVectorEnv
from gymnasium import spaces as gs
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from operant.core.errors import EnvironmentFault, UsageError
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.envs.managers.native import NativeEnvManager
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.probe_tasks import MatchAction

ZEROS = {"action": np.zeros(4, np.int64)}


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (EnvConfig(id="CartPole-v1"), NativeEnvManager),
        (EnvConfig(id="CartPole-v1", kwargs={"render_mode": None}), NativeEnvManager),
        (EnvConfig(id="CartPole-v1", kwargs={"disable_env_checker": True}), SimpleEnvManager),
        (EnvConfig(id="Pendulum-v1"), SimpleEnvManager),
    ],
)
def test_auto_is_native_where_everything_can_be_honoured(config: EnvConfig, kind: Any) -> None:
    assert type(make_manager(config, seed=0, num_envs=2)) is kind


def test_native_is_refused_where_there_is_no_vector_form() -> None:
    with pytest.raises(UsageError, match="Pendulum-v1 has no vector form; use manager = 'simple'"):
        make_manager(EnvConfig(id="Pendulum-v1", manager="native"), seed=0)


def test_native_is_refused_for_arguments_the_vector_form_does_not_take() -> None:
    config = EnvConfig(manager="native", kwargs={"wind": 1})
    with pytest.raises(UsageError, match="vector form of CartPole-v1 takes no wind"):
        make_manager(config, seed=0)


@pytest.mark.parametrize("manager", ["native", "simple"])
def test_time_limit_and_hidden_entries_hold_in_every_manager(manager: Any) -> None:
    config = EnvConfig(manager=manager, num_envs=4, time_limit=3, hide=(1, 3))
    made = make_manager(config, seed=0)
    assert made.reset(0)["observation"].shape == (4, 2)
    steps = [made.step(ZEROS) for _ in range(3)]
    assert steps[2].truncated.tolist() == [True] * 4
    assert made.spaces.observation["observation"].shape == (2,)


def test_a_batch_without_a_known_autoreset_mode_is_refused() -> None:
    class Unknown(CounterVectorEnv):
        def __init__(self) -> None:
            super().__init__(2, AutoresetMode.NEXT_STEP)
            self.metadata = {}

    with pytest.raises(UsageError, match=r"metadata\['autoreset_mode'\] = None"):
        NativeEnvManager(lambda seed: Unknown())


def test_a_nan_in_a_batch_names_environment_and_step() -> None:
    manager = make_manager(EnvConfig(num_envs=4), seed=0)
    manager.reset(0)
    manager.step(ZEROS)
    manager.env.state[1, 2] = np.nan  # type: ignore[attr-defined]  # CartPole's own state
    with pytest.raises(EnvironmentFault, match=r"CartPole-v1, environment 2, step 2: .* is NaN"):
        manager.step(ZEROS)


def test_wrong_actions_are_refused_before_the_batch_sees_them() -> None:
    manager = make_manager(EnvConfig(num_envs=4), seed=0)
    manager.reset(0)
    with pytest.raises(UsageError, match=r"shape \(3,\); expected \(4,\)"):
        manager.step({"action": np.zeros(3, np.int64)})
    with pytest.raises(UsageError, match="expected values in Discrete"):
        manager.step({"action": np.full(4, 2)})


@pytest.mark.parametrize("kind", ["native", "simple", "subproc"])
def test_use_before_reset_and_after_close_is_a_clear_error(kind: Any) -> None:
    manager = make_manager(EnvConfig(manager=kind, num_envs=4), seed=0)
    with pytest.raises(EnvironmentFault, match="call reset before step"):
        manager.step(ZEROS)
    manager.close()
    manager.close()
    with pytest.raises(EnvironmentFault, match="closed; make a new manager"):
        manager.reset(0)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("sight", ["box", "dict"])
def test_masks_hold_in_every_mode_of_a_batch(mode: AutoresetMode, sight: Any) -> None:
    fns: Any = [partial(MatchAction, observation=sight, mask=True, length=n) for n in (1, 2, 2, 3)]
    manager = NativeEnvManager(lambda seed: SyncVectorEnv(fns, autoreset_mode=mode))
    observation = manager.reset(0)
    for _ in range(12):  # an illegal action raises
        legal = observation["action_mask"].argmax(-1)
        step = manager.step({"action": legal})
        observation = step.observation
        shown = step.final_observation or observation
        assert shown["action_mask"].any(-1).tolist() == [True] * 4
    assert observation["action_mask"].dtype == bool
    assert observation["action_mask"].sum(-1).min() == 2


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_mask_that_comes_only_after_the_reset_of_a_batch_is_a_fault(mode: AutoresetMode) -> None:
    class Late(CounterVectorEnv):
        def step(self, actions: Any) -> Any:
            *rest, infos = super().step(actions)
            return *rest, infos | {"action_mask": np.ones((4, 2), np.int8)}

    manager = NativeEnvManager(lambda seed: Late(4, mode))
    manager.reset(0)
    with pytest.raises(EnvironmentFault, match=r"step 1: .*'action_mask'.*reset.*in `reset`"):
        manager.step(ZEROS)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_batch_that_raises_on_forbidden_actions_can_resume_exactly(mode: AutoresetMode) -> None:
    fns: Any = [partial(MatchAction, mask=True, length=n) for n in (1, 3)]
    manager = NativeEnvManager(lambda seed: SyncVectorEnv(fns, autoreset_mode=mode))
    assert manager.exact


def test_integer_rewards_become_float32() -> None:
    class Whole(CounterVectorEnv):
        def step(self, actions: Any) -> Any:
            seen, reward, *rest = super().step(actions)
            return seen, reward.astype(np.int32), *rest

    manager = NativeEnvManager(lambda seed: Whole(4, AutoresetMode.SAME_STEP))
    manager.reset(0)
    assert manager.step(ZEROS).reward.dtype == np.float32
    assert isinstance(manager.spaces.action["action"], gs.Discrete)
