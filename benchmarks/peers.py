"""Other libraries, each in a virtual environment of its own under `benchmarks/.venvs`."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
CONSTRAINTS = HERE.parent / "constraints.txt"
PEERS = {"sb3": ["torch", "gymnasium", "stable-baselines3==2.9.2"]}


def python_of(peer: str) -> Path:
    """The peer's interpreter; installs the peer first if it is not there."""
    home = HERE / ".venvs" / peer
    python = home / "bin" / "python"
    done = home / "installed"
    if not done.exists():
        print(f"installing {peer} …", file=sys.stderr, flush=True)
        venv.create(home, with_pip=True)
        command = [python, "-m", "pip", "install", "-q", "-c", CONSTRAINTS, *PEERS[peer]]
        subprocess.run([str(part) for part in command], check=True)
        done.touch()
    return python
