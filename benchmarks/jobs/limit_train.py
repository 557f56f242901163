"""What a training work costs when nothing but its arithmetic is paid for: the limit.

The environments, the policy's forward pass and the gradient steps are timed bare, each in the
fastest of the ways that `plain` offers, with one thread and with all. Their sum, one after
another, bounds any loop that does them in turn. Overlapped, collecting has one core and learning
another, and the slower of the two decides.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import gymnasium
import torch

from benchmarks import machine
from benchmarks.jobs import plain
from benchmarks.jobs.definitions import TRAINING, Settings
from benchmarks.jobs.plain import Call
from benchmarks.jobs.probe import arguments, cost, tell
from operant.session.machine import keep_memory

ATARI = "ALE/"
TRIAL = 0.4  # seconds to find out which way is the fastest
CORES = machine.cores()
# Without instructions for it, bf16 takes tens of times as long.
PRECISIONS = (False, True) if machine.has_bf16() else (False,)
SIZES = {"CartPole-v1": (4, 2), "HalfCheetah-v5": (17, -6)}  # seen, and chosen from


def main() -> None:
    asked = arguments()
    keep_memory()
    algorithm, settings = TRAINING[asked.work]
    env, agent = settings["env"], settings["agent"]
    steps = env["num_envs"] * agent["length"]
    acting, learning = ways(algorithm, settings)
    stepping = agent["length"] * best([environments(env)], CORES, asked.seconds / 5) / shared(env)
    times = {
        name: [counted * best(options, threads, asked.seconds / 5) for threads in (CORES, 1)]
        for name, counted, options in (
            ("acting", agent["length"], acting),
            ("learning", updates(algorithm, settings), learning),
        )
    }
    serial = steps / (stepping + min(times["acting"]) + min(times["learning"]))
    split = steps / max(stepping + times["acting"][1], times["learning"][1])
    overlapped = max(serial, split)
    value = overlapped if "sampler" in settings else serial
    at_best = {"stepping": stepping, **{name: min(found) for name, found in times.items()}}
    spent = {name: round(1e6 * seconds / steps, 2) for name, seconds in at_best.items()}
    tell(asked, value, serial=serial, overlapped=overlapped, spent=spent)


def updates(algorithm: str, settings: Settings) -> float:
    """Gradient steps for each chunk."""
    agent, steps = settings["agent"], settings["env"]["num_envs"] * settings["agent"]["length"]
    if algorithm == "ppo":
        return float(agent["epochs"] * -(-steps // agent["minibatch"]))
    return float(agent["updates_per_step"] * steps)


def best(options: list[Call], threads: int, seconds: float) -> float:
    """Seconds of one call, done in the fastest way."""
    torch.set_num_threads(threads)
    fastest = min(options, key=lambda call: cost(call, TRIAL)) if len(options) > 1 else options[0]
    return cost(fastest, seconds)


def shared(env: Settings) -> int:
    """Over how many cores workers can lay environments that are not a batch by themselves."""
    return 1 if native(env) else min(CORES, env["num_envs"])


def native(env: Settings) -> bool:
    """Whether the environments come as one."""
    return env["id"].startswith(ATARI) or gymnasium.spec(env["id"]).vector_entry_point is not None


def environments(env: Settings) -> Call:
    """One step of all environments, bare, whose episodes begin anew by themselves."""
    count = env["num_envs"]
    made: Any
    if env["id"].startswith(ATARI):
        from ale_py import AtariVectorEnv  # noqa: PLC0415  # only for this work

        game = env["id"].removeprefix(ATARI).removesuffix("-v5").lower()
        made = AtariVectorEnv(game, num_envs=count, num_threads=min(CORES, count))
    else:
        mode = "vector_entry_point" if native(env) else "sync"
        made = gymnasium.make_vec(env["id"], count, vectorization_mode=mode)
    made.reset(seed=0)
    actions = made.action_space.sample()
    return lambda: made.step(actions)


def ways(algorithm: str, settings: Settings) -> tuple[list[Call], list[Call]]:
    """How acting and one gradient step can be done."""
    env, agent = settings["env"], settings["agent"]
    count = env["num_envs"]
    if env["id"].startswith(ATARI):
        return images(algorithm, count, agent)
    seen, chosen = SIZES[env["id"]]
    hidden, activation = settings["network"]["hidden"], settings["network"]["activation"]
    few = torch.randn(count, seen)
    if algorithm == "sac":
        actor = plain.mlp([seen, *hidden, -2 * chosen], activation)
        critics = plain.Twins([seen - chosen, *hidden, 1])
        sizes = (agent["batch_size"], seen, -chosen)
        learns = [plain.sac_step(actor, critics, sizes, bf16) for bf16 in PRECISIONS]
        return [plain.acting(actor, few, False)], learns
    if algorithm == "td3":
        actor = plain.mlp([seen, *hidden, -chosen], activation)
        critics = plain.Twins([seen - chosen, *hidden, 1])
        sizes = (agent["batch_size"], seen, -chosen)
        learns = [plain.td3_steps(actor, critics, sizes, bf16) for bf16 in PRECISIONS]
        return [plain.acting(actor, few, False)], learns
    many = torch.randn(agent["minibatch"], seen)
    policy = plain.mlp([seen, *hidden, abs(chosen)], activation)
    value = plain.mlp([seen, *hidden, 1], activation)
    return [plain.acting(policy, few, False)], [
        plain.ppo_step([policy, value], many, chosen, False, compiled) for compiled in (False, True)
    ]


def images(algorithm: str, count: int, agent: Settings) -> tuple[list[Call], list[Call]]:
    """Acting and learning of the works with images."""
    size = agent["minibatch"] if algorithm == "ppo" else agent["batch_size"]
    few, many = (torch.randint(256, (n, 4, 84, 84), dtype=torch.uint8) for n in (count, size))
    acts: list[Call] = []
    learns: list[Call] = []
    for last, bf16 in product((False, True), PRECISIONS):
        network = plain.nature(6 + (algorithm == "ppo"), last)
        acts.append(plain.acting(network, few, bf16))
        if algorithm == "ppo":
            learns.append(plain.ppo_step([network], many, 6, bf16))
        else:
            learns.append(plain.dqn_step(network, many, bf16))
    return acts, learns


if __name__ == "__main__":
    main()
