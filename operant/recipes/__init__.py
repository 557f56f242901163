"""Recipes: tuned settings of an agent for an environment, as data.

`operant train` starts from the first recipe that fits the agent and the environment, unless
`--recipe` names another one or `none`. A recipe holds what a configuration file could.
"""

from operant.recipes import (
    actor_critic_replay,
    atari_games,
    box2d_games,
    cartpole,
    classic_control,
    deterministic_policies,
    minatar_games,
    mujoco_tasks,
    on_policy,
    pendulum,
    toy_text,
    value_agents,
)
from operant.session.recipe import Recipe

RECIPES: tuple[Recipe, ...] = (
    *cartpole.RECIPES,
    *pendulum.RECIPES,
    *deterministic_policies.RECIPES,
    *classic_control.RECIPES,
    *box2d_games.RECIPES,
    *toy_text.RECIPES,
    *minatar_games.RECIPES,
    *atari_games.RECIPES,
    *mujoco_tasks.RECIPES,
    *on_policy.RECIPES,
    *value_agents.RECIPES,
    *actor_critic_replay.RECIPES,
)

__all__ = ["RECIPES"]
