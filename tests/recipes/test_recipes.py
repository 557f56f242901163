from __future__ import annotations

from collections import Counter

import gymnasium
import pytest
import torch

from operant.core.errors import UsageError
from operant.core.schedule import Schedule
from operant.envs.providers.catalog import check_env_id
from operant.recipes import RECIPES
from operant.session.build import build
from operant.session.compose import compose
from operant.session.recipe import Recipe
from operant.session.run_settings import as_file
from operant.session.try_out import try_out

# What makes the first two updates come early; all else is as in the recipe.
SMALL = {
    "a2c": [],
    "ppo": ["--agent.length=8", "--env.num-envs=2", "--agent.epochs=1"],
    "trpo": ["--agent.length=8", "--env.num-envs=2", "--agent.epochs=1"],
    "vtrace": [],
    "acer": ["--agent.length=4", "--agent.learning-starts=16"],
    "acer-vtrace": ["--agent.length=4", "--agent.learning-starts=16"],
    "dqn": ["--agent.length=2", "--agent.learning-starts=16", "--agent.replay-size=500"],
    "dqn-per": ["--agent.length=2", "--agent.learning-starts=16", "--agent.replay-size=500"],
    "rainbow": ["--agent.length=2", "--agent.learning-starts=16", "--agent.replay-size=500"],
    "ddpg": ["--agent.learning-starts=16"],
    "ddpg-per": ["--agent.learning-starts=16"],
    "hddpg": ["--agent.learning-starts=16"],
    "td3": ["--agent.learning-starts=16"],
    "sac": ["--agent.learning-starts=16"],
}
EXAMPLES = {"MinAtar/*": "MinAtar/Breakout-v1", "ALE/*": "ALE/Pong-v5"}
MUJOCO = [i for i, spec in gymnasium.registry.items() if ".envs.mujoco." in str(spec.entry_point)]


def env_id(recipe: Recipe) -> str:
    """An environment that the recipe is for, if its package is installed."""
    found = EXAMPLES.get(recipe.pattern, recipe.pattern.split()[0])
    try:
        check_env_id(found)
    except UsageError as error:
        pytest.skip(str(error))
    return found


@pytest.mark.every(2)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_recipe_survives_two_updates(recipe: Recipe) -> None:
    flags = ["--env.id", env_id(recipe), *SMALL[recipe.algorithm], "--threads", "1"]
    config, chosen = compose(recipe.algorithm, {}, flags, recipe.name, RECIPES)
    assert chosen is recipe
    worker = build(try_out(config))
    before = [x.clone() for x in worker.network.parameters()]
    while max([count for _, count in worker.sums.values()], default=0) < 2:
        worker.run(1, worker.local_step_count)
    worker.env.close()
    assert any(
        not torch.equal(x, y) for x, y in zip(before, worker.network.parameters(), strict=True)
    )


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_schedule_ends_with_the_run_or_before(recipe: Recipe) -> None:
    config, _ = compose(recipe.algorithm, {}, ["--env.id", env_id(recipe)], recipe.name, RECIPES)
    off = () if getattr(config.agent, "prioritized", False) else ("priority_beta",)
    used = [x for name, x in vars(config.agent).items() if name not in off]
    ends = [x.over for x in used if isinstance(x, Schedule)]
    assert max(ends) <= config.steps == recipe.settings["steps"]


def test_every_recipe_has_a_name_of_its_own() -> None:
    assert Counter(recipe.name for recipe in RECIPES).most_common(1)[0][1] == 1


def test_of_recipes_for_one_environment_the_first_is_taken() -> None:
    for recipe in RECIPES:
        flags = ["--env.id", env_id(recipe)]
        _, found = compose(recipe.algorithm, {}, flags, recipes=RECIPES)
        assert found is not None
        assert RECIPES.index(found) <= RECIPES.index(recipe)
        assert recipe.name.startswith(found.name)


def test_a_recipe_is_what_a_run_starts_from_and_flags_overrule_it() -> None:
    tuned, recipe = compose("ppo", {}, ["--agent.gamma", "0.5"], recipes=RECIPES)
    plain, none = compose("ppo", {}, recipe="none", recipes=RECIPES)
    assert recipe is not None
    assert recipe.name == "ppo-cartpole"
    assert none is None
    assert tuned.agent.gamma == 0.5  # type: ignore[attr-defined]  # an agent's own setting
    assert tuned.agent.length != plain.agent.length


def test_a_file_overrules_the_recipe_and_a_flag_the_file() -> None:
    tree = {"algorithm": "ppo", "seed": 5, "steps": 7, "agent": {"lam": 0.25}}
    config, _ = compose("", tree, ["--seed", "6"], recipes=RECIPES)
    assert (config.algorithm, config.seed, config.steps) == ("ppo", 6, 7)
    assert config.agent.lam == 0.25  # type: ignore[attr-defined]  # an agent's own setting


