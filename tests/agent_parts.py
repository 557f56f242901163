"""Parts of agents for tests: see `core.protocols.Parts`."""

from __future__ import annotations

from typing import Any

import torch

from operant.agents.registry import AGENTS
from operant.core.spaces import Spaces
from operant.memory.replay import ExperienceReplay
from operant.memory.replay_settings import make_replay
from operant.memory.rollout import RolloutCache
from operant.networks.assemble import NetworkConfig, build_network
from operant.networks.ensemble import build_ensemble


class AgentParts:
    """Makes networks and memories for these spaces; the same seed, the same weights."""

    def __init__(self, spaces: Spaces, network: NetworkConfig, seed: int = 1) -> None:
        self.spaces, self.settings = spaces, network
        self.generator = torch.Generator().manual_seed(seed)

    def network(self, outputs: Any, late: Any = None, members: int = 1, noisy: bool = False) -> Any:
        seen, generator = self.spaces.observation, self.generator
        made = [
            build_network(self.settings, seen, outputs, generator, late, noisy)
            for _ in range(members)
        ]
        return made[0] if members == 1 else build_ensemble(made)

    def rollout(self, length: int) -> RolloutCache:
        return RolloutCache(length)

    def replay(self, settings: Any, seed: int) -> ExperienceReplay:
        return make_replay(settings, self.spaces, seed)


def create(
    name: str, spaces: Spaces, network: NetworkConfig, settings: dict[str, Any], seed: int = 1
) -> Any:
    """An agent by name, with parts of its own."""
    known = AGENTS[name]
    return known.cls.create(AgentParts(spaces, network, seed), known.config(**settings), seed)
