"""What every agent does alike."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import nn

from operant.agents.actor import Actor
from operant.agents.critics import Critics
from operant.agents.modes import Modules, set_training
from operant.agents.optimizer import GradientStep
from operant.agents.target import Target
from operant.core.experience import Arrays, Decision, EnvStep, HiddenState, Memo, Tensors
from operant.core.protocols import Network
from operant.core.state import restore, state_of


class AgentBase:
    """Acts through its actor, remembers in its memory, learns by gradient steps.

    A subclass makes these parts, and has `create(parts, config, seed)` and `update()`.
    """

    saved: ClassVar[tuple[str, ...]]  # attributes that a checkpoint holds
    any_batch_size: ClassVar[bool] = False  # whether batches differ in size from step to step
    for_several: ClassVar[bool] = False  # whether it is made for several agents in one environment

    network: Network  # that acts
    actor: Actor
    memory: Any  # a Memory
    descents: tuple[GradientStep, ...]  # one for each loss
    learned: list[Tensors]  # metrics of each gradient step of the last update
    updates: int  # gradient steps so far

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        """Actions `[B, ...]` by name, and what acting leaves behind; `explore` False: the best."""
        return self.actor.act(observation, hidden_state, explore)

    def observe(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None:
        """In a loop of your own: remember what was seen, decided and answered."""
        self.memory.write(observation, action, memo, step)

    def initial_state(self, batch_size: int) -> HiddenState:
        """The recurrent state of `batch_size` fresh episodes."""
        return self.network.initial_state(batch_size)

    def steps_taken(self) -> int:
        """Environment steps by which the learning rate goes."""
        return self.actor.acted

    def descend(self, step: GradientStep, *inputs: Any, move: bool = True) -> Tensors:
        """One gradient step on a loss of these inputs, in training mode; its metrics.

        With `move` False the loss is only computed.
        """
        modules = self.mode_dependent()
        set_training(modules, True)
        try:
            return step(self.steps_taken(), *inputs) if move else step.program(*inputs)[1]
        finally:
            set_training(modules, False)

    def mode_dependent(self) -> Modules:
        """What to switch to training mode, such as dropout: in all networks that are learned."""
        return self.actor.mode_dependent

    def weights(self) -> tuple[str, ...]:
        """Which of `saved` another run may start from: networks and their target networks."""
        kinds = nn.Module | Target | Critics
        return tuple(name for name in self.saved if isinstance(getattr(self, name), kinds))

    def compile(self) -> None:
        """Learn by torch.compile; the first update then takes up to half a minute longer."""
        for step in self.descents:
            step.compile(self.any_batch_size)

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimizers, random generators, memory and counts."""
        return state_of(self, *self.saved)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, state, *self.saved)
