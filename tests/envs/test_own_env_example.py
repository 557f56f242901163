"""The example of an environment of one's own, and later commands on its run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_env.py"


def run(directory: Path, *words: str) -> str:
    """What a command prints that ends well, run in the directory of the script."""
    line = [sys.executable, *words]
    done = subprocess.run(line, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_learns_and_its_run_is_resumed_evaluated_and_played(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    out = run(tmp_path, "own_env.py").splitlines()
    assert out[0] == "own_env:Corridor: no fault in 200 steps"
    assert float(out[-1].split("mean return ")[1].split(";")[0]) > 0.65
    operant = ("-m", "operant")
    assert run(tmp_path, *operant, "eval", "--episodes", "5").startswith("own_env:Corridor: 0.7")
    assert "6,144 steps" in run(tmp_path, *operant, "resume", "--steps", "6_000", "--quiet")
    assert "return" in run(tmp_path, *operant, "play", "--record", "corridor.gif")
    assert (tmp_path / "corridor.gif").stat().st_size > 500


def test_a_script_that_trains_when_it_is_imported_is_refused(tmp_path: Path) -> None:
    text = EXAMPLE.read_text().replace('if __name__ == "__main__":', "if True:")
    (tmp_path / "careless.py").write_text(text)
    words = ("-m", "operant", "train", "ppo", "--env.id", "careless:Corridor", "--steps", "20")
    line = [sys.executable, *words]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "careless: trains whenever it is imported" in done.stderr
    assert 'put what it runs under `if __name__ == "__main__":`' in done.stderr
