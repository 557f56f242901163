"""Which versions the other libraries are installed with."""

from __future__ import annotations

from pathlib import Path

import pytest
import rooted  # noqa: F401  # finds the package

from benchmarks import peers
from benchmarks.peers import PEERS, canonical, pinned, python_of

OURS = "# pins\nNumPy==2.4.6\nale_py==0.12.1\n"


def test_a_package_without_a_version_gets_ours() -> None:
    assert pinned(["numpy", "ale-py"], OURS) == ["NumPy==2.4.6", "ale_py==0.12.1"]


def test_a_package_with_a_version_keeps_it() -> None:
    assert pinned(["numpy<2.3"], OURS) == ["numpy<2.3"]


def test_a_package_that_we_do_not_know_is_left_as_it_is() -> None:
    assert pinned(["numba"], OURS) == ["numba"]


def test_names_are_compared_as_the_index_does() -> None:
    assert canonical("Ale_Py[extra]>=1") == "ale-py"


def test_every_peer_names_its_own_version_first() -> None:
    assert all("==" in packages[0] for packages in PEERS.values())


def test_a_peer_is_installed_once_and_again_when_its_list_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def install(home: Path, packages: list[str]) -> None:
        home.mkdir(parents=True, exist_ok=True)
        asked.append(packages)

    monkeypatch.setattr(peers, "HERE", tmp_path)
    monkeypatch.setattr(peers, "install", install)
    for packages in (["sb3==1"], ["sb3==1"], ["sb3==2"]):
        monkeypatch.setitem(PEERS, "sb3", packages)
        python_of("sb3")
    assert asked == [["sb3==1"], ["sb3==2"]]


def test_a_link_that_leads_nowhere_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / ".venvs" / "sb3"
    home.parent.mkdir()
    home.symlink_to(tmp_path / "gone")
    monkeypatch.setattr(peers, "HERE", tmp_path)
    monkeypatch.setattr(peers, "install", lambda home, packages: home.mkdir())
    python_of("sb3")
    assert (home / "installed").is_file()
