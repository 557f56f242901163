"""Stable-Baselines3's side of the training works; runs in an environment of its own."""

# mypy: ignore-errors
# Typed by a library that is not installed where the types are checked.
import numpy as np
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecFrameStack

from benchmarks.jobs.definitions import TRAINING, steady
from benchmarks.jobs.probe import Probe, arguments


class Boundary(BaseCallback):
    """Stops training when the probe has seen enough."""

    def __init__(self, probe: Probe) -> None:
        super().__init__()
        self.probe = probe

    def _on_rollout_start(self) -> None:
        self.probe(self.num_timesteps)

    def _on_step(self) -> bool:
        return not self.probe.done


def environment(env: dict):
    """The environments as Stable-Baselines3 makes them by default."""
    if env["id"].startswith("ALE/"):
        game = env["id"].removeprefix("ALE/").removesuffix("-v5")
        made = make_atari_env(f"ale_py:{game}NoFrameskip-v4", n_envs=env["num_envs"], seed=1)
        return VecFrameStack(made, env["frame_stack"])
    return make_vec_env(env["id"], n_envs=env["num_envs"], seed=1)


def ppo(env, agent: dict):
    return PPO(
        "CnnPolicy" if len(env.observation_space.shape) == 3 else "MlpPolicy",
        env,
        n_steps=agent["length"],
        batch_size=agent["minibatch"],
        n_epochs=agent["epochs"],
        learning_rate=agent.get("lr", 3e-4),
        clip_range=agent.get("clip", 0.2),
        ent_coef=agent.get("entropy_coef", 0.0),
        device="cpu",
    )


def replaying(agent: dict) -> dict:
    return {
        "buffer_size": agent["replay_size"],
        "learning_starts": agent["learning_starts"],
        "batch_size": agent["batch_size"],
        "train_freq": agent["length"],
        "gradient_steps": round(agent["updates_per_step"] * agent["length"]),
        "device": "cpu",
    }


def dqn(env, agent: dict):
    return DQN(
        "CnnPolicy",
        env,
        learning_rate=1e-4,
        target_update_interval=agent["target_every"] * agent["length"],
        exploration_fraction=1e-6,
        exploration_final_eps=agent["epsilon"],
        **replaying(agent),
    )


def sac(env, agent: dict):
    return SAC("MlpPolicy", env, **replaying(agent))


def td3(env, agent: dict):
    size = env.action_space.shape
    noise = NormalActionNoise(np.zeros(size), np.full(size, 0.1))
    network = {"net_arch": [256, 256]}  # by default it is 400×300
    return TD3("MlpPolicy", env, action_noise=noise, policy_kwargs=network, **replaying(agent))


MAKE = {"ppo": ppo, "dqn": dqn, "sac": sac, "td3": td3}


def main() -> None:
    asked = arguments()
    algorithm, settings = TRAINING[asked.work]
    model = MAKE[algorithm](environment(settings["env"]), settings["agent"])
    model.learn(10**9, callback=Boundary(Probe(asked, steady(settings))))


if __name__ == "__main__":
    main()
