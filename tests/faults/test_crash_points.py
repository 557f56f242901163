"""A process that dies at any moment of a save leaves the checkpoint before or the new one."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch

from operant.session.checkpoint.checkpoint import newest, save

pytestmark = pytest.mark.usefixtures("nothing_left_behind")
CONTEXT = get_context("fork")  # the children only write files, and start at once
AUDITED = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")


def state_at(step: int) -> dict[str, Any]:
    return {"step": step, "x": torch.full((100,), float(step))}


def save_in_child(directory: Path, step: int, prepare: Callable[[], Any]) -> int:
    """Save in another process, which `prepare` may have set to die; its exit code."""

    def child() -> None:
        before = prepare() or (lambda operation: None)
        save(directory, step, state_at(step), keep=2, before=before)
        os._exit(0)

    process = CONTEXT.Process(target=child)
    process.start()
    process.join()
    code = process.exitcode
    process.close()
    assert code is not None
    return code


def countdown(moment: int) -> Callable[..., None]:
    """A function whose call number `moment`, from 0 on, ends the process without tidying up."""
    left = iter(range(moment))

    def count(*_: object) -> None:
        if next(left, None) is None:
            os._exit(9)

    return count


def at_operation(moment: int) -> Callable[..., None]:
    """Die before this operation of the save."""
    return countdown(moment)


def at_audited(moment: int) -> None:
    """Die before this one of all that Python does to files, whoever asked for it."""
    count = countdown(moment)
    sys.addaudithook(lambda event, args: count() if event in AUDITED else None)


def assert_whole(directory: Path, step: int) -> None:
    """A checkpoint loads, is one of those two, and the next save leaves nothing strange."""
    found = newest(directory)
    assert found.state["step"] in (2, step)
    assert found.state["x"].tolist() == [float(found.step)] * 100
    save(directory, 4, state_at(4), keep=2)
    assert not any(path.name.startswith(".tmp") for path in directory.iterdir())


def crashes(tmp_path: Path, step: int, die: Callable[[int], Any]) -> int:
    """Die at every moment, from the first on, until a save comes to its end; how many there are."""
    for moment in range(1000):
        directory = tmp_path / str(moment)
        for earlier in (1, 2):
            save(directory, earlier, state_at(earlier), keep=2)
        code = save_in_child(directory, step, partial(die, moment))
        assert_whole(directory, step)
        if code == 0:
            return moment
        assert code == 9
    raise AssertionError("a save without an end")


@pytest.mark.parametrize("step", [3, 2])
def test_a_crash_before_any_operation_leaves_a_whole_checkpoint(tmp_path: Path, step: int) -> None:
    """Step 3 is new, so that one is pruned; step 2 is there already, and is saved again."""
    assert crashes(tmp_path, step, at_operation) >= 12


@pytest.mark.parametrize("step", [3, 2])
def test_a_crash_before_anything_python_does_to_files_leaves_a_whole_checkpoint(
    tmp_path: Path, step: int
) -> None:
    assert crashes(tmp_path, step, at_audited) >= 12


def limit_to(size: int) -> None:
    """Have the kernel kill the process in the middle of a write, at this size of a file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_write_cut_short_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    codes = []
    for size in (1, 7, 8, 9, 100, 200, 400, 600, 700, 1 << 20):
        directory = tmp_path / str(size)
        for earlier in (1, 2):
            save(directory, earlier, state_at(earlier), keep=2)
        codes.append(save_in_child(directory, 3, partial(limit_to, size)))
        assert_whole(directory, 3)
    assert codes[:4] == [-signal.SIGXFSZ] * 4
    assert codes[-1] == 0
