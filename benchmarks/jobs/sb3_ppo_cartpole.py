"""Stable-Baselines3's side of `ppo-cartpole`; runs in an environment of its own."""

# mypy: ignore-errors
# Typed by a library that is not installed where the types are checked.
import sys
from pathlib import Path

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.jobs.probe import Probe, seconds


class Boundary(BaseCallback):
    """Stops training when the probe has seen enough."""

    def __init__(self) -> None:
        super().__init__()
        self.probe, self.enough = Probe(seconds()), False

    def _on_rollout_start(self) -> None:
        self.enough = self.enough or self.probe(self.num_timesteps)

    def _on_step(self) -> bool:
        return not self.enough


env = make_vec_env("CartPole-v1", n_envs=8, seed=1)
model = PPO("MlpPolicy", env, n_steps=128, batch_size=256, n_epochs=4, device="cpu")
model.learn(10**9, callback=Boundary())
