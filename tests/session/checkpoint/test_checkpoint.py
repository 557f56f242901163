from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from operant.core.errors import CheckpointError
from operant.session.checkpoint import checkpoint
from operant.session.checkpoint.checkpoint import listing, load, newest, save


def round_trip(directory: Path, value: Any) -> Any:
    return load(save(directory, 1, {"value": value})).state["value"]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "text é",
        -(2**127),
        0.1,
        -0.0,
        math.inf,
        b"\x00\xff",
        (1, (2.5, [None, "x"]), ()),
        {0: {"step": 1.0}, 1: {}},
        {"a": {"float": "nan"}, "tensor": ["not one"]},
        np.random.default_rng(3).bit_generator.state,
    ],
)
def test_plain_values_come_back_equal_and_of_their_type(tmp_path: Path, value: Any) -> None:
    back = round_trip(tmp_path, value)
    assert repr(back) == repr(value)


@pytest.mark.parametrize("dtype", sorted({*"?bBhHiIlLefdF"}))
def test_arrays_of_every_dtype_come_back_bit_for_bit(tmp_path: Path, dtype: str) -> None:
    array = np.frombuffer(np.random.default_rng(0).bytes(48), np.uint8).view(
        np.uint8 if dtype == "?" else dtype
    )
    array = array > 127 if dtype == "?" else array
    back = round_trip(tmp_path, array)
    assert (back.dtype, back.tobytes()) == (array.dtype, array.tobytes())
    assert back.flags.writeable


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16, np.uint64, np.bool_])
def test_numpy_scalars_keep_their_type(tmp_path: Path, kind: Any) -> None:
    back = round_trip(tmp_path, kind(1))
    assert (type(back), back) == (kind, 1)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(1.5),
        torch.zeros(0, 3),
        torch.tensor(2.5).expand(1),
        torch.arange(12.0).view(3, 4).t(),
        torch.arange(6, dtype=torch.bfloat16),
        torch.tensor([True, False, True]),
        torch.nn.Parameter(torch.ones(2, 2)),
        torch.tensor([math.nan, -math.inf]),
    ],
)
def test_tensors_of_any_layout_come_back(tmp_path: Path, tensor: torch.Tensor) -> None:
    back = round_trip(tmp_path, tensor)
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    torch.testing.assert_close(back, tensor.detach(), rtol=0, atol=0, equal_nan=True)


def test_tensors_that_share_memory_come_back_apart(tmp_path: Path) -> None:
    base = torch.arange(6.0)
    back = round_trip(tmp_path, {"all": base, "again": base, "part": base[2:4]})
    back["all"].zero_()
    assert back["again"].sum() == 15
    assert back["part"].tolist() == [2.0, 3.0]


def test_paths_that_read_alike_keep_their_own_tensors(tmp_path: Path) -> None:
    state = {"a": {"b.c": torch.zeros(1)}, "a.b": {"c": torch.ones(1)}}
    back = round_trip(tmp_path, state)
    assert (back["a"]["b.c"].item(), back["a.b"]["c"].item()) == (0.0, 1.0)


def test_an_optimizer_goes_on_from_its_saved_state(tmp_path: Path) -> None:
    layer = torch.nn.Linear(3, 2)
    adam = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 3)).sum().backward()
    adam.step()
    other = torch.optim.Adam(layer.parameters())
    other.load_state_dict(round_trip(tmp_path, adam.state_dict()))
    assert list(other.state_dict()["state"]) == [0, 1]
    assert torch.equal(other.state[layer.weight]["exp_avg"], adam.state[layer.weight]["exp_avg"])


def test_a_loaded_state_owns_its_memory(tmp_path: Path) -> None:
    loaded = load(save(tmp_path, 1, {"x": torch.ones(1000)}))
    (loaded.path / "tensors.safetensors").write_bytes(b"\x00" * 5000)
    assert loaded.state["x"].sum() == 1000


def test_what_is_large_is_left_in_its_file_even_when_that_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "MAPPED_SIZE", 4096)
    path = save(tmp_path, 1, {"large": torch.arange(1024.0), "small": torch.arange(8.0)})
    state = load(path).state
    with (path / "tensors.safetensors").open("r+b") as file:
        file.seek(-36, 2)
        file.write(bytes(36))  # the last number of what is large, and all that is small
    shutil.rmtree(path)
    assert state["small"].sum() == 28.0
    assert state["large"].sum() == 523776.0 - 1023.0
    state["large"][0] = 1.0  # it is the loader's own
    assert state["large"].sum() == 523777.0 - 1023.0


def test_the_safetensors_library_reads_the_file(tmp_path: Path) -> None:
    state = {"mask": torch.ones(3, dtype=torch.bool), "w": torch.arange(4.0), "n": np.arange(5)}
    tensors = load_file(save(tmp_path, 1, state) / "tensors.safetensors")
    assert {name: x.tolist() for name, x in tensors.items()} == {
        "mask": [True] * 3,
        "w": [0.0, 1.0, 2.0, 3.0],
        "n": [0, 1, 2, 3, 4],
    }


