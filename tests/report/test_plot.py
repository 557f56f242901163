from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from operant.core.errors import UsageError
from operant.report.plot import average, plot_runs


def made(root: Path, name: str, values: list[float | None], agent: str = "ppo") -> Path:
    run = root / name
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"agent": agent, "env": "CartPole-v1"}))
    lines = [
        {"step": 100 * i, "rollout/ep_rew_mean": v, "eval/mean_reward": v}
        for i, v in enumerate(values)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def test_the_average_is_taken_where_all_runs_have_been() -> None:
    first = (np.array([0, 10, 20]), np.array([0.0, 10.0, 20.0]))
    second = (np.array([5, 15]), np.array([15.0, 25.0]))
    (steps, mean), spread = average([first, second])
    assert steps.tolist() == [5, 10, 15]
    assert mean.tolist() == [10.0, 15.0, 20.0]
    np.testing.assert_allclose(spread, 10 / np.sqrt(2))


def test_curves_of_several_runs_become_a_picture(tmp_path: Path) -> None:
    runs = [made(tmp_path, f"r{i}", [1.0 * i, None, 9.0, 12.0]) for i in range(3)]
    runs.append(made(tmp_path, "other", [2.0, 3.0], agent="dqn"))
    plot_runs(runs, tmp_path / "new" / "curve.png")
    with Image.open(tmp_path / "new" / "curve.png") as image:
        assert image.size == (1080, 648)
        colours = image.convert("RGB").getcolors(1 << 20) or []
    assert {(0, 114, 178), (213, 94, 0)} <= {colour for _, colour in colours}


def test_a_run_with_one_point_can_be_drawn(tmp_path: Path) -> None:
    runs = [made(tmp_path, f"r{i}", [3.0]) for i in range(2)]
    plot_runs(runs, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5_000


def test_a_metric_that_is_not_there_gets_the_nearest_name(tmp_path: Path) -> None:
    run = made(tmp_path, "r", [1.0])
    with pytest.raises(UsageError, match=r"no values of 'rollout/ep_rew' yet; did you mean"):
        plot_runs([run], tmp_path / "x.png", "rollout/ep_rew")


@pytest.mark.parametrize("name", ["curve.nonsense", "run/metrics.jsonl/x.png"])
def test_a_picture_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    run = made(tmp_path, "run", [1.0])
    with pytest.raises(UsageError, match=r"cannot be written: "):
        plot_runs([run], tmp_path / name)


def test_nothing_to_plot_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name at least one run"):
        plot_runs([], tmp_path / "x.png")
