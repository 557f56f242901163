"""Models in files: names and versions as seed 003 has them, and nothing that runs code."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from operant.core.errors import CheckpointError, UsageError
from operant.frameworks.files import load_models, save_models


class Net(nn.Module):
    """A model of a user's own."""

    def __init__(self, fill: float = 0.0, width: int = 3) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.BatchNorm1d(width))
        nn.init.constant_(self.layers[0].weight, fill)  # type: ignore[arg-type]  # a Linear


class Odd(Net):
    """A model with an attribute that only its own process can make."""

    def __init__(self, fill: float = 0.0) -> None:
        super().__init__(fill)
        self.hook = lambda x: x


class Evil:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.canary),)


def fill(model: nn.Module) -> float:
    return float(next(model.parameters()).detach().flatten()[0])


def versions(root: Path, **held: tuple[int, ...]) -> None:
    for name, numbers in held.items():
        for number in numbers:
            save_models({name: Net(number)}, root, version=number)


def test_a_model_is_saved_whole_under_its_name_and_version(tmp_path: Path) -> None:
    save_models({"qnet_target": Net(2.0)}, tmp_path, {"qnet_target": "qnt"}, 1000)
    assert [p.name for p in tmp_path.iterdir()] == ["qnt_1000.pt"]
    held = torch.load(tmp_path / "qnt_1000.pt", weights_only=False)
    assert isinstance(held, Net)
    assert fill(held) == 2.0


@pytest.mark.parametrize(
    ("asked", "loaded"), [(-1, 100), (0, 0), (100, 100), (1000, 100), (10_000, 100)]
)
@pytest.mark.filterwarnings("ignore:.*is not there of every model")
def test_the_newest_version_that_all_models_have_is_loaded(
    asked: int, loaded: int, tmp_path: Path
) -> None:
    versions(tmp_path, actor=(0, 100, 1000), critic=(0, 100))
    models = {"actor": Net(7.0), "critic": Net(7.0)}
    assert load_models(models, tmp_path, version=asked) == loaded
    assert [fill(model) for model in models.values()] == [loaded, loaded]


def test_a_version_that_is_not_there_is_said(tmp_path: Path) -> None:
    versions(tmp_path, actor=(3,))
    with pytest.warns(UserWarning, match="version 5 is not there of every model; loading 3"):
        load_models({"actor": Net()}, tmp_path, version=5)


def test_a_file_without_a_version_is_ignored(tmp_path: Path) -> None:
    versions(tmp_path, actor=(3,))
    (tmp_path / "actor_3.pt").rename(tmp_path / "actor.pt")
    with pytest.raises(CheckpointError, match="no version is there of every model"):
        load_models({"actor": Net()}, tmp_path)


def test_models_without_a_version_in_common_are_refused(tmp_path: Path) -> None:
    versions(tmp_path, actor=(1,), critic=(2,))
    with pytest.raises(RuntimeError, match=r"actor: \[1\]; critic: \[2\]"):
        load_models({"actor": Net(), "critic": Net()}, tmp_path)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nowhere: there is no such directory"):
        load_models({"actor": Net()}, tmp_path / "nowhere")


def test_a_state_dict_and_safetensors_load_too(tmp_path: Path) -> None:
    torch.save(Net(4.0).state_dict(), tmp_path / "actor_1.pt")
    save_file(Net(5.0).state_dict(), tmp_path / "critic_1.safetensors")
    models = {"actor": Net(), "critic": Net()}
    load_models(models, tmp_path)
    assert [fill(model) for model in models.values()] == [4.0, 5.0]


def test_a_model_that_could_not_be_read_again_is_saved_as_its_weights(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Odd is saved as its state dict alone"):
        save_models({"actor": Odd(3.0)}, tmp_path)
    live = Odd()
    load_models({"actor": live}, tmp_path)
    assert fill(live) == 3.0


def test_a_wrapped_model_has_the_files_of_the_plain_one(tmp_path: Path) -> None:
    save_models({"actor": nn.DataParallel(Net(6.0))}, tmp_path)
    plain, wrapped = Net(), nn.DataParallel(Net())
    load_models({"actor": plain}, tmp_path)
    load_models({"actor": wrapped}, tmp_path)
    assert (fill(plain), fill(wrapped)) == (6.0, 6.0)


def test_loading_runs_no_code(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "actor_1.pt").write_bytes(pickle.dumps(Evil(canary)))
    torch.save({"layers.0.weight": Evil(canary)}, tmp_path / "critic_1.pt")
    for name in ("actor", "critic"):
        with pytest.raises(CheckpointError, match=f"{name}_1.pt: cannot be loaded"):
            load_models({name: Net()}, tmp_path)
    assert not canary.exists()


def test_nothing_is_loaded_unless_everything_can_be(tmp_path: Path) -> None:
    save_models({"actor": Net(1.0), "critic": Net(1.0, width=4)}, tmp_path)
    actor = Net(9.0)
    with pytest.raises(CheckpointError, match=r"critic_0.pt: layers.0.weight is .*\[4, 2\]"):
        load_models({"actor": actor, "critic": Net()}, tmp_path)
    assert fill(actor) == 9.0


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    save_models({"actor": Net(1.0)}, tmp_path)
    path = tmp_path / "actor_0.pt"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"actor_0\.pt: cannot be loaded"):
        load_models({"actor": Net()}, tmp_path)


def test_a_file_that_links_elsewhere_is_refused(tmp_path: Path) -> None:
    save_models({"other": Net(1.0)}, tmp_path)
    (tmp_path / "actor_0.pt").symlink_to(tmp_path / "other_0.pt")
    with pytest.raises(CheckpointError, match=r"actor_0\.pt: cannot be loaded"):
        load_models({"actor": Net()}, tmp_path)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"actr": "a"}, "'actr' is not saved; did you mean 'actor'"),
        ({"actor": "../a"}, "expected a plain file name"),
        ({"actor": "x", "critic": "x"}, "two models would have the same file"),
    ],
)
def test_a_bad_map_of_names_is_refused(names: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        save_models({"actor": Net(), "critic": Net()}, tmp_path, names)
    assert list(tmp_path.iterdir()) == []
