"""Gradient steps as machine code."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
# Compiling by two threads is no quicker, and needs processes beside this one.
ALONE: dict[str, Any] = {"compile_threads": 1}


def one_program(function: Callable[P, R], dynamic: bool = False) -> Callable[P, R]:
    """`function` compiled, gradients that it takes included; `dynamic`: for any sizes.

    With the gradient outside, torch would go back and forth between Python and two programs, which
    takes longer than small networks do.
    """
    import torch._dynamo  # noqa: PLC0415  # takes a second that others need not wait

    torch._dynamo.config.trace_autograd_ops = True
    # Of what torch itself calls.
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torch\.")
    return torch.compile(function, dynamic=dynamic, options=ALONE)