def test_every_tensor_is_aligned_in_the_file(tmp_path: Path) -> None:
    state = {"mask": torch.ones(3, dtype=torch.bool), "w": torch.ones(1), "d": np.ones(1)}
    raw = (save(tmp_path, 1, state) / "tensors.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    begins = {
        name: entry["data_offsets"][0] for name, entry in json.loads(raw[8 : 8 + length]).items()
    }
    assert length % 8 == 0
    assert begins == {"d": 0, "w": 8, "mask": 12}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "state.value: a object cannot be saved"),
        ({"deep": [lambda: 0]}, "state.value.deep.0: a function cannot be saved"),
        (np.array([None]), "state.value: arrays of object cannot be saved"),
        (torch.zeros(2, dtype=torch.complex128), "state.value: a tensor of torch.complex128"),
        (checkpoint.Checkpoint(1, {}, {}, Path()), "state.value: a Checkpoint cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_refused_by_its_path(
    tmp_path: Path, value: Any, message: str
) -> None:
    with pytest.raises(CheckpointError) as caught:
        save(tmp_path / "c", 1, {"value": value})
    assert str(caught.value).startswith(message)
    assert not listing(tmp_path / "c")


def test_the_manifest_says_what_wrote_it_and_how_exact_it_is(tmp_path: Path) -> None:
    path = save(tmp_path, 7, {}, reasons=["the environment has no snapshot"], extra={"run": 3})
    manifest = load(path).manifest
    assert (manifest["schema"], manifest["step"], manifest["exact"]) == (1, 7, False)
    assert manifest["reasons"] == ["the environment has no snapshot"]
    assert manifest["versions"]["torch"] == torch.__version__
    assert manifest["extra"] == {"run": 3}


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for step in range(1, 6):
        save(tmp_path, step, {"step": step}, keep=3)
    assert names(tmp_path) == [f"ckpt-{step:012d}" for step in (3, 4, 5)]


def test_saving_an_earlier_step_gives_up_the_later_ones(tmp_path: Path) -> None:
    for step in (100, 200, 300, 150):
        save(tmp_path, step, {"step": step}, keep=1 if step == 150 else 3)
    assert names(tmp_path) == ["ckpt-000000000150"]


def test_a_step_can_be_saved_again(tmp_path: Path) -> None:
    save(tmp_path, 5, {"try": 1})
    save(tmp_path, 5, {"try": 2})
    assert newest(tmp_path).state == {"try": 2}
    assert names(tmp_path) == ["ckpt-000000000005"]


def test_what_interrupted_saves_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".tmp-000000000003-999").mkdir()
    (tmp_path / ".tmp-000000000003-999" / "state.json").write_text("{")
    (tmp_path / ".tmp-file").write_text("stray")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".tmp-link").symlink_to(tmp_path / "elsewhere")
    save(tmp_path, 4, {})
    (tmp_path / "elsewhere").rmdir()
    assert names(tmp_path) == ["ckpt-000000000004"]


def test_a_failed_save_leaves_the_older_checkpoint_and_no_litter(tmp_path: Path) -> None:
    save(tmp_path, 1, {"good": 1})

    def full(operation: str) -> None:
        if operation == "sync state.json":
            raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointError, match="could not be saved: No space left on device"):
        save(tmp_path, 2, {"good": 2}, before=full)
    assert names(tmp_path) == ["ckpt-000000000001"]
    assert newest(tmp_path).state == {"good": 1}


def test_a_save_that_the_disk_garbled_is_not_published(tmp_path: Path) -> None:
    save(tmp_path, 1, {"good": 1})

    def garble(operation: str) -> None:
        if operation.startswith("sync .tmp-"):
            next(tmp_path.glob(".tmp-*/state.json")).write_bytes(b"0")

    with pytest.raises(CheckpointError, match=r"state\.json: has 1 bytes, not"):
        save(tmp_path, 2, {"good": 2}, keep=1, before=garble)
    assert names(tmp_path) == ["ckpt-000000000001"]


def test_newest_orders_by_step_not_by_age(tmp_path: Path) -> None:
    for step in (1_000, 2_000):
        save(tmp_path, step, {"step": step})
    found = newest(tmp_path)
    assert (found.step, found.state) == (2_000, {"step": 2_000})
    assert [path.name for path in listing(tmp_path)] == ["ckpt-000000001000", "ckpt-000000002000"]


def test_a_directory_without_checkpoints_is_an_error(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(CheckpointError, match="holds no checkpoint"):
            newest(directory)


def test_a_checkpoint_may_be_copied_under_another_name(tmp_path: Path) -> None:
    path = save(tmp_path, 9, {"x": 1})
    path.rename(tmp_path / "best")
    assert load(tmp_path / "best").step == 9


def test_the_files_are_plain_json(tmp_path: Path) -> None:
    path = save(tmp_path, 1, {"a": [1, math.inf]})
    skeleton = json.loads((path / "state.json").read_text())
    assert skeleton == {"dict": {"a": [1, {"float": "inf"}]}}
