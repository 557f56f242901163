"""Other libraries, each in a virtual environment of its own under `benchmarks/.venvs`.

`PEERS` says what is installed; which peer can do which work stands in `works.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
CONSTRAINTS = HERE.parent / "constraints.txt"
ATARI = ["ale-py", "opencv-python-headless"]
MUJOCO = ["mujoco", "imageio", "packaging>=24"]
BOX2D = ["box2d", "pygame-ce"]
# Where no version is named, it is ours; whatever else a peer needs, it chooses itself.
PEERS: dict[str, list[str]] = {
    "sb3": [
        *("stable-baselines3==2.9.2", "sb3-contrib==2.9.2", "numpy", "torch", "gymnasium"),
        *(*ATARI, *MUJOCO, *BOX2D),
    ],
    "zoo": [
        *("rl_zoo3==2.9.2", "stable-baselines3==2.9.2", "numpy", "torch", "gymnasium"),
        *("sb3-contrib==2.9.2", *MUJOCO, *BOX2D),
    ],
    "tianshou": ["tianshou==2.0.1", "numpy<2.3", "torch", "gymnasium", *ATARI, *MUJOCO],
    "skrl": ["skrl==2.1.1", "torch", "gymnasium", *MUJOCO],
}


def python_of(peer: str) -> Path:
    """The peer's interpreter; first installs what is not there yet."""
    home = HERE / ".venvs" / peer
    done, wanted = home / "installed", "\n".join(PEERS[peer]) + "\n"
    if not done.exists() or done.read_text("utf-8") != wanted:
        print(f"installing {peer} …", file=sys.stderr, flush=True)
        if home.is_symlink() and not home.exists():
            home.unlink()  # it leads nowhere
        install(home, PEERS[peer])
        done.write_text(wanted, "utf-8")
    return home / "bin" / "python"


def install(home: Path, packages: list[str]) -> None:
    """A virtual environment with these packages in it."""
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    wanted = pinned(packages, CONSTRAINTS.read_text("utf-8"))
    subprocess.run([str(python), "-m", "pip", "install", "-q", *wanted], check=True)


def pinned(packages: list[str], ours: str) -> list[str]:
    """The packages, with our versions of those that name none."""
    pins = {canonical(line): line for line in ours.splitlines() if "==" in line}
    return [p if re.search(r"[<>=!~]", p) else pins.get(canonical(p), p) for p in packages]


def canonical(requirement: str) -> str:
    """The name of a package as the index compares it."""
    name = re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()
