"""Environments of one's own: classes and functions by name, wrappers, stacks and time limits."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import own_tasks
import pytest
from transitions import play

from operant.core.errors import EnvironmentFault, UsageError
from operant.core.objects import name_of
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager, make_part
from operant.envs.managers.native import NativeEnvManager
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.providers.catalog import full_id
from operant.envs.providers.gymnasium import make_env

SCRIPT = np.random.default_rng(3).integers(0, 3, (3, 40)).tolist()


def rows(env: Any, steps: int) -> list[Any]:
    """Observations of the first steps of an environment."""
    seen = [env.reset(seed=1)["observation"].tolist()]
    return seen + [
        env.step({"action": np.array(1)})[0]["observation"].tolist() for _ in range(steps)
    ]


@pytest.mark.parametrize("name", ["own_tasks:Corridor", "own_tasks:make_corridor"])
def test_a_class_or_function_by_name_gets_its_arguments(name: str) -> None:
    env = make_env(EnvConfig(id=name, kwargs={"length": 4}))
    assert [x[0] for x in rows(env, 4)] == [0, 0.25, 0.5, 0.75, 1]
    assert full_id(name) == name


def test_a_lambda_is_known_in_this_process() -> None:
    env = make_env(EnvConfig(id=name_of(lambda: own_tasks.Corridor(2))))
    assert [x[0] for x in rows(env, 2)] == [0, 0.5, 1]


def test_an_attribute_wins_over_a_registered_id_of_the_same_text() -> None:
    gymnasium.register("Corridor", lambda **_: own_tasks.Pictures())
    try:
        assert make_env(EnvConfig(id="own_tasks:Corridor")).env_id == "Corridor"
        env = make_env(EnvConfig(id="own_tasks:Corridor"))
        assert isinstance(env.env, own_tasks.Corridor)
    finally:
        gymnasium.registry.pop("Corridor")


def test_an_id_of_gymnasium_with_its_module_stays_what_it_is() -> None:
    assert full_id("faulty:Faulty") == "faulty:Faulty-v0"


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        (
            "own_tasks:Nowhere",
            "env.id = 'own_tasks:Nowhere': module 'own_tasks' has no 'Nowhere', and",
        ),
        ("no_such_module:X", "module 'no_such_module' cannot be imported"),
        ("own_tasks:np", "is a module; expected a class"),
    ],
)
def test_what_cannot_be_found_is_named(env_id: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        full_id(env_id)


def test_the_old_api_and_other_classes_are_refused_with_what_to_change() -> None:
    with pytest.raises(EnvironmentFault, match="reset returns only a ndarray, as in the old API"):
        make_env(EnvConfig(id="own_tasks:OldReset"))
    with pytest.raises(
        UsageError,
        match=r"makes a NotAnEnv, which is no gymnasium\.Env and no pettingzoo\.ParallelEnv",
    ):
        make_env(EnvConfig(id="own_tasks:NotAnEnv"))


def test_workers_import_classes_and_wrappers_by_name() -> None:
    wrappers = ("own_tasks:Doubled", "own_tasks:PlusOne")
    seen = []
    for manager in ("simple", "subproc"):
        config = EnvConfig(
            id="own_tasks:Corridor",
            num_envs=3,
            kwargs={"length": 3},
            wrappers=wrappers,
            time_limit=9,
            manager=manager,
            workers=2,
        )
        made = make_manager(config, 0)
        seen.append(play(made, [[1] * 12] * 3))
        made.close()
    assert seen[0] == seen[1]
    assert [t[2] for t in seen[0][0][:4]] == [1, 1, 3, 1]  # 2 x + 1, in this order


def test_the_outermost_wrapper_is_the_last() -> None:
    env = make_env(
        EnvConfig(id="own_tasks:Numbered", wrappers=("own_tasks:PlusOne", "own_tasks:Doubled"))
    )
    env.reset(seed=1)
    assert env.step({"action": np.array(0)})[1] == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_tasks:Corridor.step", "cannot be put around"),
        ("own_tasks:type", "module 'own_tasks' has no 'type'"),
        ("builtins:repr", "gives a str; expected a gymnasium.Wrapper"),
    ],
)
def test_what_is_no_wrapper_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"wrappers = '{name}': .*{message}"):
        make_env(EnvConfig(wrappers=(name,)))


@pytest.mark.parametrize("env_id", ["own_tasks:Numbered", "CartPole-v1"])
def test_a_time_limit_holds_for_any_environment(env_id: str) -> None:
    env = make_env(EnvConfig(id=env_id, time_limit=3))
    env.reset(seed=1)
    assert [env.step({"action": np.array(i % 2)})[3] for i in range(3)] == [False, False, True]


def test_stacked_vectors_are_one_vector_the_oldest_first() -> None:
    env = make_env(EnvConfig(id="own_tasks:Numbered", frame_stack=3))
    assert rows(env, 2) == [[0, 0, 0, 0, 1, 10], [0, 0, 1, 10, 2, 20], [1, 10, 2, 20, 3, 30]]
    assert env.spaces.observation["observation"].shape == (6,)


def test_hidden_entries_are_those_of_each_vector_of_a_stack() -> None:
    env = make_env(EnvConfig(id="own_tasks:Numbered", frame_stack=2, hide=(0,)))
    assert rows(env, 1) == [[0, 10], [10, 20]]


def test_stacked_images_are_one_image_with_the_channels_of_all() -> None:
    env = make_env(EnvConfig(id="own_tasks:Pictures", frame_stack=2))
    env.reset(seed=1)
    image = env.step({"action": np.array(0)})[0]["observation"]
    assert image.shape == env.spaces.observation["observation"].shape == (6, 6, 5)
    assert image[:, 2, 3].tolist() == [1, 2, 3, 2, 4, 6]


def test_of_stacked_masks_the_newest_counts() -> None:
    env = make_env(EnvConfig(id="own_tasks:Masked", frame_stack=3))
    assert env.reset(seed=1)["action_mask"].tolist() == [True, False]
    seen = env.step({"action": np.array(0)})[0]
    assert seen["action_mask"].tolist() == [False, True]
    assert seen["x"].tolist() == [0, 0, 1, 0, 2, 0]


def test_a_native_form_is_not_used_for_what_it_cannot_do() -> None:
    for settings in ({"wrappers": ("own_tasks:Doubled",)}, {"frame_stack": 2}):
        manager = make_manager(EnvConfig(num_envs=2, **settings), 0)
        assert isinstance(manager, SimpleEnvManager)
        with pytest.raises(UsageError, match="for single environments; use manager = 'simple'"):
            make_manager(EnvConfig(num_envs=2, manager="native", **settings), 0)
    with pytest.raises(UsageError, match=r"wrappers = .*EnvPool has only vector environments"):
        make_manager(EnvConfig(id="envpool/CartPole-v1", wrappers=("own_tasks:Doubled",)), 0)


@pytest.mark.parametrize("name", ["same_step", "three_next_step"])
def test_a_vector_environment_gives_the_transitions_of_its_single_ones(name: str) -> None:
    vector = make_manager(EnvConfig(id=f"own_tasks:{name}", num_envs=3), 0)
    assert isinstance(vector, NativeEnvManager)
    single = make_manager(EnvConfig(id="counter:Counter", num_envs=3), 0)
    assert play(vector, SCRIPT) == play(single, SCRIPT)
    assert vector.exact


def test_a_function_that_takes_a_number_of_environments_is_given_it() -> None:
    assert make_manager(EnvConfig(id="own_tasks:same_step", num_envs=5), 0).num_envs == 5
    assert make_manager(EnvConfig(id="own_tasks:three_next_step", num_envs=5), 0).num_envs == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"id": "own_tasks:never_reset"}, "autoreset_mode is Disabled"),
        ({"time_limit": 3}, "time_limit = 3: own_tasks:same_step makes a VectorEnv"),
        ({"manager": "simple"}, "id = 'own_tasks:same_step': makes a VectorEnv, whose"),
    ],
)
def test_what_a_vector_environment_cannot_have_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make_manager(EnvConfig(**{"id": "own_tasks:same_step", **settings}), 0)


def test_workers_cannot_share_out_a_vector_environment() -> None:
    config = EnvConfig(id="own_tasks:three_next_step", num_envs=3, manager="simple")
    with pytest.raises(UsageError, match="makes a VectorEnv"):
        make_part(config, 0, 0, 2)


@pytest.mark.parametrize(
    "settings",
    [
        {"id": "own_tasks:Corridor", "wrappers": ("own_tasks:Doubled",), "time_limit": 30},
        {"id": "own_tasks:Corridor", "frame_stack": 3, "kwargs": {"length": 4}},
        {"id": "own_tasks:make_corridor"},
    ],
)
def test_environments_of_ones_own_resume_exactly(settings: dict[str, Any]) -> None:
    one, other = (make_manager(EnvConfig(num_envs=2, **settings), seed) for seed in (1, 2))
    actions = [{"action": np.array([i % 3 > 0, i % 5 > 0], np.int64)} for i in range(30)]
    one.reset(1)
    for action in actions[:15]:
        one.step(action)
    other.load_state_dict(one.state_dict())
    assert one.exact
    for action in actions[15:]:
        seen = [manager.step(action) for manager in (one, other)]
        assert (
            seen[0].observation["observation"].tolist()
            == seen[1].observation["observation"].tolist()
        )
        assert seen[0].reward.tolist() == seen[1].reward.tolist()
