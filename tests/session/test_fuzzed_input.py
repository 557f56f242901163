"""Any command line and any file is accepted and comes back from its file, or is refused at once."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import call

from operant.agents.registry import AGENTS
from operant.cli import commands
from operant.config.flags import flag
from operant.config.schema import leaves
from operant.session.run_settings import run_config
from operant.session.session import Session, read_config

# What would be accepted, and would then take minutes: a network of gigabytes, a long compilation.
LARGE = (10**15, 2**63 - 1, 2**63, -(2**63), 10**400)
FAST = ["--threads=1", "--sampler=serial", "--compile=off", "--eval.every=none", "--quiet"]
NUMBERS = st.one_of(
    st.integers(-3, 9), st.sampled_from(LARGE), st.floats(), st.floats(-2, 2), st.just(1e39)
)
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ("", "none", "true", "1__0", ",", "[]", "[1,", "linear(1,0)", "linear(1e39,0,5%)")
    ),
    st.sampled_from(
        ("1e999", "nan", "-inf", "\ud800", "../x", "a:B", "cuda:9", "é", "٣", "~", "x=1")
    ),
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def plain(value: Any) -> Any:
    """A default as a flag or a file has it."""
    kept = value is None or isinstance(value, bool | int | float | str | dict)
    return value if kept else [*value] if isinstance(value, tuple) else str(value)


AGENT_NAMES = st.sampled_from(sorted(AGENTS))
PATHS = {
    name: {leaf.path: plain(leaf.value) for leaf in leaves(run_config(name))} for name in AGENTS
}
SKIPPED = ("threads", "sampler", "compile", "env.id", "callbacks", "env.wrappers")


@st.composite
def settings_of_an_agent(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """An agent, and values for some of its settings, or for what is nearly one."""
    agent = draw(AGENT_NAMES)
    known = {path: x for path, x in PATHS[agent].items() if path not in SKIPPED}
    values: dict[str, Any] = {}
    for path in draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3)):
        how = draw(st.integers(0, 8))  # mostly a value that is right, or one of its type
        name = path + draw(TEXTS) if how == 0 else path
        near = st.just(known[path]) if how < 6 else NUMBERS if how < 8 else VALUES
        values[name] = draw(near)
    return agent, values


def nested(values: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in values.items():
        section, _, name = path.partition(".")
        if name and isinstance(tree.setdefault(section, {}), dict):
            tree[section][name] = value
        elif not name:
            tree[section] = value
    return tree


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """`text` with up to three places overwritten."""
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, max(0, len(text) - 1)))
        end = begin + draw(st.sampled_from((0, 1, 2, 5, 12)))
        text = text[:begin] + draw(TEXTS | NUMBERS.map(str)) + text[end:]
    return text


def written(value: Any) -> str:
    return ",".join(map(str, value)) or "[]" if isinstance(value, list) else str(value)


def round_trip(session: Session, *_: Any) -> int:
    """In the place of training: the configuration comes back from the file of the run."""
    assert read_config(session.run / "config.yaml", trust=True) == session.config
    return 0


def accepted_or_refused(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands, "_run", round_trip)
        runs = Path(root, "runs")
        result = call(["train", *words, *FAST], runs)
        if result.code:
            assert (result.code, result.out, runs.exists()) == (2, "", False), result
            assert result.err.startswith("operant: error: ")
            assert result.err.count("\n") == 1


def fuzz(test: Callable[..., None], cases: int) -> Callable[[], None]:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(deadline=None, max_examples=cases, suppress_health_check=checks)(test)


@given(settings_of_an_agent())
def flags(case: tuple[str, dict[str, Any]]) -> None:
    agent, values = case
    accepted_or_refused([agent, *(f"{flag(path)}={written(x)}" for path, x in values.items())])


@given(settings_of_an_agent())
def files(case: tuple[str, dict[str, Any]]) -> None:
    agent, values = case
    from_file(agent, repr_yaml(nested(values)))


LINE = "--steps 100 --seed=3 --agent.lr linear(1,0,9) --env.hide 1"
FILE = "seed: 1\nsteps: 100\nenv: {hide: []}\nagent: {gamma: 0.9}\nnetwork: {hidden: [8]}\n"


@given(mutated(LINE))
def mutated_lines(line: str) -> None:
    accepted_or_refused(["ppo", *line.split()])


@given(mutated(FILE))
def mutated_files(text: str) -> None:
    from_file("ppo", text)


def repr_yaml(tree: dict[str, Any]) -> str:
    """JSON is YAML, but for NaN and what UTF-8 cannot hold, which are fuzz as well."""
    return json.dumps(tree)


def from_file(agent: str, text: str) -> None:
    with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
        file.write(text.encode("utf-8", "surrogatepass"))
        file.flush()
        accepted_or_refused([agent, f"--config={file.name}"])


KINDS = {
    "flags": flags,
    "files": files,
    "mutated lines": mutated_lines,
    "mutated files": mutated_files,
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_input_is_accepted_and_comes_back_or_is_refused_in_one_line(kind: str) -> None:
    fuzz(KINDS[kind], 25)()


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_inputs_are_accepted_and_come_back_or_are_refused(kind: str) -> None:
    fuzz(KINDS[kind], 250)()
