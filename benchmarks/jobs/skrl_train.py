"""skrl's side of the works on CartPole and of SAC; runs in an environment of its own."""

# mypy: ignore-errors
# Typed by a library that is not installed where the types are checked.
import logging
import os
from itertools import pairwise

import gymnasium
import torch
from skrl import logger
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.agents.torch.sac import SAC, SAC_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from torch import nn

from benchmarks.jobs.definitions import TRAINING, steady
from benchmarks.jobs.probe import Probe, arguments

logger.setLevel(logging.ERROR)
ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


def mlp(sizes: list[int], activation: str, *last: nn.Module) -> nn.Sequential:
    layers = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1], *last)


class Discrete(CategoricalMixin, Model):
    """A policy over choices."""

    def __init__(self, env, net: nn.Module) -> None:
        Model.__init__(self, **spaces(env))
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)
        self.net = net

    def compute(self, inputs, role):
        return self.net(inputs["observations"]), {}


class Continuous(GaussianMixin, Model):
    """A policy over numbers."""

    def __init__(self, env, net: nn.Module) -> None:
        Model.__init__(self, **spaces(env))
        GaussianMixin.__init__(self, clip_log_std=True, min_log_std=-20, max_log_std=2)
        self.net = net
        self.log_std = nn.Parameter(torch.zeros(env.action_space.shape))

    def compute(self, inputs, role):
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    """A value of what is seen, and done if there is an action among the inputs."""

    def __init__(self, env, net: nn.Module, critic: bool = False) -> None:
        Model.__init__(self, **spaces(env))
        DeterministicMixin.__init__(self)
        self.net, self.critic = net, critic

    def compute(self, inputs, role):
        seen = inputs["observations"]
        return self.net(torch.cat([seen, inputs["taken_actions"]], 1) if self.critic else seen), {}


def spaces(env) -> dict:
    names = ("observation_space", "state_space", "action_space", "device")
    return {name: getattr(env, name) for name in names}


def ppo(env, settings: dict):
    agent, network = settings["agent"], settings["network"]
    seen, choices = env.observation_space.shape[0], int(env.action_space.n)
    inner = [seen, *network["hidden"]]
    models = {
        "policy": Discrete(env, mlp([*inner, choices], network["activation"])),
        "value": Value(env, mlp([*inner, 1], network["activation"])),
    }
    cfg = PPO_CFG()
    cfg.rollouts, cfg.learning_epochs = agent["length"], agent["epochs"]
    cfg.mini_batches = agent["length"] * env.num_envs // agent["minibatch"]
    cfg.learning_rate, cfg.grad_norm_clip = 3e-4, 0.5
    memory = RandomMemory(memory_size=agent["length"], num_envs=env.num_envs, device=env.device)
    return PPO, cfg, models, memory


def sac(env, settings: dict):
    agent, network = settings["agent"], settings["network"]
    seen, done = env.observation_space.shape[0], env.action_space.shape[0]
    hidden, activation = network["hidden"], network["activation"]
    names = ("critic_1", "critic_2", "target_critic_1", "target_critic_2")
    sizes = [seen + done, *hidden, 1]
    models = {name: Value(env, mlp(sizes, activation), critic=True) for name in names}
    models["policy"] = Continuous(env, mlp([seen, *hidden, done], activation, nn.Tanh()))
    cfg = SAC_CFG()
    cfg.gradient_steps, cfg.batch_size = 1, agent["batch_size"]
    cfg.random_timesteps = cfg.learning_starts = agent["learning_starts"]
    cfg.learn_entropy = True
    memory = RandomMemory(memory_size=agent["replay_size"], num_envs=1, device=env.device)
    return SAC, cfg, models, memory


def main() -> None:
    asked = arguments()
    algorithm, settings = TRAINING[asked.work]
    env_id, count = settings["env"]["id"], settings["env"]["num_envs"]
    made = gymnasium.make(env_id) if count == 1 else gymnasium.make_vec(env_id, count)
    env = wrap_env(made)
    cls, cfg, models, memory = {"ppo": ppo, "sac": sac}[algorithm](env, settings)
    cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
    agent = cls(models=models, memory=memory, cfg=cfg, **spaces(env))
    chunk = count * settings["agent"]["length"]
    probe, done, steps = Probe(asked, steady(settings)), agent.post_interaction, [0]

    def boundary(*args, **kwargs):
        done(*args, **kwargs)
        steps[0] += count
        if steps[0] % chunk == 0 and probe(steps[0]):
            os._exit(0)  # the trainer has no other way to end early

    agent.post_interaction = boundary
    trained = {"timesteps": 10**8, "headless": True, "disable_progressbar": True}
    SequentialTrainer(cfg=trained, env=env, agents=agent).train()


if __name__ == "__main__":
    main()