def test_an_id_without_a_version_gets_its_newest_and_its_recipe() -> None:
    config, recipe = compose("ppo", {}, ["--env.id", "CartPole"], recipes=RECIPES)
    assert (config.env.id, recipe and recipe.name) == ("CartPole-v1", "ppo-cartpole")


def test_an_environment_without_a_recipe_gets_the_defaults() -> None:
    config, recipe = compose("ppo", {}, ["--env.id", "Acrobot-v1"], recipes=RECIPES)
    assert (recipe, config.env.num_envs) == (None, 8)


@pytest.mark.parametrize("steps", [100_000, 130_000, 20_000])
def test_the_schedule_of_a_recipe_follows_the_length_of_the_run(steps: int) -> None:
    config, _ = compose("ppo", {"env": {"id": "CartPole-v1"}, "steps": steps}, recipes=RECIPES)
    lr = config.agent.lr  # type: ignore[attr-defined]  # an agent's own setting
    expected = Schedule(1e-3, 0.0, steps)
    assert [lr(i) for i in range(0, 150_000, 999)] == [expected(i) for i in range(0, 150_000, 999)]


@pytest.mark.parametrize(
    ("name", "field", "over"),
    [
        ("ppo-cartpole", "lr", 100_000),
        ("a2c-cartpole", "lr", 300_000),
        ("dqn-cartpole", "lr", 80_000),
        ("dqn-cartpole", "epsilon", 10_000),
        ("ppo-cartpole-memory", "lr", 300_000),
        ("ppo-minatar", "lr", 300_000),
        ("dqn-minatar", "epsilon", 60_000),
        ("ppo-atari", "lr", 10_000_000),
        ("ppo-atari-pong", "lr", 300_000),
        ("dqn-atari", "epsilon", 1_000_000),
    ],
)
def test_a_recipe_at_its_own_length_ends_its_schedule_at_this_step(
    name: str, field: str, over: int
) -> None:
    recipe = next(recipe for recipe in RECIPES if recipe.name == name)
    flags = ["--env.id", env_id(recipe)]
    config, _ = compose(recipe.algorithm, {}, flags, recipe.name, RECIPES)
    assert getattr(config.agent, field).over == over


def test_exploration_falls_over_a_tenth_of_the_run() -> None:
    config, _ = compose("dqn", {}, ["--steps", "20_000"], recipe="none")
    assert config.agent.epsilon.over == 2_000  # type: ignore[attr-defined]  # an agent's own


def test_a_configuration_that_was_written_follows_another_length_too() -> None:
    first, _ = compose("ppo", {}, ["--steps", "100"], recipes=RECIPES)
    again, _ = compose("", as_file(first), ["--steps", "300"], recipes=RECIPES)
    assert again.agent.lr.over == 300  # type: ignore[attr-defined]  # an agent's own setting


def test_a_schedule_in_steps_stays_as_it_is() -> None:
    flags = ["--agent.lr", "linear(1e-3, 0, 50)", "--steps", "300"]
    config, _ = compose("ppo", {}, flags, recipes=RECIPES)
    assert config.agent.lr == Schedule(1e-3, 0.0, 50)  # type: ignore[attr-defined]  # its own


def test_a_pattern_has_alternatives() -> None:
    recipe = Recipe("x", "ppo", "Hopper-v[45] Humanoid*-v5", about="")
    named = [
        "Hopper-v4",
        "HumanoidStandup-v5",
        "Humanoid-v4",
        "Hopper-v5 Humanoid-v5",
        "XHopper-v5",
    ]
    assert [recipe.fits(env_id) for env_id in named] == [True, True, False, False, False]
    assert recipe.own_env == ""
    with pytest.raises(UsageError, match=r"--recipe x: is for Hopper-v\[45\] Humanoid\*-v5; name"):
        compose("ppo", {}, [], "x", [recipe])


@pytest.mark.parametrize("name", [i for i in MUJOCO if i.endswith("-v5")])
def test_every_mujoco_task_has_a_recipe_for_ppo(name: str) -> None:
    config, recipe = compose("ppo", {"env": {"id": name}}, recipes=RECIPES)
    assert recipe is not None
    assert recipe.name == "ppo-mujoco"
    assert config.env.normalize_reward
    assert config.network.normalize
    assert config.agent.length * config.env.num_envs == 2_048


@pytest.mark.parametrize("name", ["ALE/Breakout-v5", "MyOwnTask-v5"])
def test_the_recipe_for_mujoco_is_for_nothing_else(name: str) -> None:
    assert not any(r.fits(name) for r in RECIPES if r.name == "ppo-mujoco")
