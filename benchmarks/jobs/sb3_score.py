"""Stable-Baselines3's side of a score, by its defaults or by RL Zoo's settings."""

# mypy: ignore-errors
# Typed by a library that is not installed where the types are checked.
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium
import torch
from sb3_contrib import TRPO
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

from benchmarks.suites import MAX_STEPS

KINDS = {"a2c": A2C, "ddpg": DDPG, "dqn": DQN, "ppo": PPO, "sac": SAC, "td3": TD3, "trpo": TRPO}
EPISODES, EVAL_SEED = 20, 1_000


def by_defaults(env: str, agent: str, steps: int, num_envs: int, seed: int):
    made = make_vec_env(env, n_envs=num_envs, seed=seed)
    model = KINDS[agent]("MlpPolicy", made, seed=seed, device="cpu")
    model.learn(steps)
    return model, None


def by_zoo(env: str, agent: str, steps: int, num_envs: int, seed: int):
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "rl_zoo3.train", "--algo", agent, "--env", env]
        command += ["-n", str(steps), "--seed", str(seed), "-f", place, "--num-threads", "1"]
        command += ["--eval-freq", "-1", "--device", "cpu", "-params", f"n_envs:{num_envs}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            if "Hyperparameters not found" in done.stderr + done.stdout:
                return None, None
            raise RuntimeError(done.stderr[-2000:])
        folder = next(Path(place, agent).glob(f"{env}_*"))
        model = KINDS[agent].load(folder / f"{env}.zip", device="cpu")
        statistics = list(folder.glob("**/vecnormalize.pkl"))
        return model, statistics[0].read_bytes() if statistics else None


def normalized(statistics: bytes, played):
    with tempfile.NamedTemporaryFile(suffix=".pkl") as file:
        file.write(statistics)
        file.flush()
        found = VecNormalize.load(file.name, played)
    found.training = found.norm_reward = False
    return found


def main() -> None:
    env, agent, steps, num_envs, seed, contender = sys.argv[1:7]
    torch.set_num_threads(1)
    train = by_zoo if contender == "zoo" else by_defaults
    model, statistics = train(env, agent, int(steps), int(num_envs), int(seed))
    if model is None:
        print(json.dumps({"skipped": "RL Zoo has no settings"}))
        return
    limit = {} if gymnasium.spec(env).max_episode_steps else {"max_episode_steps": MAX_STEPS}
    played = make_vec_env(env, n_envs=1, seed=EVAL_SEED, env_kwargs=limit)
    if statistics is not None:
        played = normalized(statistics, played)
    mean, _ = evaluate_policy(model, played, n_eval_episodes=EPISODES, deterministic=True)
    print(json.dumps({"score": float(mean), "steps": int(steps)}))


if __name__ == "__main__":
    main()
