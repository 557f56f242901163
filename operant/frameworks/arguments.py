"""A user's module as a network: arguments by name, results in order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import HiddenState, Tensors
from operant.frameworks.files import unwrapped

STATE = "state."  # what observations of the record are called, before the user's own name
ACTION = "action."  # likewise of actions that are told to a module


class Signature(NamedTuple):
    """What a module's `forward` takes by name."""

    names: tuple[str, ...]
    required: tuple[str, ...]
    anything: bool  # whether it takes `**kwargs`


_known: WeakKeyDictionary[nn.Module, Signature] = WeakKeyDictionary()


def signature_of(module: nn.Module) -> Signature:
    """The arguments of `forward`, also of a module inside of DataParallel or torch.compile."""
    if module not in _known:
        kind = inspect.Parameter
        taken = inspect.signature(unwrapped(module).forward).parameters.values()
        plain = [p for p in taken if p.kind in (kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY)]
        _known[module] = Signature(
            names=tuple(p.name for p in plain),
            required=tuple(p.name for p in plain if p.default is kind.empty),
            anything=any(p.kind is kind.VAR_KEYWORD for p in taken),
        )
    return _known[module]


def call(module: nn.Module, *named: Mapping[str, Any]) -> tuple[Any, ...]:
    """`forward` with those of the named values that it has arguments for; always a tuple.

    Tensors go to the module's device, floating-point ones in its precision.
    """
    signature, like = signature_of(module), next(module.parameters(), None)
    given = {name: x for values in named for name, x in values.items()}
    lacking = [name for name in signature.required if name not in given]
    if lacking:
        raise UsageError(
            f"{type(unwrapped(module)).__name__}.forward needs {', '.join(map(repr, lacking))}; "
            f"there is {', '.join(map(repr, given)) or 'nothing'}"
        )
    taken = given if signature.anything else {k: given[k] for k in signature.names if k in given}
    results = module(**{name: _moved(x, like) for name, x in taken.items()})
    return results if isinstance(results, tuple) else (results,)


def bare(results: tuple[Any, ...]) -> Any:
    """One result as it is, several as a tuple."""
    return results[0] if len(results) == 1 else results


def _moved(x: Any, like: Tensor | None) -> Any:
    if like is None or not isinstance(x, Tensor):
        return x
    return x.to(like.device, like.dtype if x.is_floating_point() else None)


class NamedResults(nn.Module):
    """A user's module as `operant.networks.CustomNetwork` takes it: its results get these names.

    It sees observations `state.<name>` and actions `action.<name>` as `<name>`, or what `reads`
    makes of them. Results that it does not give are zeros. `convert` is applied to the first
    result, given what the module saw; it may make several outputs by name of it.
    """

    def __init__(
        self,
        module: nn.Module,
        *names: str,
        convert: Callable[[Any, Tensors], Any] | None = None,
        reads: Callable[[Tensors], Tensors] | None = None,
    ) -> None:
        super().__init__()
        self.module, self.names = module, names
        self.convert, self.reads = convert, reads or plain_names

    def forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        """The results by name."""
        given = self.reads(observation)
        results = call(self.module, given)
        first = results[0] if self.convert is None else self.convert(results[0], given)
        found = dict(zip(self.names, (first, *results[1:]), strict=False))
        if isinstance(first, Mapping):
            found |= first
        like = found[self.names[0]]
        named = {k: _column(found[k], len(like)) if k in found else None for k in self.names}
        zeros = torch.zeros(len(like), 1, device=like.device, dtype=like.dtype)
        return {k: zeros if x is None else x for k, x in named.items()}, HiddenState()


def plain_names(observation: Tensors) -> Tensors:
    """Observations and actions under the user's own names."""
    return {name.partition(".")[2]: x for name, x in observation.items()}


def _column(x: Any, rows: int) -> Tensor | None:
    """A result `[B]` or `[B, ...]` as `[B, n]`; None for what is no tensor of that many rows."""
    if not (isinstance(x, Tensor) and x.dim() and len(x) == rows):
        return None
    return x.unsqueeze(-1) if x.dim() == 1 else x.flatten(1)
