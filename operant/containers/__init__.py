"""All application state of one process, and the loop over it: collect, store, learn.

`LocalWorker` is the whole of training in one process; its samplers may use others to collect.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.containers.local import LocalWorker as LocalWorker

__getattr__ = lazy_names(__name__)
