"""The gradient seam of every agent: differentiate → reduce → clip → apply."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from operant.core.experience import Experience, Metrics, Tensors
from operant.core.protocols import Network
from operant.core.schedule import Schedule
from operant.core.state import restore, state_of
from operant.ops.distribution import Distribution
from operant.ops.value import Criterion

T = TypeVar("T")
Gradients = Sequence[Tensor | None]  # one a parameter; None: the loss does not depend on it
Losses = tuple[Tensors, Tensors]  # losses by name, whose sum is minimised, and metrics
OptimizerName = Literal["adam", "adamw", "rmsprop", "sgd"]
OptimizerFactory = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
TORCH: dict[str, str] = {"adamw": "AdamW", "rmsprop": "RMSprop", "sgd": "SGD"}
# Compiling by two threads is no quicker, and needs processes beside this one.
COMPILE_OPTIONS: dict[str, Any] = {"compile_threads": 1}


@dataclass(frozen=True)
class Hooks:
    """What a user may put in place of an agent's own parts."""

    # An optimizer of torch.optim by role (`all`, `value`, `policy`, `alpha`), in place of the
    # configured one; the agent still sets its learning rate.
    optimizers: Mapping[str, OptimizerFactory] = field(default_factory=dict)
    # The loss of predictions and targets, element by element or as one number; else squared errors.
    criterion: Criterion | None = None
    distribution: Distribution | None = None  # of actions; else one for the action space
    targets: Mapping[str, Network] = field(default_factory=dict)  # target networks by role
    # What the values after each step make of a batch's targets; else n-step returns.
    backup: Callable[[Experience, Tensor], Tensor] | None = None
    # Actions by name of what a deterministic policy gives; else squashed into their bounds.
    actions: Callable[[Tensors], Tensors] | None = None
    smooth: Callable[[Tensor], Tensor] | None = None  # of actions in targets; else as configured
    # Actions with a gradient and their entropy, of what a stochastic policy gives; else as the
    # distribution draws them.
    draw: Callable[[Tensors], tuple[Tensors, Tensor]] | None = None


class Optimizer:
    """Parameters, the rule that moves them, its learning rate, and a bound on the gradient's norm.

    `reduce` comes between differentiating and clipping: None in one process, an average over ranks
    under data-parallel training. A bound of zero clips nothing, None does not measure the norm
    either. As with any optimizer, a layer that is put into the network later is not learned.
    """

    reduce: Callable[[Gradients, Tensors], tuple[Gradients, Tensors]] | None = None

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: Schedule,
        max_grad_norm: float | None = 0.0,
        rule: OptimizerName | OptimizerFactory = "adam",
        eps: float = 1e-8,
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.max_grad_norm = lr, max_grad_norm
        self.rule = update_rule(rule, self.parameters, eps)

    def differentiate(self, loss: Tensor) -> Gradients:
        """The gradient of `loss`."""
        found = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        return [in_layout_of(*pair) for pair in zip(self.parameters, found, strict=True)]

    def clip(self, gradients: Gradients) -> Tensors:
        """Shorten gradients to `max_grad_norm`, if they are longer; the norm they had."""
        if self.max_grad_norm is None:
            return {}
        found = [x for x in gradients if x is not None]
        return {"grad_norm": clip_gradients(found, self.max_grad_norm)}

    def step(self, gradients: Gradients, metrics: Tensors, steps: int) -> Tensors:
        """Reduce and clip, where that is still to do, and apply; the metrics of all ranks."""
        if self.reduce is not None:
            gradients, metrics = self.reduce(gradients, metrics)
            metrics = metrics | self.clip(gradients)
        self.apply(gradients, steps)
        return metrics

    @torch.no_grad()
    def apply(self, gradients: Gradients, steps: int) -> None:
        """Move the parameters, at the learning rate due after so many environment steps."""
        # A compiled program may give them another memory layout.
        gradients = [in_layout_of(*pair) for pair in zip(self.parameters, gradients, strict=True)]
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient  # where torch's optimizers and users look
        self.rule.step(gradients, self.lr(steps))

    def state_dict(self) -> dict[str, Any]:
        """What the rule keeps, such as moments."""
        return state_of(self, "rule")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, state, "rule")


class GradientStep:
    """One gradient step on a loss; its total is the metric called `name`."""

    def __init__(self, name: str, loss: Callable[..., Losses], optimizer: Optimizer) -> None:
        self.name, self.loss, self.optimizer = name, loss, optimizer
        self.program: Callable[..., tuple[Gradients, Tensors]] = self.differentiate

    def __call__(self, steps: int, *inputs: Any) -> Tensors:
        """Differentiate `loss(*inputs)`, and move the parameters; metrics of the step."""
        gradients, metrics = self.program(*inputs)
        return self.optimizer.step(gradients, metrics, steps)

    def differentiate(self, *inputs: Any) -> tuple[Gradients, Tensors]:
        """The gradient of the loss, and metrics that hold no graph.

        It is clipped here, as part of a compiled program, where nothing is reduced in between.
        """
        losses, metrics = self.loss(*inputs)
        loss = total(losses)
        gradients = self.optimizer.differentiate(loss)
        clipped = {} if self.optimizer.reduce else self.optimizer.clip(gradients)
        metrics = {**metrics, self.name: loss, **clipped}
        return gradients, {name: x.detach() for name, x in metrics.items()}

    def compile(self, dynamic: bool = False) -> None:
        """Make one program of loss, gradient and clipping; `dynamic`: for batches of any size."""
        self.program = compiled(self.differentiate, dynamic)


