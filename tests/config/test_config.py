from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operant.config import describe, dump_yaml, from_tree, load_yaml, parse_flags, rows, to_tree
from operant.core.config import Config, Count, Fraction, Positive, Range
from operant.core.errors import UsageError
from operant.core.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class EnvSection(Config):
    """What to play."""

    id: str = "CartPole-v1"  # any registered id
    kwargs: dict[str, Any] = field(default_factory=dict)
    normalize: bool = True  # in standard deviations


@dataclass(frozen=True, kw_only=True)
class Learning(Config):
    lr: Schedule = Schedule(3e-4)  # step size, or a schedule of it
    gamma: Fraction = 0.99


@dataclass(frozen=True, kw_only=True)
class AgentSection(Learning):
    """Clipped policy gradients."""

    epochs: Count = 4  # passes over what was collected
    target_kl: Positive | None = None
    activation: Literal["tanh", "relu"] = "tanh"
    hidden: tuple[Count, ...] = (64, 64)


@dataclass(frozen=True, kw_only=True)
class Tree(Config):
    steps: Count = 100_000  # environment steps
    env: EnvSection = field(default_factory=EnvSection)
    agent: Config = field(default_factory=AgentSection)  # the class comes from the base

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.env.id == "forbidden":
            raise UsageError("env: is not to be played")


def tree(**values: Any) -> Tree:
    return from_tree(Tree, values, Tree())


def test_only_the_given_values_differ_from_the_base() -> None:
    base = tree(steps=7, agent={"epochs": 9})
    changed = from_tree(Tree, {"agent": {"gamma": 0.5}}, base)
    assert changed.steps == 7
    assert changed.agent == AgentSection(epochs=9, gamma=0.5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"agent": {"lrr": 1}}, "agent.lrr: unknown key; did you mean 'lr'?"),
        ({"agnt": {}}, "agnt: unknown key; did you mean 'agent'?"),
        ({"agent": {"epochs": "many"}}, "agent.epochs = 'many': expected an integer"),
        ({"agent": {"epochs": 1.5}}, "agent.epochs = 1.5: expected an integer"),
        ({"steps": True}, "steps = True: expected an integer"),
        ({"agent": {"epochs": 0}}, "agent.epochs = 0: expected a finite number of at least 1"),
        ({"agent": {"gamma": math.nan}}, "agent.gamma = nan: expected a number"),
        ({"agent": {"gamma": 1.5}}, "agent.gamma = 1.5: expected a number from 0 to 1"),
        ({"agent": {"target_kl": -1}}, "agent.target_kl = -1: expected a finite number above 0"),
        ({"agent": {"hidden": [64, 0]}}, "agent.hidden[1] = 0: expected a finite number of at"),
        ({"agent": {"hidden": 64}}, "agent.hidden = 64: expected a list"),
        ({"agent": {"activation": "rely"}}, "did you mean 'relu'?"),
        ({"agent": {"lr": "fast"}}, "agent.lr = 'fast': expected a number or linear("),
        ({"agent": None}, "agent = None: expected a section with keys among lr, gamma"),
        ({"env": {"id": 5}}, "env.id = 5: expected a string"),
        ({"env": {"normalize": "off"}}, "env.normalize = 'off': expected true or false"),
        ({"env": {"kwargs": {1: 2}}}, "env.kwargs: the key 1 must be a string"),
        ({"env": {"_target_": "os.system"}}, "env._target_: unknown key"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_path(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        tree(**values)
    assert str(caught.value).startswith(message) or message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_names_the_file_that_it_came_from() -> None:
    with pytest.raises(UsageError, match=r"^run\.yaml: agent\.lrr: unknown key"):
        from_tree(Tree, {"agent": {"lrr": 1}}, Tree(), source="run.yaml")


def test_a_check_across_fields_is_reported_as_it_was_written() -> None:
    with pytest.raises(UsageError, match=r"^env: is not to be played$"):
        tree(env={"id": "forbidden"})


def test_a_million_may_be_written_as_a_float() -> None:
    assert tree(steps=1e6).steps == 1_000_000


def test_defaults_need_no_base_where_the_classes_have_them() -> None:
    assert from_tree(AgentSection, {"lr": "linear(1, 0, 10)"}).lr == Schedule(1.0, 0.0, 10)


TREES = st.builds(
    Tree,
    steps=st.integers(1, 10**12),
    env=st.builds(
        EnvSection,
        id=st.text(max_size=8),
        kwargs=st.dictionaries(
            st.text(max_size=4),
            st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6)),
            max_size=3,
        ),
        normalize=st.booleans(),
    ),
    agent=st.builds(
        AgentSection,
        lr=st.builds(Schedule, st.floats(0, 1), st.floats(0, 1), st.integers(1, 10**9)),
        gamma=st.floats(0, 1),
        target_kl=st.none() | st.floats(1e-30, 1e30),
        hidden=st.lists(st.integers(1, 512), max_size=3).map(tuple),
    ),
)


