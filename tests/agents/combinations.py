"""Which networks, observations, masks and actions each agent combines with, and how.

`python tests/agents/combinations.py > docs/combinations.md` writes the table that says so.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from itertools import combinations as pairs_of
from itertools import product
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs

from operant.agents.registry import AGENTS, config_of
from operant.core.schedule import Schedule
from operant.core.tree import Array
from operant.envs.env_settings import EnvConfig
from operant.envs.probe_tasks import ActionKind, MatchAction, Variant
from operant.networks.assemble import NetworkConfig
from operant.session.run_settings import EvalConfig, RunConfig, run_config

# Agents that are not another one with other defaults.
BASES = tuple(name for name, known in AGENTS.items() if known.config is config_of(known.cls))
NETWORKS: dict[str, dict[str, Any]] = {"MLP": {"image": "flat"}, "CNN": {}, "LSTM": {"lstm": 16}}
OBSERVATIONS = ("Box", "Dict", "image + vector")
ACTIONS: dict[str, ActionKind] = {
    "Discrete": "discrete",
    "MultiDiscrete": "multidiscrete",
    "Box": "box",
    "Dict": "dict",
}
DISCRETE_PARTS = {
    "Discrete": ("action", "Discrete(3)"),
    "MultiDiscrete": ("action", "MultiDiscrete([3 2])"),
    "Dict": ("choice", "Discrete(3)"),
}
PIXELS = 2  # across, for each number that an image shows

BOX = "Box(-1.0, 1.0, ({},), float32)"
NO_LIST = (
    "action {!r} is {}: DQN takes the best of finitely many actions, and a Box has no such list; "
    "use sac or ppo"
)
NO_GRADIENT = (
    "action {!r} is {}: a deterministic policy follows the gradient of Q by the action, and a "
    "discrete action has none; use sac, ppo or dqn"
)
ONE_DISCRETE = (
    "{}: ACER learns the Q-value of each choice of one Discrete action, over which it takes "
    "expectations; use ppo, or list all choices as one Discrete in a wrapper"
)
SEVERAL = {
    "MultiDiscrete": "action 'action' is MultiDiscrete([3 2])",
    "Box": f"action 'action' is {BOX.format(2)}",
    "Dict": "actions 'amount', 'choice' are several",
}
NO_MASK = (
    "observation 'action_mask': action 'action' is {}, and only discrete actions can be masked; "
    "take the mask out of the observation"
)

OFF_POLICY = {"length": 3, "learning_starts": 100, "batch_size": 64, "sequence": 6}
LEARNING: dict[str, dict[str, Any]] = {  # what solves the probe
    "a2c": {"length": 3, "lam": 0.9, "entropy_coef": 0.03, "normalize_advantage": True},
    "ppo": {"length": 16, "lr": Schedule(0.01, 0, 6000), "minibatch": 128, "epochs": 8},
    "trpo": {"length": 16, "max_kl": 0.1, "lr": Schedule(0.01), "minibatch": 128},
    "vtrace": {"length": 3, "lam": 0.9, "entropy_coef": 0.03, "normalize_advantage": True},
    "acer": {"length": 6, "learning_starts": 100, "lr": Schedule(5e-3)},
    "dqn": OFF_POLICY | {"epsilon": Schedule(1.0, 0.1, 1000), "target_every": 20},
    "ddpg": OFF_POLICY
    | {"tau": 0.05, "updates_per_step": 0.5, "critics": 2, "exploration_scale": 0.2}
    | {"learning_starts": 200},
    "maddpg": OFF_POLICY
    | {"tau": 0.05, "updates_per_step": 0.25, "exploration_scale": 0.3, "lr": 3e-3},
    "sac": OFF_POLICY | {"tau": 0.05, "updates_per_step": 0.25, "alpha": 0.1},
}
STEPS = {  # that this takes at most
    **{"a2c": 16_000, "ppo": 6_000, "trpo": 8_000, "vtrace": 16_000, "acer": 8_000},
    **{"dqn": 3_200, "ddpg": 3_200, "maddpg": 3_200, "sac": 3_200},
}
# One update after 32 steps, the first half of which are random.
SOON = {"learning_starts": 16, "batch_size": 8, "updates_per_step": 1 / 16, "sequence": 4}
GLIMPSE: dict[str, dict[str, Any]] = {
    "a2c": {"entropy_coef": 0.03},
    "ppo": {"minibatch": 16, "epochs": 1},
    "trpo": {"minibatch": 16, "epochs": 1},
    "vtrace": {"entropy_coef": 0.03},
    "acer": {"learning_starts": 16, "batch_size": 8},
    "dqn": SOON | {"epsilon": Schedule(1.0, 0.1, 32)},
    "rainbow": SOON,
    "ddpg": SOON,
    "maddpg": SOON,
    "sac": SOON,
}


@dataclass(frozen=True)
class Combination:
    """One cell of the table."""

    agent: str
    network: str
    observation: str
    mask: bool
    action: str

    def __str__(self) -> str:
        mask = "masked" if self.mask else "free"
        return "-".join((self.agent, self.network, self.observation, mask, self.action))

    @property
    def refusal(self) -> str:
        """Why it cannot mean anything, as the error says; empty if it can."""
        if self.mask and self.action == "Box":
            return NO_MASK.format(BOX.format(2))
        if self.agent == "acer" and self.action != "Discrete":
            return ONE_DISCRETE.format(SEVERAL[self.action])
        if self.agent == "dqn" and self.action == "Box":
            return NO_LIST.format("action", BOX.format(2))
        if self.agent == "dqn" and self.action == "Dict":
            return NO_LIST.format("amount", BOX.format(1))
        if self.agent == "ddpg" and self.action != "Box":
            return NO_GRADIENT.format(*DISCRETE_PARTS[self.action])
        return ""

    @property
    def drawn(self) -> tuple[str, ...]:
        """The parts of the probe's observation that are shown as images."""
        if self.observation == "image + vector":
            return ("other",)
        return ("vector", "other") if self.network == "CNN" else ()

    def variant(self, memory: bool = False, length: int = 1) -> Variant:
        """Which probe."""
        sight: Any = "box" if self.observation == "Box" else "dict"
        return Variant(sight, ACTIONS[self.action], self.mask, memory, length)


