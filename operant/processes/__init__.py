"""Worker processes: what environments, samplers and containers that run in processes share.

`WorkerProcess` starts one process and talks to it, `WorkerPool` handles several and replaces those
that die, `ArrayAllocator` places arrays in shared memory, and `pack`, `unpack` and `publish` send
an actor once and its weights as often as they change. Only `weights` imports torch.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.processes.pool import WorkerPool as WorkerPool
    from operant.processes.process import WorkerProcess as WorkerProcess
    from operant.processes.shared_memory import ArrayAllocator as ArrayAllocator
    from operant.processes.shared_memory import anonymous_memory as anonymous_memory
    from operant.processes.weights import pack as pack
    from operant.processes.weights import publish as publish
    from operant.processes.weights import unpack as unpack

__getattr__ = lazy_names(__name__)
