"""Names that other libraries give to settings are answered with ours, for every agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from combinations import BASES

from operant import train
from operant.config import from_tree, parse_flags
from operant.config.schema import leaves
from operant.config.synonyms import SYNONYMS, path_of
from operant.core.errors import UsageError
from operant.session.run_settings import run_config

EVERYWHERE = {
    "learning_rate": "agent.lr",
    "discount_factor": "agent.gamma",
    "total_timesteps": "steps",
    "n_envs": "env.num_envs",
    "env_id": "env.id",
    "net_arch": "network.hidden",
    "eval_freq": "eval.every",
    "max_episode_steps": "env.time_limit",
    "norm_reward": "env.normalize_reward",
}
ACTOR_CRITIC = {
    "gae_lambda": "agent.lam",
    "n_steps": "agent.length",
    "ent_coef": "agent.entropy_coef",
    "vf_coef": "agent.value_coef",
}
REPLAY = {
    "buffer_size": "agent.replay_size",
    "n_steps": "agent.n_step",
    "train_freq": "agent.length",
    "gradient_steps": "agent.updates_per_step",
    "warmup_steps": "agent.learning_starts",
}
OF_AGENT: dict[str, dict[str, str]] = {
    "a2c": ACTOR_CRITIC,
    "ppo": {
        **ACTOR_CRITIC,
        "n_epochs": "agent.epochs",
        "clip_range": "agent.clip",
        "batch_size": "agent.minibatch",
    },
    "trpo": {
        "gae_lambda": "agent.lam",
        "n_steps": "agent.length",
        "target_kl": "agent.max_kl",
        "n_critic_updates": "agent.epochs",
        "batch_size": "agent.minibatch",
        "cg_damping": "agent.damping",
        "cg_max_steps": "agent.cg_iterations",
        "line_search_max_iter": "agent.backtracks",
        "line_search_shrinking_factor": "agent.shrink",
    },
    "vtrace": {
        **ACTOR_CRITIC,
        "clip_rho_threshold": "agent.rho",
        "clip_c_threshold": "agent.c",
        "clip_pg_rho_threshold": "agent.rho_policy",
    },
    "acer": {
        **{k: REPLAY[k] for k in ("buffer_size", "warmup_steps")},
        **{k: ACTOR_CRITIC[k] for k in ("n_steps", "ent_coef", "vf_coef")},
        "importance_weight_clipping_factor": "agent.truncation",
        "trust_region_delta": "agent.trust",
        "q_coef": "agent.value_coef",
        "trust_region_alpha": "agent.tau",
        "polyak": "agent.tau",
    },
    "dqn": {
        **REPLAY,
        "target_update_interval": "agent.target_every",
        "exploration_initial_eps": "agent.epsilon",
        "exploration_final_eps": "agent.epsilon",
        "exploration_fraction": "agent.epsilon",
        "num_atoms": "agent.atoms",
        "v_min": "agent.value_min",
        "v_max": "agent.value_max",
        "noisy_net": "agent.noisy",
        "batch_size": "agent.batch_size",
    },
    "ddpg": {
        **REPLAY,
        "actor_lr": "agent.policy_lr",
        "policy_delay": "agent.policy_every",
        "target_policy_noise": "agent.target_noise",
        "noise_clip": "agent.target_noise_clip",
        "action_noise": "agent.exploration",
        "exploration_noise": "agent.exploration_scale",
        "n_critics": "agent.critics",
        "polyak": "agent.tau",
    },
    "maddpg": {**REPLAY, "polyak": "agent.tau", "actor_lr": "agent.policy_lr"},
    "sac": {**REPLAY, "ent_coef": "agent.alpha", "polyak": "agent.tau"},
}
CASES = [
    (agent, name, path)
    for agent in BASES
    for name, path in {**EVERYWHERE, **OF_AGENT[agent]}.items()
    if not path.endswith(f".{name}")
]


def flag(path: str) -> str:
    return "--" + path.replace("_", "-")


@pytest.mark.parametrize(("agent", "name", "path"), CASES)
def test_a_flag_of_another_library_is_answered_with_ours(agent: str, name: str, path: str) -> None:
    for given in (flag(name), flag(f"agent.{name}")):
        with pytest.raises(UsageError) as caught:
            parse_flags(run_config(agent), [given, "1"])
        assert str(caught.value) == f"{given}: unknown flag; did you mean '{flag(path)}'?"


@pytest.mark.parametrize(("agent", "name", "path"), CASES)
def test_a_key_of_another_library_is_answered_with_ours(agent: str, name: str, path: str) -> None:
    section, _, field = path.rpartition(".")
    trees: list[tuple[dict[str, Any], str, str]] = [({name: 1}, name, path)]
    if section:
        trees.append(({section: {name: 1}}, f"{section}.{name}", field))
    for tree, given, expected in trees:
        if name == section:
            continue
        with pytest.raises(UsageError) as caught:
            from_tree(run_config(agent), tree)
        assert str(caught.value) == f"{given}: unknown key; did you mean '{expected}'?"


def test_python_is_answered_too(tmp_path: Path) -> None:
    for settings, message in (
        ({"learning_rate": 1e-3}, "learning_rate: unknown key; did you mean 'agent.lr'?"),
        ({"agent": {"clip_range": 1}}, "agent.clip_range: unknown key; did you mean 'clip'?"),
    ):
        with pytest.raises(UsageError) as caught:
            train("ppo", runs=tmp_path, **settings)
        assert str(caught.value) == message


def test_only_what_the_agent_has_is_suggested() -> None:
    for agent, name in (("dqn", "gae_lambda"), ("sac", "clip_range"), ("ppo", "buffer_size")):
        paths = [leaf.path for leaf in leaves(run_config(agent))]
        assert path_of(name, paths) == ""


def test_a_setting_in_the_wrong_section_is_found() -> None:
    with pytest.raises(UsageError, match=r"did you mean '--env\.num-envs'"):
        parse_flags(run_config("ppo"), ["--agent.num-envs", "4"])


def test_every_synonym_is_of_a_setting_that_exists_and_is_none_itself() -> None:
    own = {"quiet", "runs", "name", "agent.optimizer"}  # options of the command, and what may come
    fields = {leaf.path for agent in BASES for leaf in leaves(run_config(agent))} | own
    assert set(SYNONYMS) <= fields
    for path, names in SYNONYMS.items():
        assert len(names.split()) == len(set(names.split())), path
        assert path.rpartition(".")[2] not in names.split()


def test_a_setting_that_only_other_agents_have_is_said_to_be_theirs() -> None:
    with pytest.raises(UsageError) as refused:
        parse_flags(run_config("ppo"), ["--buffer-size", "1000"])
    expected = "--buffer-size: unknown flag; --agent.replay-size is a setting of other agents"
    assert str(refused.value) == expected