@settings(deadline=None, max_examples=60)
@given(TREES)
def test_a_tree_of_plain_values_makes_an_equal_configuration(config: Tree) -> None:
    assert from_tree(Tree, to_tree(config), Tree()) == config


def test_a_configuration_comes_back_from_its_file(tmp_path: Path) -> None:
    config = tree(env={"id": "1e-4", "kwargs": {"a": "no", "b": 1e-5, "c": None, "d": "null"}})
    path = tmp_path / "config.yaml"
    path.write_text(dump_yaml(to_tree(config)), "utf-8")
    assert from_tree(Tree, load_yaml(path), Tree()) == config


def test_what_no_file_can_hold_is_refused_by_its_path() -> None:
    config = Tree(env=EnvSection(kwargs={"maker": object()}))
    with pytest.raises(UsageError, match=r"^env\.kwargs\.maker = .*: a object cannot be written"):
        to_tree(config)


def test_the_help_explains_own_and_inherited_fields_by_their_comments() -> None:
    found = {row.flag: row for row in rows(Tree, Tree())}
    assert found["--agent.epochs"].comment == "passes over what was collected"
    assert found["--agent.lr"].comment == "step size, or a schedule of it"
    assert found["--agent.gamma"].accepts == "FLOAT 0..1"
    assert found["--no-env.normalize"].default == "on"
    assert len(found) == 10


@dataclass(frozen=True, kw_only=True)
class Exploring(Config):
    epsilon: Annotated[Schedule, Range(0, 1)] = Schedule(1.0, 0.05, 1_000)  # of random actions


def test_a_schedule_within_a_range_is_read_and_explained() -> None:
    (row,) = rows(Exploring)
    assert (row.accepts, row.default) == (
        "FLOAT|linear(a,b[,steps]) 0..1",
        "linear(1.0, 0.05, 1000)",
    )
    assert parse_flags(Exploring, ["--epsilon", "0.1"])[0].epsilon == Schedule(0.1)
    config = from_tree(Exploring, {"epsilon": "linear(1, 0.5, 9)"})
    assert config.epsilon == Schedule(1.0, 0.5, 9)
    assert to_tree(config) == {"epsilon": "linear(1.0, 0.5, 9)"}


def test_a_schedule_that_leaves_its_range_is_refused_by_its_path() -> None:
    for wrong in (2, "linear(1, 1.5, 9)"):
        with pytest.raises(UsageError, match=r"^agent\.epsilon = .*: expected a number from"):
            from_tree(Exploring, {"epsilon": wrong}, path="agent")


def test_the_help_fits_in_eighty_columns_and_begins_with_the_intro() -> None:
    text = describe(Tree, Tree(), intro="Train.", examples=[("operant train", "does")], width=80)
    assert text.startswith("Train.\n")
    assert "Clipped policy gradients." in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_section_without_a_docstring_borrows_none() -> None:
    assert "Base of every configuration" not in describe(Learning, width=80)


def test_the_help_shows_the_values_of_its_base() -> None:
    assert "[12345]" in describe(Tree, tree(steps=12_345), width=80)
