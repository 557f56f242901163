"""Settings by the names that other libraries give them.

The names are those of Stable-Baselines3, CleanRL, RLlib, Tianshou, rlpyt and common scripts. They
are not accepted, since a setting has one name; the error for one of them names ours.
"""

from __future__ import annotations

from collections.abc import Iterable

# Our path, then the names elsewhere; of several paths with one name, the first that exists counts.
SYNONYMS: dict[str, str] = {
    "agent.policy_lr": "pi_lr actor_lr actor_learning_rate",
    "agent.lr": "learning_rate step_size policy_lr pi_lr actor_lr q_lr",
    "agent.gamma": "discount discount_factor discount_rate",
    "agent.lam": "gae_lambda lambda lambda_ gae_lam td_lambda",
    "agent.n_step": "n_steps n_step_return num_step_return multi_step",
    "agent.length": "n_steps num_steps rollout_length rollout_steps unroll_length horizon "
    "rollout_fragment_length update_timestep train_freq train_frequency update_every batch_t",
    "agent.minibatch": "batch_size minibatch_size mini_batch_size sgd_minibatch_size",
    "agent.batch_size": "minibatch minibatch_size mini_batch_size train_batch_size",
    "agent.epochs": "n_epochs num_epochs update_epochs k_epochs ppo_epochs num_sgd_iter "
    "repeat_per_collect n_critic_updates vf_iters train_v_iters critic_update_times",
    "agent.clip": "clip_range clip_coef clip_param clip_ratio eps_clip ratio_clip clip_epsilon",
    "agent.max_kl": "target_kl max_kld kl_max_delta kl_max_change delta",
    "agent.damping": "cg_damping damping_coeff cg_reg_coeff",
    "agent.cg_iterations": "cg_max_steps cg_iters cg_iterations_max conjugate_iterations",
    "agent.backtracks": "line_search_max_iter max_backtracks backtrack_iters "
    "line_search_backtracks",
    "agent.shrink": "line_search_shrinking_factor backtrack_coeff backtrack_ratio",
    "agent.rho": "clip_rho_threshold vtrace_clip_rho_threshold rho_bar isw_clip_rho",
    "agent.c": "clip_c_threshold c_bar isw_clip_c",
    "agent.rho_policy": "clip_pg_rho_threshold vtrace_clip_pg_rho_threshold",
    "agent.entropy_coef": "ent_coef entropy_coeff entropy_coefficient entropy_weight "
    "entropy_loss_coeff entropy_beta",
    "agent.alpha": "ent_coef temperature init_temperature initial_alpha entropy_coef",
    "agent.learn_alpha": "autotune auto_alpha learnable_temperature automatic_entropy_tuning",
    "agent.value_coef": "vf_coef q_coef value_loss_coef value_loss_coeff vf_loss_coeff critic_coef",
    "agent.max_grad_norm": "max_gradient_norm clip_grad_norm grad_clip gradient_clip",
    "agent.normalize_advantage": "norm_adv normalize_adv advantage_normalization",
    "agent.replay_size": "buffer_size replay_buffer_size replay_capacity memory_size",
    "agent.learning_starts": "warmup_steps start_steps start_timesteps min_replay_size "
    "min_buffer_size random_steps start_training",
    "agent.updates_per_step": "gradient_steps num_gradient_steps update_per_step utd utd_ratio "
    "replay_ratio training_intensity",
    "agent.truncation": "correction_term importance_weight_clipping_factor "
    "importance_weight_truncation c_max",
    "agent.trust": "delta trust_region_delta max_kl_divergence trust_region_threshold",
    "agent.target_every": "target_update_interval target_network_frequency target_update_freq "
    "target_network_update_freq target_update_period target_update_every",
    "agent.tau": "polyak polyak_tau soft_update_tau target_update_tau update_rate "
    "trust_region_alpha",
    "agent.critics": "n_critics num_critics twin_q clipped_double_q",
    "agent.policy_every": "policy_delay policy_freq policy_frequency update_actor_freq "
    "actor_update_interval",
    "agent.target_noise": "target_policy_noise policy_noise smooth_target_policy_noise",
    "agent.target_noise_clip": "noise_clip policy_noise_clip target_policy_noise_clip",
    "agent.exploration": "action_noise noise_type",
    "agent.exploration_scale": "exploration_noise expl_noise act_noise noise_std noise_sigma",
    "agent.exploration_theta": "ou_theta noise_theta",
    "agent.increase_rate": "q_increase_rate",
    "agent.decrease_rate": "q_decrease_rate",
    "agent.epsilon": "exploration_initial_eps exploration_final_eps exploration_fraction "
    "exploration_rate eps epsilon_start epsilon_end epsilon_decay start_e end_e eps_greedy",
    "agent.double": "double_q double_dqn is_double use_double_q",
    "agent.dueling": "dueling_dqn duel use_dueling",
    "agent.noisy": "noisy_net noisy_nets noisy_networks noisy_dqn is_noisy",
    "agent.atoms": "num_atoms n_atoms atom_size num_support",
    "agent.value_min": "v_min vmin",
    "agent.value_max": "v_max vmax",
    "agent.prioritized": "prioritized_replay prioritized_experience_replay per use_per",
    "agent.priority_alpha": "prioritized_replay_alpha per_alpha",
    "agent.priority_beta": "prioritized_replay_beta per_beta",
    "agent.optimizer": "optimizer_class optim",
    "steps": "total_timesteps total_steps n_timesteps num_timesteps timesteps max_steps "
    "num_env_steps n_step_total",
    "env.id": "env env_id env_name environment game task",
    "env.num_envs": "n_envs num_env n_env nenvs num_actors vec_num batch_b",
    "env.workers": "num_workers n_workers num_env_runners",
    "env.kwargs": "env_kwargs env_config make_kwargs",
    "env.frame_stack": "atari_stack num_stack stack_num framestack n_stack",
    "env.frame_skip": "frameskip action_repeat repeat_action",
    "env.sticky": "repeat_action_probability sticky_actions action_repeat_probability",
    "env.time_limit": "max_episode_steps max_episode_length max_ep_len episode_length",
    "env.reward_clip": "clip_reward clip_rewards reward_clipping",
    "env.normalize_reward": "norm_reward normalize_rewards reward_norm",
    "network.hidden": "net_arch hidden_sizes hidden_size hidden_dim hidden_layers fcnet_hiddens "
    "policy_kwargs",
    "network.activation": "activation_fn nonlinearity fcnet_activation",
    "network.lstm": "lstm_hidden_size lstm_size use_lstm lstm_cell_size rnn_size",
    "network.normalize": "norm_obs normalize_observation normalize_observations obs_norm",
    "network.init": "ortho_init orthogonal_init",
    "eval.every": "eval_freq eval_frequency eval_interval evaluation_interval",
    "eval.episodes": "n_eval_episodes eval_episodes num_eval_episodes evaluation_duration",
    "checkpoint.seconds": "save_freq save_frequency checkpoint_freq checkpoint_frequency",
    "log_every": "log_interval log_freq log_frequency print_freq",
    "threads": "num_threads n_threads torch_threads",
    "device": "cuda use_cuda gpu",
    "compile": "torch_compile",
    "quiet": "verbose silent progress_bar",
    "runs": "log_dir logdir save_dir output_dir save_path tensorboard_log",
    "name": "run_name exp_name experiment_name",
}


def other_agents_setting(name: str, paths: Iterable[str]) -> str:
    """Our path for `name` where none of `paths` is meant, but another agent has such a setting."""
    field = name.replace("-", "_").rpartition(".")[2].lower()
    ours = [path for path, names in SYNONYMS.items() if field in names.split()]
    return next((path for path in ours if path.startswith("agent.") and path not in paths), "")


def path_of(name: str, paths: Iterable[str]) -> str:
    """Which of `paths` is meant by `name`, with or without a section; empty if none is clear.

    A setting of that name in any section comes first, then one that other libraries call so.
    """
    known = list(paths)
    field = name.replace("-", "_").rpartition(".")[2].lower()
    named = [path for path in known if path.rpartition(".")[2] == field]
    ours = [path for path, names in SYNONYMS.items() if field in names.split()]
    # Where only a section is read, its fields stand without the name of the section.
    same = [path for our in ours for path in known if path == our or our.endswith(f".{path}")]
    return next(iter([*named, *same]), "")
