"""Tianshou's side of the training works; runs in an environment of its own.

Its trainer scans the whole replay for missing numbers at every step, and has no option for that:
measured as it is.
"""

# mypy: ignore-errors
# Typed by a library that is not installed where the types are checked.
import os

import ale_py
import gymnasium
import numpy as np
import torch
from tianshou.algorithm import DQN, PPO, SAC, RainbowDQN
from tianshou.algorithm.modelfree.c51 import C51Policy
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.modelfree.sac import AutoAlpha, SACPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import (
    Collector,
    CollectStats,
    PrioritizedVectorReplayBuffer,
    ReplayBuffer,
    VectorReplayBuffer,
)
from tianshou.env import DummyVectorEnv
from tianshou.env.atari.atari_network import DQNet, RainbowNet, ScaledObsInputActionReprNet
from tianshou.env.atari.atari_wrapper import wrap_deepmind
from tianshou.trainer import OffPolicyTrainerParams, OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

from benchmarks.jobs.definitions import TRAINING, steady
from benchmarks.jobs.probe import Probe, arguments

gymnasium.register_envs(ale_py)
FRAMES = {"c": 4, "h": 84, "w": 84}


def single(env: dict):
    """One environment, as Tianshou's examples wrap it."""
    if not env["id"].startswith("ALE/"):
        return gymnasium.make(env["id"])
    game = env["id"].removeprefix("ALE/").removesuffix("-v5")
    made = gymnasium.make(f"{game}NoFrameskip-v4")
    return wrap_deepmind(made, episode_life=True, clip_rewards=True, frame_stack=4, scale=False)


def adam(lr: float = 3e-4):
    return AdamOptimizerFactory(lr=lr)


def ppo(env, settings: dict):
    choices, agent = int(env.action_space.n), settings["agent"]
    if len(env.observation_space.shape) == 3:
        features = DQNet(
            **FRAMES, action_shape=choices, features_only=True, output_dim_added_layer=512
        )
        shared = ScaledObsInputActionReprNet(features)
        bodies = (shared, shared)
    else:
        hidden, shape = settings["network"]["hidden"], env.observation_space.shape
        bodies = [
            Net(state_shape=shape, hidden_sizes=hidden, activation=torch.nn.Tanh) for _ in "pv"
        ]
    actor = DiscreteActor(preprocess_net=bodies[0], action_shape=choices, softmax_output=False)
    return PPO(
        policy=DiscreteActorPolicy(actor=actor, action_space=env.action_space),
        critic=DiscreteCritic(preprocess_net=bodies[1]),
        optim=adam(agent.get("lr", 3e-4)),
        gae_lambda=0.95,
        max_grad_norm=0.5,
        ent_coef=agent.get("entropy_coef", 0.0),
        eps_clip=agent.get("clip", 0.2),
        advantage_normalization=True,
        recompute_advantage=False,
    )


def dqn(env, settings: dict):
    agent, net = settings["agent"], DQNet(**FRAMES, action_shape=int(env.action_space.n))
    policy = DiscreteQLearningPolicy(
        model=ScaledObsInputActionReprNet(net),
        action_space=env.action_space,
        eps_training=agent["epsilon"],
        eps_inference=agent["epsilon"],
    )
    return DQN(policy=policy, optim=adam(1e-4), target_update_freq=agent["target_every"])


def rainbow(env, settings: dict):
    agent, shape = settings["agent"], {"action_shape": int(env.action_space.n)}
    net = RainbowNet(
        **FRAMES, **shape, num_atoms=agent["atoms"], is_dueling=agent["dueling"], is_noisy=True
    )
    policy = C51Policy(
        model=ScaledObsInputActionReprNet(net),
        action_space=env.action_space,
        num_atoms=agent["atoms"],
        v_min=agent["value_min"],
        v_max=agent["value_max"],
    )
    return RainbowDQN(
        policy=policy,
        optim=adam(1e-4),
        n_step_return_horizon=agent["n_step"],
        target_update_freq=agent["target_every"],
    )


def sac(env, settings: dict):
    seen, done = env.observation_space.shape, env.action_space.shape
    hidden = settings["network"]["hidden"]
    body = Net(state_shape=seen, hidden_sizes=hidden)
    actor = ContinuousActorProbabilistic(
        preprocess_net=body, action_shape=done, unbounded=True, conditioned_sigma=True
    )

    def critic():
        both = Net(state_shape=seen, action_shape=done, hidden_sizes=hidden, concat=True)
        return ContinuousCritic(preprocess_net=both)

    return SAC(
        policy=SACPolicy(actor=actor, action_space=env.action_space),
        policy_optim=adam(),
        critic=critic(),
        critic_optim=adam(),
        critic2=critic(),
        critic2_optim=adam(),
        alpha=AutoAlpha(-float(np.prod(done)), 0.0, adam()),
    )


MAKE = {"ppo": ppo, "dqn": dqn, "rainbow": rainbow, "sac": sac}


def collector(algorithm, settings: dict):
    """The environments and the replay."""
    env, agent = settings["env"], settings["agent"]
    envs = DummyVectorEnv([lambda: single(env)] * env["num_envs"])
    size = agent.get("replay_size", 2 * env["num_envs"] * agent["length"])
    frames = {"ignore_obs_next": True, "save_only_last_obs": True, "stack_num": 4}
    stored = frames if env["id"].startswith("ALE/") else {}
    many = env["num_envs"] > 1 or stored
    if "priority_alpha" in agent:
        weights = {"alpha": agent["priority_alpha"], "beta": agent["priority_beta"]}
        replay = PrioritizedVectorReplayBuffer(size, env["num_envs"], **weights, **stored)
    else:
        # For one environment the plain buffer, as in Tianshou's examples; it is far faster here.
        replay = VectorReplayBuffer(size, env["num_envs"], **stored) if many else ReplayBuffer(size)
    made = Collector[CollectStats](algorithm, envs, replay, exploration_noise=True)
    made.reset()
    if steady(settings):
        made.collect(n_step=steady(settings), random=True)
    return made


def schedule(settings: dict, **common):
    """When to collect and when to learn."""
    env, agent = settings["env"], settings["agent"]
    common |= {"collection_step_num_env_steps": env["num_envs"] * agent["length"]}
    common |= {"max_epochs": 1, "epoch_num_steps": 10**8, "test_collector": None}
    common |= {"show_progress": False, "verbose": False}
    if "epochs" in agent:
        return OnPolicyTrainerParams(
            update_step_num_repetitions=agent["epochs"], batch_size=agent["minibatch"], **common
        )
    return OffPolicyTrainerParams(
        update_step_num_gradient_steps_per_sample=agent["updates_per_step"],
        batch_size=agent["batch_size"],
        **common,
    )


def main() -> None:
    asked = arguments()
    name, settings = TRAINING[asked.work]
    algorithm, probe = MAKE[name](single(settings["env"]), settings), Probe(asked)

    def boundary(epoch: int, steps: int) -> None:
        if probe(steps):
            os._exit(0)  # the trainer has no other way to end in the middle of an epoch

    data = collector(algorithm, settings)
    algorithm.run_training(schedule(settings, training_collector=data, training_fn=boundary))


if __name__ == "__main__":
    main()
