"""Pendulum-v1 by deterministic policies; the best mean return is about -150."""

from operant.session.recipe import Recipe

SCORES = {  # mean return at 10k steps, by agent: of seeds 1 to 3
    "ddpg": (-134, -116, -144),
    "ddpg-per": (-143, -117, -140),
    "hddpg": (-134, -118, -148),
    "td3": (-135, -128, -142),
}
RECIPES = tuple(
    Recipe(
        name=f"{agent}-pendulum",
        algorithm=agent,
        pattern="Pendulum-v1",
        about=f"mean return {', '.join(map(str, scores))} at 10k steps, seeds 1 to 3",
        settings={
            "steps": 10_000,
            "env": {"num_envs": 1},
            "network": {"hidden": [64, 64]},
            "agent": {"replay_size": 20_000, "learning_starts": 500}
            | ({"priority_beta": "linear(0.4, 1)"} if agent == "ddpg-per" else {}),
        },
    )
    for agent, scores in SCORES.items()
)
