"""MinAtar: five small games in the manner of Atari, by ids such as `MinAtar/Breakout-v1`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def register(module: Any) -> None:
    """Make its ids known to Gymnasium."""
    module.register_envs()


@contextmanager
def without_warnings() -> Iterator[None]:
    """Import MinAtar without its warning that a package for colours is missing."""
    threshold = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(threshold)
