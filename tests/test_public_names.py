"""Every name that users know from the systems Operant descends from is where they look for it."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys

import pytest

NAMES = {
    "operant": "Policy Run build_and_train check_env load resume sweep train",
    "operant.agents": "A2C ACER ACERConfig ACERVTrace ACERVTraceConfig AGENTS ActorCritic "
    "AgentBase DDPG DQN PPO SAC A2CConfig DDPGConfig DQNConfig DQNPerConfig PPOConfig "
    "RainbowConfig SACConfig MADDPG MADDPGConfig "
    "Actor GradientStep Losses Optimizer PolicySelector ActorCriticVTrace TRPO TRPOConfig VTrace "
    "VTraceConfig",
    "operant.callbacks": "BestCheckpoint Event StopAtReturn WeightsAndBiases",
    "operant.containers": "LocalWorker",
    "operant.core": "Agent AgentConfig Container Count EnvironmentManager "
    "Experience Fraction HiddenState Memory Network Parts Rate "
    "Sampler Schedule Shape Spaces TrajInfo namedarraytuple",
    "operant.envs": "ActionPreprocessor Env EnvConfig Environment GymEnv NativeEnvManager "
    "ObsPreprocessor SimpleEnvManager SubProcEnvManager make_env make_manager",
    "operant.frameworks": "A2C PPO SAC TRPO ActorDiscrete ActorContinuous IMPALA MADDPG A3C "
    "DQNApex DDPGApex DQN DQNPer RAINBOW DDPG DDPGPer HDDPG TD3 Buffer "
    "PrioritizedBuffer Transition AbsoluteLR AgentTrain OptInfo PolicyGradientAlgo "
    "RLAlgorithm RlAlgorithm",
    "operant.memory": "ExperienceCache ExperienceReplay PrioritizedReplay RolloutBuffer "
    "RolloutCache",
    "operant.networks": "CustomNetwork Identity1D Identity2D Identity3D Identity4D LSTM MLP "
    "ModularNetwork NatureCNN NetworkConfig NoisyLinear SubModule SubModule1D SubModule2D "
    "SubModule3D SubModule4D build_network",
    "operant.ops": "ActionDistribution distribution_for gae n_step retrace vtrace",
    "operant.processes": "WorkerPool WorkerProcess",
    "operant.samplers": "AlternatingSampler AsyncSampler BaseCollector BaseSampler Collector "
    "Evaluation Explorer ParallelSampler SerialSampler",
    "operant.session": "BaseRunner Recipe RunConfig Runner Session load_agent",
}
# By class: members that the systems before had, as attributes of the class.
MEMBERS = {
    "operant.containers.LocalWorker": "run agent env environment exp_cache experience_cache "
    "network local_step_count reward_buffer hidden_state",
    "operant.agents.PPO": "act observe compute_loss output_space update",
    "operant.agents.ACER": "act observe compute_loss output_space update",
    "operant.agents.DQN": "act observe compute_loss output_space update",
    "operant.agents.DDPG": "act observe compute_loss output_space update",
    "operant.agents.SAC": "act observe compute_loss output_space update",
    "operant.agents.TRPO": "act observe compute_loss output_space update",
    "operant.agents.VTrace": "act observe compute_loss output_space update",
    "operant.memory.RolloutCache": "read write env_write agent_write ready submit receive store",
    "operant.envs.SimpleEnvManager": "step reset close env_cls",
    "operant.envs.GymEnv": "spaces horizon obs_preprocessor_cpu action_preprocessor step reset "
    "close",
    "operant.core.HiddenState": "detach reset",
    "operant.samplers.SerialSampler": "obtain_samples evaluate_agents evaluate_agent",
    "operant.samplers.Collector": "start_envs start_agent collect_batch",
    "operant.frameworks.PolicyGradientAlgo": "initialize optimize_agent process_returns loss",
    "operant.session.Runner": "train explorer memory agents",
    "operant.samplers.Explorer": "update",
}


@pytest.mark.parametrize(("package", "names"), list(NAMES.items()))
def test_a_package_gives_its_names(package: str, names: str) -> None:
    found = importlib.import_module(package)
    lacking = [name for name in names.split() if not hasattr(found, name)]
    assert lacking == []
    assert set(names.split()) <= set(found.__all__)


@pytest.mark.parametrize(("path", "members"), list(MEMBERS.items()))
def test_a_class_has_its_members(path: str, members: str) -> None:
    package, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(package), name)
    ours = [kind for kind in found.__mro__ if kind.__module__.startswith("operant.")]
    source = "\n".join(map(inspect.getsource, ours))

    def has(member: str) -> bool:  # on the class, or assigned when it is made
        assigned = re.search(rf"self\.{member}\b[^=()\n]* = ", source)
        return hasattr(found, member) or assigned is not None

    assert [member for member in members.split() if not has(member)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    agents = importlib.import_module("operant.agents")
    with pytest.raises(AttributeError, match=r"'operant\.agents' has no attribute 'PP0'"):
        _ = agents.PP0


@pytest.mark.parametrize("package", [p for p in NAMES if p != "operant.networks"])
def test_a_package_is_imported_without_torch(package: str) -> None:
    code = f"import {package}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
