"""How many threads `--threads 0` stands for: what the user has set, else by the network's size."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from operant.session import machine, resolve
from operant.session.compose import compose
from operant.session.try_out import try_out

WIDE: dict[str, Any] = {"network": {"hidden": [512, 512]}, "agent": {"minibatch": 256}}


def chosen(**settings: Any) -> int:
    config, _ = compose("ppo", {"device": "cpu", "compile": "off", **settings})
    return try_out(config).config.threads


@pytest.fixture(autouse=True)
def _two_cores_and_nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in machine.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(resolve, "cores", lambda: 2)
    machine.prepare(1)  # what was set before this test was not set by a user
    monkeypatch.setattr(machine, "ours", 1)


@pytest.mark.parametrize(
    ("hidden", "rows", "expected"),
    [(64, 64, 1), (128, 256, 1), (128, 512, 1), (256, 128, 1), (256, 256, 2), (512, 128, 2)],
)
def test_only_networks_that_gain_from_it_get_two_threads(
    hidden: int, rows: int, expected: int
) -> None:
    settings: dict[str, Any] = {"network": {"hidden": [hidden, hidden]}}
    config, _ = compose("ppo", {**settings, "agent": {"minibatch": rows}})
    assert resolve.choose_threads(config, images=False) == expected


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
@pytest.mark.parametrize(("value", "expected"), [("1", 1), ("3", 3), ("3,2", 3), ("many", 2)])
def test_a_variable_that_the_user_has_set_is_kept(
    name: str, value: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert chosen(**WIDE) == expected


def test_a_number_of_threads_that_was_given_overrules_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert chosen(threads=2, **WIDE) == 2


@pytest.mark.parametrize(("value", "expected"), [(1, 1), (7, 7)])
def test_what_the_program_has_told_torch_is_kept_run_after_run(
    value: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "ours", 0)
    monkeypatch.setattr(machine, "default_threads", lambda: range(2, 5))
    torch.set_num_threads(value)
    assert [chosen(**WIDE), chosen(**WIDE)] == [expected, expected]
    assert torch.get_num_threads() == expected


def test_what_another_run_has_set_is_not_the_programs() -> None:
    assert [chosen(**WIDE), chosen(), chosen(**WIDE)] == [2, 1, 2]


@pytest.mark.skipif(len(machine.default_threads()) != 1, reason="torch's default is not known")
def test_torch_starts_with_the_default_that_is_expected() -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.get_num_threads())"],
        env={k: v for k, v in os.environ.items() if k not in machine.VARIABLES},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(found.stdout) in machine.default_threads()
