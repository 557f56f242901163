"""What the outputs of a value network mean: Q-values, or distributions of returns."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from operant.core.errors import UsageError
from operant.core.experience import Tensors
from operant.core.spaces import Shape, Space, choices
from operant.ops import atoms, value
from operant.ops.value import Criterion, Q, huber_loss

Backup = Callable[[Tensor], Tensor]
Losses = tuple[Tensor, Tensor]  # what is minimised, and how wrong each prediction was


class QHead:
    """A Q-value for each choice; with `dueling` an advantage each, and a state value."""

    def __init__(
        self, action_space: dict[str, Space], dueling: bool, criterion: Criterion = huber_loss
    ) -> None:
        self.choices = {name: choices(space) for name, space in action_space.items()}
        self.dueling, self.criterion = dueling, criterion
        self.acting = tuple(Q + name for name in action_space)  # outputs that the best action needs

    def outputs(self) -> dict[str, Shape]:
        """What the network must give."""
        found: dict[str, Shape] = {Q + k: (sum(n),) for k, n in self.choices.items()}
        return found | ({"value": (1,)} if self.dueling else {})

    def read(self, out: Tensors) -> Tensors:
        """Q-values by action name of every choice."""
        q = {name: out[Q + name] for name in self.choices}
        return value.dueling(q, out["value"], self.choices) if self.dueling else q

    def ranked(self, out: Tensors) -> Tensors:
        """Numbers by action name that rank the choices, from the outputs in `acting`."""
        return {name: out[Q + name] for name in self.choices}

    def q_values(self, predicted: Tensors) -> Tensors:
        """Q-values of every choice, of what `read` gave."""
        return predicted

    def of_action(self, predicted: Tensors, action: Tensors) -> Tensor:
        """What is predicted of `action`, of what `read` gave."""
        return value.q_of(predicted, action, self.choices)

    def mean(self, predicted: Tensor) -> Tensor:
        """The Q-value that `of_action` predicted."""
        return predicted

    def target(self, following: Tensor, n_step: Backup, at_stop: Backup) -> Tensor:
        """What is to be predicted, from what is predicted of the best action after each step."""
        return n_step(following)

    def loss(self, predicted: Tensor, target: Tensor) -> Losses:
        """The criterion of each prediction, and its TD error."""
        return self.criterion(predicted, target), predicted - target

    def metrics(self, target: Tensor) -> Tensors:
        """What else to tell of targets, `[T, B]` by name."""
        return {}


class AtomHead(QHead):
    """A distribution of the return for each choice, over `count` atoms (arXiv:1707.06887).

    Outputs are logits, `[choices, atoms]` flattened; with `dueling` the advantages' logits, and
    those of the state value.
    """

    def __init__(
        self, action_space: dict[str, Space], dueling: bool, count: int, low: float, high: float
    ) -> None:
        super().__init__(action_space, dueling)
        if sum(map(len, self.choices.values())) > 1:
            parts = ", ".join(f"{name!r} {space}" for name, space in action_space.items())
            raise UsageError(
                f"atoms = {count}: the action has several parts ({parts}); their Q-values add up, "
                f"but distributions of returns do not; use atoms = 0"
            )
        if low >= high:
            raise UsageError(f"value_min = {low:g}: expected less than value_max = {high:g}")
        self.count, self.low, self.high = count, low, high
        self.acting += ("value",) if dueling else ()

    def outputs(self) -> dict[str, Shape]:
        """What the network must give."""
        return {name: (n * self.count,) for name, (n,) in super().outputs().items()}

    def read(self, out: Tensors) -> Tensors:
        """Log-probabilities `[..., choices, atoms]` by the name of the only action."""
        logits = {k: out[Q + k].unflatten(-1, (-1, self.count)) for k in self.choices}
        if self.dueling:  # atom by atom
            advantage = {k: x.mT for k, x in logits.items()}
            logits = value.dueling(advantage, out["value"].unsqueeze(-1), self.choices)
            logits = {k: x.mT for k, x in logits.items()}
        return {k: x.log_softmax(-1) for k, x in logits.items()}

    def ranked(self, out: Tensors) -> Tensors:
        """Q-values, from the outputs in `acting`."""
        return self.q_values(self.read(out))

    def q_values(self, predicted: Tensors) -> Tensors:
        """Q-values of every choice: the means of the distributions."""
        return {name: self.mean(x) for name, x in predicted.items()}

    def of_action(self, predicted: Tensors, action: Tensors) -> Tensor:
        """Log-probabilities `[..., atoms]` of the return of `action`."""
        ((name, log_prob),) = predicted.items()
        place = action[name].reshape(*log_prob.shape[:-2], 1, 1)
        return log_prob.gather(-2, place.expand(*place.shape[:-1], self.count)).squeeze(-2)

    def mean(self, predicted: Tensor) -> Tensor:
        """The Q-value of a distribution."""
        return atoms.mean(predicted, self.low, self.high)

    def target(self, following: Tensor, n_step: Backup, at_stop: Backup) -> Tensor:
        """The distribution where each walk of n steps stops, moved by its rewards."""
        values = n_step(atoms.support(self.low, self.high, following).expand_as(following))
        return atoms.project(at_stop(following.exp()), values, self.low, self.high)

    def loss(self, predicted: Tensor, target: Tensor) -> Losses:
        """Cross-entropy, and the Kullback–Leibler divergence (arXiv:1710.02298, section 3)."""
        return atoms.cross_entropy(target, predicted), atoms.kl(target, predicted)

    def metrics(self, target: Tensor) -> Tensors:
        """How much probability lies on the first and last atom: much, if the range is narrow."""
        return {"border_mass": target[..., 0] + target[..., -1]}
