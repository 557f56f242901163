"""Operant: deep reinforcement learning for PyTorch. Write the agent once, run it anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from operant.run import Run, build_and_train, load, train

__version__ = "0.1.0"
__all__ = ["Run", "__version__", "build_and_train", "load", "train"]


def __getattr__(name: str) -> Any:
    # On demand: torch takes two seconds to import, and workers and `--help` do without it.
    if name in __all__:
        from operant import run  # noqa: PLC0415

        return getattr(run, name)
    raise AttributeError(f"module 'operant' has no attribute {name!r}")
