"""A policy inside of a user's module, which draws an action or judges one that it is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from torch import Generator, Tensor

from operant.core.experience import Arrays, Tensors
from operant.core.spaces import Shape
from operant.core.tree import Array
from operant.frameworks.arguments import ACTION
from operant.ops.distribution import Part

LOG_PROB, ENTROPY, PARAMS = "log_prob", "entropy", "params"


class ToldPolicy:
    """The `Distribution` of a module that gives log-probability and entropy of an action.

    With a `part`, such as `Categorical`, the module gives that distribution's parameters too.
    """

    in_numpy = False

    def __init__(self, actions: Mapping[str, Any], part: Part | None = None) -> None:
        self.parts, self.part = dict(actions), part
        known: dict[str, Shape] = {} if part is None else {PARAMS: (part.params,)}
        self.outputs: Mapping[str, Shape] = {LOG_PROB: (1,), ENTROPY: (1,), **known}

    def late(self, action: Tensors) -> Tensors:
        """The actions, under the names by which the module is told of them."""
        return {ACTION + name: x for name, x in action.items()}

    def log_prob(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensor:
        """As the module gave it."""
        return out[LOG_PROB].squeeze(-1)

    def evaluate(self, out: Tensors, action: Tensors, masks: Tensors) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies as the module gave them."""
        return self.log_prob(out, action, masks), out[ENTROPY].squeeze(-1)

    def kl(self, p: Tensors, q: Tensors, masks: Tensors) -> Tensor:
        """KL(p, q) `[...]`, of a module that gives parameters."""
        assert self.part is not None, "the module gives no parameters"
        return self.part.kl(p[PARAMS], q[PARAMS], None)

    def sample(self, out: Tensors, masks: Tensors, generator: Generator) -> NoReturn:
        """Not here: the module draws by itself, in `act`."""
        raise NotImplementedError("the module draws actions by itself; call the framework's act")

    def mode(self, out: Tensors, masks: Tensors) -> NoReturn:
        """Not here: see `sample`."""
        raise NotImplementedError("the module chooses actions by itself; call the framework's act")

    def sample_numpy(
        self, out: Arrays, generator: Generator, rows: tuple[int, int, int], log_prob: bool = True
    ) -> tuple[Arrays, Array | None]:
        """Not here: see `sample`."""
        raise NotImplementedError("the module draws actions by itself; call the framework's act")
