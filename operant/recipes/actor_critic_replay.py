"""Recipes of ACER and ACERVTrace."""

from operant.session.recipe import Recipe

CARTPOLE = {
    "steps": 150_000,
    "env": {"num_envs": 8},
    "network": {"hidden": [64, 64], "activation": "tanh", "separate": True},
    "agent": {"lr": "linear(1e-3, 0)", "gamma": 0.98, "lam": 0.8},
}
RECIPES = (
    Recipe(
        name="acer-cartpole",
        algorithm="acer",
        pattern="CartPole-v1",
        about="ABOUT_ACER",
        settings=CARTPOLE,
    ),
    Recipe(
        name="acer-vtrace-cartpole",
        algorithm="acer-vtrace",
        pattern="CartPole-v1",
        about="ABOUT_VTRACE",
        settings=CARTPOLE,
    ),
)
