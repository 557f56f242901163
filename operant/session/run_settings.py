"""The whole configuration of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from operant.agents.registry import AGENTS
from operant.config import to_tree
from operant.core.config import AgentConfig, Config, Count, CountOrZero, Positive, Range
from operant.core.errors import UsageError, suggest
from operant.envs.providers.gymnasium import EnvConfig
from operant.networks.assemble import NetworkConfig

DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
SamplerName = Literal["auto", "serial", "parallel", "alternating", "async"]
# torch dies without a word when it is given more threads than the system can start.
Threads = Annotated[int, Range(0, 1024)]


@dataclass(frozen=True, kw_only=True)
class EvalConfig(Config):
    """Whole episodes without exploring, now and then."""

    every: CountOrZero = 0  # environment steps between evaluations; 0: a tenth of the run
    episodes: Count = 20  # episodes an evaluation plays


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig(Config):
    """What is saved on the way; a run stopped at any moment goes on from the last."""

    seconds: Positive = 30.0  # between checkpoints, at least
    share: Positive = 0.05  # of the time, at most, for saving: what is large is saved less often
    keep: Count = 3  # the newest ones to keep


@dataclass(frozen=True, kw_only=True)
class RunConfig(Config):
    """What to train, for how long, and what to write down."""

    algorithm: ClassVar[str] = ""  # the agent's name, as in `operant list`
    steps: Count = 100_000  # environment steps to train for
    seed: CountOrZero = 1  # the same seed gives the same run
    device: str = "auto"  # cpu, cuda, cuda:1 …; auto: cuda if there is one
    threads: Threads = 0  # torch threads; 0: one for vectors, all cores for images
    compile: Literal["off", "on", "auto"] = "auto"  # learning; auto: of long runs on vectors
    sampler: SamplerName = "auto"  # how acting and stepping are laid over processes; auto: measured
    decorrelate: CountOrZero = 0  # most random steps before training, in each environment its own
    mid_batch_reset: bool = True  # off: an environment rests from its episode's end to the batch's
    log_every: Count = 1_000  # environment steps between lines of the metric log
    agent: AgentConfig = field(default_factory=AgentConfig)
    env: EnvConfig = field(default_factory=EnvConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not DEVICE.fullmatch(self.device):
            raise UsageError(f"device = {self.device!r}: expected auto, cpu, cuda, cuda:1 … or mps")


@cache
def run_config(algorithm: str) -> type[RunConfig]:
    """RunConfig with this agent's own settings under `agent`."""
    if algorithm not in AGENTS:
        raise UsageError(f"agent {algorithm!r} is unknown{suggest(algorithm, AGENTS)}")
    _, config = AGENTS[algorithm]
    return make_dataclass(
        "RunConfig",
        [("agent", config, field(default_factory=config))],
        bases=(RunConfig,),
        namespace={"__module__": __name__, "algorithm": algorithm},
        frozen=True,
        kw_only=True,
    )


def as_file(config: RunConfig) -> dict[str, Any]:
    """What a configuration file holds: the name of the agent, then every setting."""
    return {"algorithm": config.algorithm, **to_tree(config)}


def split_algorithm(tree: Mapping[str, Any], source: str) -> tuple[str, dict[str, Any]]:
    """The agent that a file names, empty if it names none, and the settings beside it."""
    settings = dict(tree)
    name = settings.pop("algorithm", "")
    if not isinstance(name, str) or (name and name not in AGENTS):
        near = suggest(str(name), AGENTS)
        raise UsageError(f"{source}: algorithm = {name!r}: there is no such agent{near}")
    return name, settings
