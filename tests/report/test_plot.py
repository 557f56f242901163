"""Learning curves: what is drawn of several runs, and where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logged_runs import logged
from matplotlib.figure import Figure
from PIL import Image

from operant.core.errors import UsageError
from operant.report.groups import group_runs
from operant.report.plot import MAX_POINTS, draw_groups, on_one_grid, plot_runs

RETURN = "rollout/ep_rew_mean"


def drawn(runs: list[Path]) -> Figure:
    return draw_groups(group_runs(runs, RETURN), RETURN)


def legend(figure: Figure, panel: int = 0) -> list[str]:
    found = figure.axes[panel].get_legend()
    assert found is not None
    return [text.get_text() for text in found.get_texts()]


def test_runs_are_interpolated_where_all_of_them_have_been() -> None:
    first = (np.array([0, 10, 20]), np.array([0.0, 10.0, 20.0]))
    second = (np.array([5, 15]), np.array([15.0, 25.0]))
    steps, values = on_one_grid([first, second])
    assert steps.tolist() == [5, 10, 15]
    assert values.tolist() == [[5.0, 10.0, 15.0], [15.0, 20.0, 25.0]]


def test_a_long_grid_is_thinned_and_keeps_its_ends() -> None:
    long = (np.arange(5_000), np.arange(5_000.0))
    steps, values = on_one_grid([long, long])
    assert (len(steps), steps[0], steps[-1]) == (MAX_POINTS, 0, 4_999)
    assert values[0].tolist() == steps.tolist()


def test_seeds_become_their_interquartile_mean_with_a_band(tmp_path: Path) -> None:
    ends = (0.0, 2.0, 4.0, 100.0)
    runs = [logged(tmp_path / f"{i}", [0.0, end], seed=i) for i, end in enumerate(ends)]
    (axes,) = drawn(runs).axes
    middle = next(line for line in axes.lines if not str(line.get_label()).startswith("_"))
    assert np.asarray(middle.get_ydata()).tolist() == [0.0, 3.0]
    (band,) = axes.collections
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert (heights.min(), heights.max()) == (0.0, 100.0)
    assert legend(drawn(runs)) == ["ppo (n=4)"]


def test_the_mean_ends_with_the_shortest_run(tmp_path: Path) -> None:
    runs = [logged(tmp_path / "a", [1.0, 2.0, 3.0]), logged(tmp_path / "b", [1.0, 2.0], seed=2)]
    (axes,) = drawn(runs).axes
    middle = next(line for line in axes.lines if line.get_label() == "ppo (n=2)")
    assert np.asarray(middle.get_xdata()).tolist() == [0, 100]
    (alone,) = [line for line in axes.lines if line is not middle]
    assert np.asarray(alone.get_xydata()).tolist() == [[100, 2.0], [200, 3.0]]


def test_one_run_alone_has_its_evaluations_and_no_band(tmp_path: Path) -> None:
    figure = drawn([logged(tmp_path / "a", [1.0, 2.0])])
    assert not figure.axes[0].collections
    assert legend(figure) == ["ppo (n=1)", "evaluation"]


def test_every_environment_has_its_panel_and_a_label_one_colour(tmp_path: Path) -> None:
    runs = [
        logged(tmp_path / f"{env}{lr}", [1.0, 2.0], env={"id": env}, agent={"lr": lr})
        for env in ("CartPole-v1", "Acrobot-v1")
        for lr in (0.1, 0.2)
    ]
    figure = drawn(runs)
    assert [axes.get_title() for axes in figure.axes] == ["CartPole-v1", "Acrobot-v1"]
    assert legend(figure) == legend(figure, 1) == ["lr 0.1 (n=1)", "lr 0.2 (n=1)", "evaluation"]
    first, second = ([line.get_color() for line in axes.lines] for axes in figure.axes)
    assert first == second


def test_runs_with_no_step_in_common_are_drawn_alone(tmp_path: Path) -> None:
    runs = [
        logged(tmp_path / "a", [1.0, 2.0], at=[0, 10]),
        logged(tmp_path / "b", [1.0, 2.0], at=[50, 60], seed=2),
    ]
    plot_runs(runs, tmp_path / "curve.png")
    assert len(drawn(runs).axes[0].lines) == 3


def test_curves_of_several_runs_become_a_picture(tmp_path: Path) -> None:
    runs = [logged(tmp_path / f"r{i}", [1.0 * i, None, 9.0, 12.0], seed=i) for i in range(3)]
    runs.append(logged(tmp_path / "other", [2.0, 3.0], algorithm="dqn"))
    plot_runs(runs, tmp_path / "new" / "curve.png")
    with Image.open(tmp_path / "new" / "curve.png") as image:
        assert image.size == (1080, 648)
        colours = image.convert("RGB").getcolors(1 << 20) or []
    assert {(0, 114, 178), (213, 94, 0)} <= {colour for _, colour in colours}


def test_a_run_with_one_point_can_be_drawn(tmp_path: Path) -> None:
    runs = [logged(tmp_path / f"r{i}", [3.0], seed=i) for i in range(2)]
    plot_runs(runs, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5_000


def test_a_metric_that_is_not_there_gets_the_nearest_name(tmp_path: Path) -> None:
    run = logged(tmp_path / "r", [1.0])
    with pytest.raises(UsageError, match=r"no values of 'rollout/ep_rew' yet; did you mean"):
        plot_runs([run], tmp_path / "x.png", "rollout/ep_rew")


@pytest.mark.parametrize("name", ["curve.nonsense", "run/metrics.jsonl/x.png"])
def test_a_picture_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    run = logged(tmp_path / "run", [1.0])
    with pytest.raises(UsageError, match=r"cannot be written: "):
        plot_runs([run], tmp_path / name)


def test_nothing_to_plot_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name at least one run"):
        plot_runs([], tmp_path / "x.png")
