"""Samplers: how acting and stepping are distributed over processes, and what collects a chunk.

`SerialSampler` acts and steps in turn, `ParallelSampler` in worker processes, `AlternatingSampler`
steps one half of the environments while it acts for the other, `AsyncSampler` collects while the
agent learns. Under one seed, all but the last give the same chunks. An `Explorer` is a sampler in a
mode, and `Evaluation` plays whole episodes.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.samplers.alternating import AlternatingSampler as AlternatingSampler
    from operant.samplers.asynchronous import AsyncSampler as AsyncSampler
    from operant.samplers.collector import BaseCollector as BaseCollector
    from operant.samplers.collector import Collecting as Collecting
    from operant.samplers.collector import Collector as Collector
    from operant.samplers.evaluate import Evaluation as Evaluation
    from operant.samplers.explorer import Explorer as Explorer
    from operant.samplers.parallel import ParallelSampler as ParallelSampler
    from operant.samplers.sampler import BaseSampler as BaseSampler
    from operant.samplers.sampler import ChunkSampler as ChunkSampler
    from operant.samplers.serial import SerialSampler as SerialSampler

__getattr__ = lazy_names(__name__)