ALL = [Combination(*c) for c in product(BASES, NETWORKS, OBSERVATIONS, (False, True), ACTIONS)]
TRAINABLE = [c for c in ALL if not c.refusal]
REFUSED = [c for c in ALL if c.refusal]


def covering() -> list[Combination]:
    """A few that train, in which every agent meets every value of every axis.

    Of those that meet as many new ones, the one with the most new pairs of values is taken.
    """
    seen: set[tuple[str, ...]] = set()
    taken: list[Combination] = []
    for agent in BASES:
        pool = [c for c in TRAINABLE if c.agent == agent]
        while any(values_of(c) - seen for c in pool):
            best = max(pool, key=lambda c: (len(values_of(c) - seen), len(_pairs(c) - seen)))
            seen |= values_of(best) | _pairs(best)
            taken.append(best)
    return taken


def values_of(combination: Combination) -> set[tuple[str, ...]]:
    """Its agent with each of its values, told apart by their axes."""
    agent, *values = astuple(combination)
    return {(agent, f"{axis}: {value}") for axis, value in enumerate(values)}


def _pairs(combination: Combination) -> set[tuple[str, ...]]:
    return set(pairs_of([f"{i}: {x}" for i, x in enumerate(astuple(combination)[1:])], 2))


class Pictures(gymnasium.ObservationWrapper[Any, Any, Any]):
    """MatchAction with the numbers of some vectors shown as the columns of a grey image."""

    def __init__(self, drawn: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(MatchAction(**kwargs))
        self.drawn = drawn
        space: Any = self.env.observation_space
        if isinstance(space, gs.Dict):
            self.observation_space = gs.Dict(
                {name: _canvas(part) if name in drawn else part for name, part in space.items()}
            )
        else:
            self.observation_space = _canvas(space)

    def observation(self, observation: Any) -> Any:
        """The same, drawn."""
        if isinstance(observation, dict):
            return {k: _draw(x) if k in self.drawn else x for k, x in observation.items()}
        return _draw(observation)


def _canvas(space: Any) -> gs.Box:
    side = PIXELS * space.shape[0]
    return gs.Box(0, 255, (1, side, side), np.uint8)


def _draw(numbers: Array) -> Array:
    row = np.repeat(255 * numbers, PIXELS).astype(np.uint8)
    return np.tile(row, (1, len(row), 1))


def register() -> None:
    """Make the drawn probe known to Gymnasium; a second call does nothing."""
    if "Pictures-v0" not in gymnasium.registry:
        gymnasium.register("Pictures-v0", f"{__name__}:Pictures")


def learning(combination: Combination, memory: bool) -> RunConfig:
    """A run that solves the probe."""
    settings = {"gamma": 0.9, "lr": Schedule(3e-3)} | LEARNING[combination.agent]
    return _config(combination, settings, 32, combination.variant(memory), num_envs=16)


def glimpse(combination: Combination) -> RunConfig:
    """A run whose first chunk of 32 steps is followed by one update."""
    settings = {"length": 8} | GLIMPSE[combination.agent]
    # Several steps in an episode, or a memory would always be fresh and get no gradient.
    return _config(combination, settings, 8, combination.variant(length=3), num_envs=4)


def _config(
    combination: Combination,
    settings: dict[str, Any],
    size: int,
    variant: Variant,
    num_envs: int,
) -> RunConfig:
    register()
    network = NETWORKS[combination.network]
    drawn = {"drawn": combination.drawn} if combination.drawn else {}
    env_id = "Pictures-v0" if drawn else "operant/MatchAction-v0"
    return run_config(combination.agent)(
        device="cpu",
        threads=1,
        sampler="serial",
        agent=AGENTS[combination.agent].config(**settings),
        env=EnvConfig(id=env_id, num_envs=num_envs, kwargs=vars(variant) | drawn),
        network=NetworkConfig(hidden=(size,), image_size=size, **network),
        eval=EvalConfig(episodes=4 * num_envs),
    )


INTRO = """\
# What combines with what

This page is generated from the tests by `python tests/agents/combinations.py`.

Recurrence, masks and dict spaces belong to the record and to the network, so no agent has a class
or a branch for them. A row is what an agent sees and how, a column what it does.

- **Network**: *MLP* reads everything as features, images too (`--network.image flat`); *CNN* reads
  images by convolutions and the rest as features; *LSTM* is a memory behind either
  (`--network.lstm 16`), and is tested on tasks that need one.
- **Observation**: *Box* is one array, *Dict* two of them; for the MLP and the LSTM these are
  vectors, for the CNN images. *image + vector* is a Dict of one of each.
- **Mask**: whether the environment says which discrete actions are allowed.
- **Action**: *Dict* is one Discrete and one Box part.

✓ means that tests see all of this: after an update every loss is finite and every learned parameter
has had a gradient; no forbidden action is ever taken, be it at random, explored or greedy; and
a task is solved in which what is seen says what to do, in any part of the observation and for
every part of the action. A letter means that there is nothing it could mean, and that the run is
refused before it starts, with the words below the table.
"""


def page() -> str:
    """The whole of `combinations.md`."""
    reasons = dict.fromkeys(c.refusal for c in REFUSED)
    letters = {reason: chr(ord("a") + i) for i, reason in enumerate(reasons)}
    head = ["network", "observation", "mask", *(f"{a}<br>{b}" for a, b in product(BASES, ACTIONS))]
    lines = [INTRO, _row(head), _row(["---"] * 3 + [":-:"] * (len(head) - 3))]
    for network, observation, mask in product(NETWORKS, OBSERVATIONS, (False, True)):
        cells = [
            letters.get(Combination(agent, network, observation, mask, action).refusal, "✓")
            for agent, action in product(BASES, ACTIONS)
        ]
        lines.append(_row([network, observation, "on" if mask else "off", *cells]))
    notes = [f"- **{letter}**: `{reason}`" for reason, letter in letters.items()]
    counts = f"{len(TRAINABLE)} of {len(ALL)} train, {len(REFUSED)} are refused:"
    return "\n".join([*lines, "", counts, "", *notes, ""])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(page(), end="")
