"""Whether the learning of a run is compiled."""

from __future__ import annotations

import os
from typing import Any, Literal

import torch
from torch import Tensor

from operant.agents.optimizer import compiled as one_program
from operant.agents.registry import AGENTS
from operant.core.errors import UsageError
from operant.session.run_settings import RunConfig

SHORT = 160  # letters of what a compiler says
ENOUGH = 25_000  # gradient steps, each of which saves half a millisecond or more, for 10 to 30 s


def choose_compile(
    config: RunConfig, images: bool, device: str
) -> tuple[Literal["on", "off"], str]:
    """What `compile` stands for, and why, if it was `auto` and there is something to say."""
    if config.compile == "off":
        return "off", ""
    lacks = _unfit(config)
    if config.compile == "on":
        lacks = lacks or _unable()
        if lacks:
            raise UsageError(f"compile = 'on': {lacks}; use compile = 'off'")
        return "on", ""
    # Convolutions gain nothing on a CPU, and elsewhere nothing was measured.
    count = gradient_steps(config)
    if lacks or images or device != "cpu" or count < ENOUGH:
        return "off", ""
    lacks = _unable()
    if lacks:
        return "off", f"learning not compiled: {lacks}"
    return "on", f"learning compiled: half a minute once, for {count:,} gradient steps"


def gradient_steps(config: RunConfig) -> int:
    """Gradient steps of a whole run."""
    agent: Any = config.agent
    if hasattr(agent, "updates_per_step"):  # from a memory
        return int((config.steps - agent.learning_starts) * agent.updates_per_step)
    chunk = agent.length * config.env.num_envs
    parts = max(1, round(chunk / getattr(agent, "minibatch", chunk)))
    return int(config.steps // chunk * getattr(agent, "epochs", 1) * parts)


def _unfit(config: RunConfig) -> str:
    """Why this run's learning cannot be compiled; empty if it can."""
    agent, _ = AGENTS[config.algorithm]
    if not hasattr(agent, "compile"):
        return f"{config.algorithm} has no method compile"
    return "a network with memory is cut where episodes begin" if config.network.lstm else ""


def _unable() -> str:
    """Why this machine cannot compile; empty if it can."""
    number = os.getpid()  # a program that was not compiled before: what is kept proves nothing

    def slope(x: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad((number * x).sin().sum(), x)

    try:
        one_program(slope)(torch.ones(8, requires_grad=True))
    except Exception as error:  # whatever the compiler that it calls dies of
        first = str(error).strip().split("\n", 1)[0][:SHORT]
        return f"torch.compile fails here ({type(error).__name__}: {first})"
    return ""
