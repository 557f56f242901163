"""The script that does the work of `startup` with Stable-Baselines3."""

# mypy: ignore-errors
# Typed by a library that is not installed where the types are checked.
import time

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

if __name__ == "__main__":
    env = make_vec_env("CartPole-v1", n_envs=8, seed=1)
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=256, n_epochs=20, device="cpu")
    model.learn(1)
    print(f"first update at {time.time()}", flush=True)
