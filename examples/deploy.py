"""A trained policy in another program: no training, and no environment of Operant's.

python examples/deploy.py
"""

import gymnasium
import numpy as np

import operant

run = operant.train("ppo", "Pendulum-v1", steps=4_000, name="deployed", quiet=True)

# Elsewhere: only the run directory is needed. The spaces are saved in it, so the simulator that
# the policy was trained in need not be installed.
policy = operant.load("deployed").policy()

# One observation in, the environment's own action out: here a torque between -2 and 2.
env = gymnasium.make("Pendulum-v1")
observation, _ = env.reset(seed=0)
total, ended = 0.0, False
while not ended:
    observation, reward, terminated, truncated, _ = env.step(policy(observation))
    total, ended = total + float(reward), terminated or truncated
policy.reset()  # an episode ended: forget what was seen, if the network has a memory
print(f"return {total:.0f}")

# A batch, as a vector environment gives it.
envs = gymnasium.make_vec("Pendulum-v1", num_envs=3)
observations, _ = envs.reset(seed=0)
for _step in range(10):
    observations, _, terminated, truncated, _ = envs.step(policy(observations))
    policy.reset(terminated | truncated)
print("observations", np.shape(observations))

# As with Stable-Baselines3, where the caller carries the recurrent state.
action, state = operant.load("deployed").predict(observations, deterministic=True)
print("actions", action.shape)
