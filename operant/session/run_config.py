"""The whole configuration of a run."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from functools import cache

from operant.agents import AGENTS
from operant.core.config import Config, Count, CountOrZero, Positive
from operant.core.errors import UsageError, suggest
from operant.envs.gym import EnvConfig
from operant.networks.build import NetworkConfig


@dataclass(frozen=True, kw_only=True)
class EvalConfig(Config):
    """Whole episodes without exploring, now and then."""

    every: CountOrZero = 0  # environment steps between evaluations; 0: a tenth of the run
    episodes: Count = 20  # episodes an evaluation plays


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig(Config):
    """What is saved on the way; a run stopped at any moment goes on from the last."""

    seconds: Positive = 30.0  # between checkpoints
    keep: Count = 3  # the newest ones to keep


@dataclass(frozen=True, kw_only=True)
class RunConfig(Config):
    """What to train, for how long, and what to write down."""

    algorithm: str = ""  # the agent's name, as in `operant list`
    steps: Count = 100_000  # environment steps to train for
    seed: CountOrZero = 1  # the same seed gives the same run
    device: str = "auto"  # cpu, cuda, cuda:1 …; auto: cuda if there is one
    threads: CountOrZero = 0  # torch threads; 0: one for vectors, all cores for images
    log_every: Count = 1_000  # environment steps between lines of the metric log
    agent: Config = field(default_factory=Config)
    env: EnvConfig = field(default_factory=EnvConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)


@cache
def run_config(algorithm: str) -> type[RunConfig]:
    """RunConfig with this agent's own settings under `agent`."""
    if algorithm not in AGENTS:
        raise UsageError(f"agent {algorithm!r} is unknown{suggest(algorithm, AGENTS)}")
    _, config = AGENTS[algorithm]
    fields = [("algorithm", str, algorithm), ("agent", config, field(default_factory=config))]
    origin = {"__module__": __name__}
    return make_dataclass(
        "RunConfig", fields, bases=(RunConfig,), namespace=origin, frozen=True, kw_only=True
    )
