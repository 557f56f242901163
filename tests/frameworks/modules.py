"""Small modules and episodes for tests of frameworks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical


class Actor(nn.Module):
    """A categorical policy that draws an action, or judges one that it is told."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(3, 2)

    def forward(self, state: Tensor, action: Tensor | None = None) -> Any:
        policy = Categorical(logits=self.layer(state))
        chosen = policy.sample().unsqueeze(-1) if action is None else action
        log_prob = policy.log_prob(chosen.squeeze(-1))
        return chosen, log_prob.unsqueeze(-1), policy.entropy().unsqueeze(-1)


class Critic(nn.Module):
    """A linear value."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(3, 1)

    def forward(self, state: Tensor) -> Tensor:
        value: Tensor = self.layer(state)
        return value


def episode(length: int, terminal: bool = True, seed: int = 0) -> list[dict[str, Any]]:
    """Random steps, each of which leads to what the next one sees."""
    torch.manual_seed(seed)
    states = torch.randn(length + 1, 1, 3)
    actions, rewards = torch.randint(2, (length, 1, 1)), torch.randn(length)
    return [
        {
            "state": {"state": states[t]},
            "action": {"action": actions[t]},
            "next_state": {"state": states[t + 1]},
            "reward": float(rewards[t]),
            "terminal": terminal and t == length - 1,
        }
        for t in range(length)
    ]
