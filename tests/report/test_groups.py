"""Which runs belong together, and what tells groups apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from logged_runs import logged

from operant.core.errors import UsageError
from operant.report.groups import find_runs, group_runs

RETURN = "eval/mean_reward"


def labels(runs: list[Path]) -> list[tuple[str, int]]:
    return [(group.label, len(group.members)) for group in group_runs(runs, RETURN)]


def test_runs_that_differ_in_a_setting_are_groups_named_by_it(tmp_path: Path) -> None:
    runs = [
        logged(tmp_path / f"{lr}-{seed}", [1.0], seed=seed, agent={"lr": lr})
        for lr in (0.001, 0.0003)
        for seed in (1, 2, 3)
    ]
    assert labels(runs) == [("lr 0.001", 3), ("lr 0.0003", 3)]


@pytest.mark.parametrize(
    "settings",
    [
        {"device": "cuda"},
        {"threads": 4},
        {"compile": "on"},
        {"sampler": "parallel"},
        {"log_every": 7},
        {"eval": {"every": None, "episodes": 3}},
        {"checkpoint": {"seconds": 1.0}},
        {"env": {"manager": "subproc", "workers": 2}},
    ],
)
def test_what_does_not_change_learning_does_not_part_runs(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    runs = [logged(tmp_path / "a", [1.0]), logged(tmp_path / "b", [1.0], seed=2, **settings)]
    assert labels(runs) == [("ppo", 2)]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sampler": "async"}, ["sampler unset", "sampler async"]),
        ({"steps": 2_000}, ["steps 1000", "steps 2000"]),
        ({"network": {"hidden": [32]}}, ["hidden 64,64", "hidden 32"]),
        ({"network": {"separate": True}}, ["separate none", "separate true"]),
        ({"env": {"kwargs": {"gravity": 1.5}}}, ["gravity unset", "gravity 1.5"]),
        (
            {"agent": {"lr": 0.1234567, "gamma": 0.9}},
            ["lr 0.001, gamma 0.99", "lr 0.1234567, gamma 0.9"],
        ),
    ],
)
def test_labels_say_what_differs(
    settings: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    runs = [logged(tmp_path / "a", [1.0]), logged(tmp_path / "b", [1.0], **settings)]
    assert labels(runs) == [(word, 1) for word in words]


def test_a_setting_whose_last_name_is_not_clear_has_its_section(tmp_path: Path) -> None:
    other: dict[str, Any] = {"agent": {"normalize": True}, "network": {"normalize": True}}
    runs = [
        logged(tmp_path / "a", [1.0], agent={"normalize": False}),
        logged(tmp_path / "b", [1.0], **other),
    ]
    assert labels(runs)[1][0] == "agent.normalize true, network.normalize true"


def test_agents_are_named_if_they_differ_and_their_settings_only_among_themselves(
    tmp_path: Path,
) -> None:
    runs = [
        logged(tmp_path / "a", [1.0]),
        logged(tmp_path / "b", [1.0], agent={"lr": 0.1}),
        logged(tmp_path / "c", [1.0], algorithm="dqn", agent={"lr": 0.2, "double": True}),
    ]
    assert [label for label, _ in labels(runs)] == ["ppo, lr 0.001", "ppo, lr 0.1", "dqn"]


def test_a_label_names_the_first_settings_of_many_and_stays_clear(tmp_path: Path) -> None:
    runs = [
        logged(tmp_path / name, [1.0], extra={f"x{i}": int(i == at) for i in range(9)})
        for name, at in (("a", 0), ("b", 7), ("c", 8))
    ]
    zeros = "x0 0, x1 0, x2 0, x3 0, x4 0"
    assert [label for label, _ in labels(runs)] == [
        "x0 1, x7 0, x8 0",
        "x0 0, x7 1, x8 0",
        "x0 0, x7 0, x8 1",
    ]
    both = {f"x{i}": i for i in range(1, 9)}
    runs += [logged(tmp_path / "d", [1.0], extra={**both, "x0": 0, "x8": 0})]
    assert labels(runs)[1][0] == f"{zeros}, and 4 more"
    assert labels(runs)[2][0] == f"{zeros}, and 4 more (c)"


def test_environments_are_apart_and_not_part_of_labels(tmp_path: Path) -> None:
    runs = [
        logged(tmp_path / f"{env}{lr}", [1.0], env={"id": env}, agent={"lr": lr})
        for lr in (0.1, 0.2)
        for env in ("CartPole-v1", "Acrobot-v1")
    ]
    found = [(group.env, group.label) for group in group_runs(runs, RETURN)]
    assert found == [
        (env, f"lr {lr}") for env in ("CartPole-v1", "Acrobot-v1") for lr in (0.1, 0.2)
    ]


def test_a_schedule_that_is_a_share_is_the_same_in_a_longer_run(tmp_path: Path) -> None:
    runs = [
        logged(
            tmp_path / str(steps),
            [1.0],
            steps=steps,
            agent={"lr": f"linear(0.1, 0.0, 100% of {steps})"},
        )
        for steps in (100, 200)
    ]
    assert [label for label, _ in labels(runs)] == ["steps 100", "steps 200"]


def test_of_one_seed_only_the_longest_run_counts(tmp_path: Path) -> None:
    runs = [logged(tmp_path / "short", [1.0]), logged(tmp_path / "long", [1.0, 2.0])]
    with pytest.warns(UserWarning, match=r"2 runs have the same settings and seed 1; only .*long"):
        (group,) = group_runs(runs, RETURN)
    assert [member.run.name for member in group.members] == ["long"]


def test_a_run_without_values_is_left_out_and_named(tmp_path: Path) -> None:
    runs = [logged(tmp_path / "a", [1.0]), logged(tmp_path / "b", [None], seed=2)]
    with pytest.warns(UserWarning, match=r"b: has no values of 'eval/mean_reward' yet"):
        (group,) = group_runs(runs, RETURN)
    assert len(group.members) == 1


def test_a_directory_stands_for_the_runs_in_it(tmp_path: Path) -> None:
    runs = [logged(tmp_path / "sweep" / name, [1.0]) for name in ("a", "b")]
    (tmp_path / "sweep" / "sweep.json").write_text("{}")
    assert find_runs(["sweep"], tmp_path) == runs
    pattern = [str(path) for path in sorted((tmp_path / "sweep").iterdir())]
    assert find_runs([*pattern, str(tmp_path / "sweep")], tmp_path) == runs
    assert find_runs(["a"], tmp_path / "sweep") == runs[:1]


def test_a_name_that_means_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"empty: is not a run"):
        find_runs([str(tmp_path / "empty")], tmp_path)
    with pytest.raises(UsageError, match=r"file: holds no run; name the directory of one"):
        find_runs([str(tmp_path / "file")], tmp_path)
