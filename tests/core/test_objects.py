"""Objects by name: what is passed is used, what is saved can be imported, what cannot is said."""

import collections
import functools
import subprocess
import sys
from pathlib import Path

import pytest

from operant.core import objects
from operant.core.errors import UsageError


class Own:
    class Inner:
        pass


def test_a_class_is_saved_by_its_module_and_name() -> None:
    assert objects.name_of(Own) == f"{__name__}:Own"
    assert objects.name_of(Own.Inner) == f"{__name__}:Own.Inner"
    assert objects.find(f"{__name__}:Own.Inner", "env.id") is Own.Inner


def test_a_name_is_imported() -> None:
    assert objects.find("collections:OrderedDict", "agent") is collections.OrderedDict


def test_what_no_module_holds_is_known_here_only() -> None:
    first, second = (lambda: 1), (lambda: 2)
    names = [objects.name_of(first), objects.name_of(second), objects.name_of(first)]
    assert names[0] == names[2] != names[1]
    assert all(map(objects.is_local, names))
    assert objects.find(names[1], "env.id") is second
    partial = functools.partial(int, "3")
    assert objects.find(objects.name_of(partial), "env.id") is partial


def test_a_text_is_a_name_already() -> None:
    assert objects.name_of("CartPole-v1") == "CartPole-v1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a.b:C", True), ("m:C.d", True), ("ale_py:ALE/Pong-v5", False), ("CartPole-v1", False)],
)
def test_names_are_told_from_ids(text: str, expected: bool) -> None:
    assert objects.is_name(text) is expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_at_all:X", "network = 'no_such_module_at_all:X': module"),
        ("collections:Nothing", "module 'collections' has no 'Nothing'"),
        ("here:lambda77", "only that program had"),
    ],
)
def test_what_cannot_be_found_is_named(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        objects.find(name, "network")


def test_a_name_of_a_script_is_that_of_its_file(tmp_path: Path) -> None:
    script = tmp_path / "own_script.py"
    script.write_text(
        "from operant.core import objects\n"
        "class Mine: pass\n"
        "name = objects.name_of(Mine)\n"
        "assert objects.find(name, 'x') is Mine\n"
        "print(name)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "own_script:Mine\n"
