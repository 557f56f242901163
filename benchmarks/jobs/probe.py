"""Steps per second between two iteration boundaries; no library but Python's own is needed."""

from __future__ import annotations

import argparse
import json
import time


class Probe:
    """Call it with the step count at every iteration boundary until it says that it is done."""

    def __init__(self, seconds: float, warm: float = 3.0) -> None:
        self.seconds, self.warm = seconds, warm
        self.begun = time.perf_counter()
        self.start: tuple[float, int] | None = None

    def __call__(self, steps: int) -> bool:
        """Take in a boundary; prints the result and returns True once enough time has passed."""
        now = time.perf_counter()
        if self.start is None:
            if now - self.begun >= self.warm:
                self.start = (now, steps)
            return False
        begin, before = self.start
        if now - begin < self.seconds:
            return False
        print(json.dumps({"sps": (steps - before) / (now - begin)}), flush=True)
        return True


def seconds() -> float:
    """How long to measure, from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    return float(parser.parse_args().seconds)
