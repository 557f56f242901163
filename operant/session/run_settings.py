"""The configuration of a run: settings that every agent has, and those of one agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from operant.agents.registry import AGENTS, agent_name, config_class
from operant.config import to_tree
from operant.core.config import AgentConfig, Config, Count, CountOrZero, Positive, Range
from operant.core.errors import UsageError, suggest
from operant.core.objects import is_name, name_of
from operant.envs.env_settings import EnvConfig
from operant.networks.assemble import NetworkConfig
from operant.networks.by_path import OwnNetworkConfig, own_network_config
from operant.session.callback_names import split_names

PATH = "path"  # what names a network of one's own among its settings
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
SamplerName = Literal["auto", "serial", "parallel", "alternating", "async"]
Switch = Literal["off", "on", "auto"]
Sharing = Literal["auto", "joint", "shared", "separate"]
# torch ends the process without an error when the system cannot start so many threads.
Threads = Annotated[int, Range(0, 1024)]
RandomSteps = Annotated[int, Range(0, 1_000_000)]


@dataclass(frozen=True, kw_only=True)
class EvalConfig(Config):
    """Evaluation in whole episodes without exploration."""

    every: CountOrZero | None = 0  # environment steps between evaluations; 0: a tenth; none: never
    episodes: Count = 20  # episodes of each evaluation
    max_steps: CountOrZero = 0  # steps after which an episode is cut; 0: only without a time limit


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig(Config):
    """How often the run is saved, to be resumed from there."""

    seconds: Positive = 30.0  # minimum time between checkpoints
    share: Positive = 0.05  # maximum fraction of the time spent on saving
    keep: Count = 3  # number of newest checkpoints to keep
    best: bool = True  # also keep the weights with the best evaluation, for `eval --best`


@dataclass(frozen=True, kw_only=True)
class RunConfig(Config):
    """Length, seed and hardware of the run."""

    algorithm: ClassVar[str] = ""  # the agent's name, as in `operant list`
    steps: Count = 100_000  # total environment steps, over all environments
    seed: CountOrZero = 1  # random seed; the same seed gives the same run
    device: str = "auto"  # cpu, cuda, cuda:1 or mps; auto: cuda if available
    threads: Threads = 0  # PyTorch CPU threads; 0: OMP_NUM_THREADS, or by the network's size
    compile: Switch = "auto"  # use torch.compile for gradient steps; auto: in long runs on vectors
    sampler: SamplerName = "auto"  # which processes act and step; auto: by the time of a step
    decorrelate: RandomSteps = 0  # maximum random steps in each environment before training starts
    agents: Sharing = "auto"  # policies of several agents: shared, separate or joint; auto: by task
    agent_id: bool = False  # tell a shared policy for which agent it acts, one-hot
    mid_batch_reset: bool = True  # reset environments at once, not only at the next rollout
    log_every: Count = 1_000  # environment steps between lines of the metric log
    callbacks: tuple[str, ...] = ()  # module:Name(arguments) of code to call; also --callback NAME
    agent: AgentConfig = field(default_factory=AgentConfig)
    env: EnvConfig = field(default_factory=EnvConfig)
    network: Any = field(default_factory=NetworkConfig)  # or OwnNetworkConfig
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "callbacks", split_names(self.callbacks))
        if not DEVICE.fullmatch(self.device):
            raise UsageError(f"device = {self.device!r}: expected auto, cpu, cuda, cuda:1 … or mps")


def run_config(algorithm: str, network: str = "") -> type[RunConfig]:
    """The class of an agent's run configuration: RunConfig with its own settings as `agent`.

    Those of a `network` of one's own, `module:Name`, are in the place of the built-in one's.
    """
    config: Any = config_class(algorithm)
    own: Any = own_network_config(network) if network else None
    return _run_config(algorithm, config, own)


@cache
def _run_config(algorithm: str, config: Any, own: Any) -> type[RunConfig]:
    network = own() if own else NetworkConfig(**dict(config.network_defaults))
    return make_dataclass(
        "RunConfig",
        [
            ("agent", config, field(default_factory=config)),
            ("network", type(network), field(default=network)),
        ],
        bases=(RunConfig,),
        namespace={"__module__": __name__, "algorithm": algorithm},
        frozen=True,
        kw_only=True,
    )


def as_file(config: RunConfig) -> dict[str, Any]:
    """The content of a configuration file: the agent's name, then every setting."""
    tree = {"algorithm": config.algorithm, **to_tree(config)}
    if isinstance(config.network, OwnNetworkConfig):
        tree["network"] = {PATH: config.network.path, **tree["network"]}
    return tree


def split_network(tree: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The network of one's own that settings name, or an empty string, and the other settings."""
    settings = dict(tree)
    given = settings.get("network")
    if given == "":
        raise UsageError("network = '': expected the module and name of a network, or no `network`")
    if isinstance(given, str) or callable(given):
        return name_of(settings.pop("network")), settings
    if isinstance(given, Mapping) and PATH in given:
        settings["network"] = {name: x for name, x in given.items() if name != PATH}
        return name_of(given[PATH]), settings
    return "", settings


def with_network(tree: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The settings with this network of one's own, in place of another and that one's settings."""
    return dict(tree) if path and split_network(tree)[0] == path else {**tree, "network": path}


def split_algorithm(tree: Mapping[str, Any], source: str) -> tuple[str, dict[str, Any]]:
    """The agent that a file names, or an empty string, and the other settings."""
    settings = dict(tree)
    name = settings.pop("algorithm", "")
    known = isinstance(name, str) and (not name or agent_name(name) in AGENTS or is_name(name))
    if not known:
        near = suggest(str(name), AGENTS)
        raise UsageError(f"{source}: algorithm = {name!r}: there is no such agent{near}")
    return agent_name(name), settings