def compiled(function: Callable[..., T], dynamic: bool = False) -> Callable[..., T]:
    """`function` by torch.compile, gradients that it takes included.

    With the gradient outside, torch would go back and forth between Python and two programs, which
    takes longer than small networks do.
    """
    import torch._dynamo  # noqa: PLC0415  # takes a second that others need not wait

    torch._dynamo.config.trace_autograd_ops = True
    # Of what torch itself calls.
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torch\.")
    return torch.compile(function, dynamic=dynamic, options=COMPILE_OPTIONS)


def update_rule(
    rule: OptimizerName | OptimizerFactory, parameters: list[nn.Parameter], eps: float
) -> FusedAdam | TorchRule:
    """The rule of this name, or around an optimizer that a function makes."""
    if rule == "adam":
        return FusedAdam(parameters, eps)
    if callable(rule):
        return TorchRule(rule(parameters))
    options: dict[str, Any] = {} if rule == "sgd" else {"eps": eps}
    return TorchRule(getattr(torch.optim, TORCH[rule])(parameters, lr=1.0, **options))


class TorchRule:
    """Any optimizer of torch.optim."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    def step(self, gradients: Gradients, lr: float) -> None:
        """One step; the gradients are in the parameters' `grad`."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's own state; learning rates come from the schedule."""
        return {"state": {str(k): v for k, v in self.optimizer.state_dict()["state"].items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        whole = self.optimizer.state_dict()
        whole["state"] = {int(k): v for k, v in state["state"].items()}
        self.optimizer.load_state_dict(whole)


class FusedAdam:
    """Adam (arXiv:1412.6980) by torch's fused kernel, called directly.

    The same bits as `torch.optim.Adam(fused=True)`, with which PPO on CartPole takes 12 % longer (a
    step 110 µs instead of 30), and which imports torch's compiler when it is made: 1.5 s.
    """

    betas = (0.9, 0.999)

    def __init__(self, parameters: list[nn.Parameter], eps: float) -> None:
        self.parameters, self.eps = parameters, eps
        self.means = [torch.zeros_like(p) for p in parameters]  # of the gradients
        self.squares = [torch.zeros_like(p) for p in parameters]  # means of their squares
        self.ages = [torch.zeros((), device=p.device) for p in parameters]  # gradients seen

    def step(self, gradients: Gradients, lr: float) -> None:
        """One step; a parameter without a gradient stays as it is."""
        columns = (self.parameters, gradients, self.means, self.squares, self.ages)
        rows: Any = [row for row in zip(*columns, strict=True) if row[1] is not None]
        parameters, found, means, squares, ages = map(list, zip(*rows, strict=True))
        torch._foreach_add_(ages, 1)
        options: Any = {"weight_decay": 0.0, "eps": self.eps, "amsgrad": False, "maximize": False}
        beta1, beta2 = self.betas
        torch._fused_adam_(
            parameters, found, means, squares, [], ages, lr=lr, beta1=beta1, beta2=beta2, **options
        )

    def state_dict(self) -> dict[str, Any]:
        """Both moments, and how many gradients they have seen."""
        return state_of(self, "means", "squares", "ages")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, state, "means", "squares", "ages")


def in_layout_of(parameter: Tensor, gradient: Tensor | None) -> Tensor | None:
    """The gradient in its parameter's memory layout, as Adam's kernel wants it."""
    if gradient is None or gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


@torch.no_grad()
def clip_gradients(gradients: list[Tensor], max_norm: float) -> Tensor:
    """Shorten gradients in place to `max_norm`, unless that is zero; the norm they had."""
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if max_norm:
        torch._foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return norm


def total(losses: Tensors) -> Tensor:
    """The sum of all losses."""
    return reduce(torch.add, losses.values())


def averaged(parts: Sequence[Tensors]) -> Metrics:
    """The mean of each named metric over the steps that have it; numbers leave the device once."""
    if not parts:
        return {}
    held = [(name, x) for part in parts for name, x in part.items()]
    found: dict[str, list[float]] = {}
    for (name, _), number in zip(held, torch.stack([x for _, x in held]).tolist(), strict=True):
        found.setdefault(name, []).append(number)
    return {name: sum(numbers) / len(numbers) for name, numbers in found.items()}
