"""Environments and agents that give what is no number, or not what was promised."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import fault_env
import numpy as np
import pytest
from fault_env import FaultEnv, Steady
from faulty_runs import finished, train
from gymnasium import spaces as gs
from running import call, only_run

from operant.core.errors import EnvironmentFault
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.managers.subproc import SubProcEnvManager
from operant.envs.providers.gymnasium import GymEnv
from operant.session.checkpoint.checkpoint import broken_weights, listing, newest

pytestmark = pytest.mark.usefixtures("nothing_left_behind")
Manager = type[SimpleEnvManager] | type[SubProcEnvManager]


def refused(result: Any, *parts: str) -> None:
    assert (result.code, result.err.count("\n")) == (1, 1), result.err
    for part in ("environment 2, step ", *parts):
        assert part in result.err


@pytest.mark.parametrize(("mode", "sampler"), [("nan", "parallel"), ("inf", "serial")])
def test_an_observation_that_is_no_number_ends_the_run_and_spoils_no_checkpoint(
    mode: str, sampler: str, tmp_path: Path
) -> None:
    what = {"nan": "is NaN", "inf": "is infinite"}[mode]
    refused(train(tmp_path, sampler, mode=mode), f"observation 'observation' {what}; expected")
    saved = listing(only_run(tmp_path / "runs") / "checkpoints")
    assert len(saved) >= 1
    assert [broken_weights(path) for path in saved] == [[]] * len(saved)
    assert newest(saved[0].parent).step <= 4 * fault_env.events(tmp_path / "record")[0].step


@pytest.mark.parametrize("mode", ["nan", "none", "array"])
def test_a_reward_that_is_no_number_ends_the_run(mode: str, tmp_path: Path) -> None:
    refused(train(tmp_path, "serial", mode=f"reward {mode}"), "reward ")


@pytest.mark.parametrize("mode", ["int", "bool"])
def test_whole_numbers_and_bools_are_rewards(mode: str, tmp_path: Path) -> None:
    result = train(tmp_path, "serial", mode=f"reward {mode}", at=1)
    assert (result.code, finished(tmp_path)["step"]) == (0, 800), result.err


@pytest.mark.parametrize(
    ("mode", "what"),
    [("shape", "has shape (3,); expected (2,)"), ("dtype", "expected float32"), ("none", "None")],
)
@pytest.mark.parametrize("sampler", ["serial", "async"])
def test_an_observation_that_breaks_its_space_ends_the_run(
    sampler: str, mode: str, what: str, tmp_path: Path
) -> None:
    refused(train(tmp_path, sampler, mode=mode), "observation", what)


class Forgetful(Steady):
    """Leaves out a part of its observation at the third step."""

    observation_space: Any = gs.Dict({"near": gs.Discrete(2), "far": gs.Discrete(2)})

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        super().reset()
        return {"near": 0, "far": 0}, {}

    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        return {"near": 0} if self.t == 3 else {"near": 0, "far": 0}, *rest


def test_a_missing_key_is_named() -> None:
    manager = SimpleEnvManager([lambda: GymEnv(Forgetful())])
    manager.reset(0)
    actions = {"action": np.zeros(1, np.int64)}
    with pytest.raises(EnvironmentFault, match=r"step 3: the observation lacks a key .*'far'"):
        [manager.step(actions) for _ in range(3)]
    manager.close()


def test_learning_that_diverges_ends_the_run_and_keeps_the_last_good_checkpoint(
    tmp_path: Path,
) -> None:
    result = train(tmp_path, "serial", "--agent.lr 1e30 --agent.max-grad-norm 0")
    assert (result.code, result.err.count("\n")) == (1, 1), result.err
    assert "step " in result.err
    run = only_run(tmp_path / "runs")
    assert not (run / "done.json").exists()
    state = newest(run / "checkpoints").state["container"]["agent"]["network"]
    assert all(np.isfinite(x.numpy()).all() for x in state.values() if x.is_floating_point())
    assert call(["doctor", str(run)]).code == 0


def make(index: int, record: str) -> GymEnv:
    """One that notes every step that it takes."""
    return GymEnv(FaultEnv(mode="note", at=1, record=record), index)


@pytest.fixture(params=[SimpleEnvManager, SubProcEnvManager])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return request.param([partial(make, i, str(tmp_path / "record")) for i in range(2)])


@pytest.mark.parametrize("actions", [[5, 0], [0], [0, 0, 0], [-1, 0]])
def test_actions_that_do_not_fit_reach_no_environment(
    manager: Any, actions: list[int], tmp_path: Path
) -> None:
    manager.reset(0)
    with pytest.raises(ValueError, match="action"):
        manager.step({"action": np.array(actions)})
    assert fault_env.events(tmp_path / "record") == []
    manager.step({"action": np.zeros(2, np.int64)})
    assert len(fault_env.events(tmp_path / "record")) == 2
    manager.close()


def test_using_environments_in_the_wrong_order_is_an_error_or_nothing(manager: Any) -> None:
    actions = {"action": np.zeros(2, np.int64)}
    with pytest.raises(Exception, match="reset"):
        manager.step(actions)
    first = manager.reset(0)["observation"]
    manager.step(actions)
    assert manager.reset(0)["observation"].tolist() == first.tolist() == [[0, 0], [0, 0]]
    manager.close()
    manager.close()
    with pytest.raises(Exception, match="close"):
        manager.step(actions)
