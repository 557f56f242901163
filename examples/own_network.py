"""A network of one's own: what it is called with, and what it gives.

operant train ppo --network own_network:Residual --network.width 32
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import operant
from operant.core import Count, Shape, Space


class Residual(nn.Module):
    """Residual blocks between two linear layers, for any vectors and any agent."""

    def __init__(
        self,
        observation_spaces: dict[str, Space],
        outputs: dict[str, Shape],
        width: Count = 64,  # units of each layer
        blocks: Count = 2,  # how many residual blocks
    ) -> None:
        super().__init__()
        self.inputs = list(observation_spaces)
        size = sum(space.shape[0] for space in observation_spaces.values() if space.shape)
        self.first = nn.Linear(size, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.names = list(outputs)
        self.heads = nn.ModuleList(nn.Linear(width, shape[0]) for shape in outputs.values())

    def forward(self, observation: dict[str, Tensor]) -> dict[str, Tensor]:
        """Outputs `[B, n]` by name; a recurrent module would also take and give its state."""
        x = self.first(torch.cat([observation[name] for name in self.inputs], -1))
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return {name: head(x) for name, head in zip(self.names, self.heads, strict=True)}


if __name__ == "__main__":
    run = operant.train("ppo", "CartPole-v1", steps=20_000, network=Residual)
    print(run.eval(episodes=10))
