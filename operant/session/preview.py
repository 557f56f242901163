"""What a run would be, before it is one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from operant.core.protocols import Agent
from operant.core.spaces import Space, Spaces
from operant.envs.manager import make_manager
from operant.session.build import build_agent, seed_for
from operant.session.config import dump_yaml, to_tree
from operant.session.run_config import RunConfig

FLAGS = 4  # first, terminated, truncated, valid
COPIES = 4  # of each weight: itself, its gradient and Adam's two moments


def preview(config: RunConfig) -> str:
    """The resolved configuration, the networks and the memory that they and the data need."""
    manager = make_manager(config.env, seed_for(config.seed, "env"), 1)
    try:
        spaces = manager.spaces
        agent = build_agent(config, spaces)
    finally:
        manager.close()
    needed = memory_needed(config, spaces, agent)
    width = max(map(len, needed))
    table = "\n".join(f"  {name:{width}}  {human(size)}" for name, size in needed.items())
    seen = "\n".join(f"  {name}: {space}" for name, space in spaces.observation.items())
    done = "\n".join(f"  {name}: {space}" for name, space in spaces.action.items())
    return (
        f"{dump_yaml(to_tree(config))}\nobservations\n{seen}\nactions\n{done}\n\n"
        f"network\n{agent.network}\n\nmemory\n{table}\n"
    )


def memory_needed(config: RunConfig, spaces: Spaces, agent: Agent) -> dict[str, int]:
    """Bytes by purpose: weights with what training keeps beside them, the chunk, the replay."""
    weights = {id(p): p.nbytes for p in agent.network.parameters()}
    sizes = {"acting network, with its gradients and moments": COPIES * sum(weights.values())}
    seen = sum(map(_nbytes, spaces.observation.values()))
    row = seen + sum(map(_nbytes, spaces.action.values())) + 4 + FLAGS
    row += sum(x.nbytes for x in agent.initial_state(1).values())
    length = config.agent.length  # type: ignore[attr-defined]  # every agent's config has it
    sizes["chunk"] = (length + 1) * config.env.num_envs * (row + seen)
    replay = getattr(config.agent, "replay_size", 0)
    if replay:
        sizes["replay, when full"] = replay * row
    return sizes | {"total": sum(sizes.values())}


def _nbytes(space: Space) -> int:
    dtype: Any = space.dtype or np.int64
    return math.prod(space.shape or ()) * int(np.dtype(dtype).itemsize)


def human(size: float) -> str:
    """Bytes in words."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"
