"""Samplers: how acting and stepping are distributed over processes, and what collects a chunk.

`SerialSampler` acts and steps in turn, `ParallelSampler` in worker processes, `AlternatingSampler`
steps one half of the environments while it acts for the other, `AsyncSampler` collects while the
agent learns. Under one seed, all but the last give the same chunks. An `Explorer` is a sampler in a
mode, and `Evaluation` plays whole episodes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from operant.core.protocols import BaseSampler
    from operant.samplers.alternating import AlternatingSampler
    from operant.samplers.asynchronous import AsyncSampler
    from operant.samplers.collector import BaseCollector, Collecting, Collector
    from operant.samplers.evaluate import Evaluation
    from operant.samplers.explorer import Explorer
    from operant.samplers.parallel import ParallelSampler
    from operant.samplers.serial import SerialSampler

_MODULES = {
    "AlternatingSampler": "samplers.alternating",
    "AsyncSampler": "samplers.asynchronous",
    "BaseCollector": "samplers.collector",
    "BaseSampler": "core.protocols",
    "Collecting": "samplers.collector",
    "Collector": "samplers.collector",
    "Evaluation": "samplers.evaluate",
    "Explorer": "samplers.explorer",
    "ParallelSampler": "samplers.parallel",
    "SerialSampler": "samplers.serial",
}
__all__ = [
    "AlternatingSampler",
    "AsyncSampler",
    "BaseCollector",
    "BaseSampler",
    "Collecting",
    "Collector",
    "Evaluation",
    "Explorer",
    "ParallelSampler",
    "SerialSampler",
]


def __getattr__(name: str) -> Any:
    # On demand, as in the other packages: torch takes seconds to import.
    if name in _MODULES:
        return getattr(import_module(f"operant.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'operant.samplers' has no attribute {name!r}")
