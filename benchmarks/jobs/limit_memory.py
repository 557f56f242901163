"""The bytes of 50k Atari transitions by arithmetic: each frame of 84 x 84 once."""

from __future__ import annotations

from benchmarks.jobs.probe import arguments, tell

if __name__ == "__main__":
    asked = arguments()
    tell(asked, asked.held * 84 * 84 / 2**30)
