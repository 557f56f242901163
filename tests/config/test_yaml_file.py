from __future__ import annotations

import contextlib
import math
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operant.config.yaml_file import dump_yaml, load_yaml, parse_scalar, parse_yaml
from operant.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("10e6", 10e6),
        ("-.5", -0.5),
        ("1_000", 1000),
        (".inf", math.inf),
        ("true", True),
        ("null", None),
        ("no", "no"),
        ("off", "off"),
        ("1:30", "1:30"),
        ("010", "010"),
        ("2020-01-01", "2020-01-01"),
        ("none", "none"),
    ],
)
def test_scalars_are_read_as_they_look_in_files_and_flags(text: str, value: Any) -> None:
    read = parse_yaml(f"x: {text}", "here")["x"]
    assert (read, type(read)) == (value, type(value))
    assert parse_scalar(text) == value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"# only a comment\n", "is empty"),
        (b"- 1\n", "holds a list"),
        (b"word", "holds only 'word'"),
        (b"\xff\xfe", "not UTF-8 text (byte 0)"),
        (b"a: [", ":1: expected the node content"),
        (b"a: 1\nb: 2\na: 3\n", ":3: the key 'a' occurs twice"),
        (b"s:\n  a: 1\n  a: 2\n", ":3: the key 'a' occurs twice"),
        (b"a: &x [*x]", ":1: an alias (*name) is not allowed"),
        (b"? [a]\n: 1", ":1: a key must be text"),
        (b"a: 1\n---\nb: 2\n", ":2: but found another document"),
        (b"a: !!int x", "invalid literal"),
        (b"a: !!binary aGk=", ":1: could not determine a constructor"),
        (b"[" * 5000, "nested too deeply"),
        (b"a: \x00", "not YAML"),
    ],
)
def test_a_bad_file_gets_one_line_with_its_name(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_yaml(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "tag",
    ["!!python/object/apply:os.system", "!!python/object/new:os.system", "!!python/name:os.system"],
)
def test_a_tag_that_would_run_code_is_refused_and_runs_nothing(tmp_path: Path, tag: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"a: {tag} ['touch {tmp_path}/canary']\n")
    with pytest.raises(UsageError, match="could not determine a constructor"):
        load_yaml(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.yaml"]


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such configuration file"):
        load_yaml(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        load_yaml(tmp_path)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.text(max_size=5), PLAIN, min_size=1, max_size=3))
def test_what_is_dumped_is_read_back_equal(tree: dict[str, Any]) -> None:
    assert parse_yaml(dump_yaml(tree), "here") == tree


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=60))
def test_no_bytes_give_anything_but_a_mapping_or_a_usage_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(content)
    with contextlib.suppress(UsageError):
        assert isinstance(load_yaml(path), dict)


def test_a_pipe_is_read_to_its_end_and_not_waited_for_where_nobody_writes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe: is empty"):
        load_yaml(tmp_path / "pipe")
    reading, writing = os.pipe()  # as the shell's `--config <(command)`

    def write() -> None:
        os.write(writing, b"seed: 4\n")
        os.close(writing)

    writer = threading.Timer(0.2, write)
    writer.start()
    assert load_yaml(f"/dev/fd/{reading}") == {"seed": 4}
    writer.join()
    os.close(reading)
