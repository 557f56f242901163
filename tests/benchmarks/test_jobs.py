"""What jobs share, without running one."""

from __future__ import annotations

import json
import time

import pytest
import rooted  # noqa: F401  # finds the package

from benchmarks.jobs import probe, scaling
from benchmarks.jobs.definitions import TRAINING, steady
from benchmarks.jobs.limit_train import updates
from benchmarks.jobs.slow_env import Slow
from benchmarks.works import WORKS


def asked(seconds: float = 10.0, warm: float = 2.0) -> probe.Arguments:
    return probe.Arguments(work="w", contender="operant", seconds=seconds, warm=warm)


def test_the_probe_measures_between_boundaries_after_the_warm_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 1.0, 3.0, 9.0, 14.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    listening = probe.Probe(asked())
    done = [listening(steps) for steps in (0, 100, 200, 700, 1300)]
    assert done == [False, False, False, False, True]
    assert json.loads(capsys.readouterr().out)["value"] == 1100 / 11  # from 3 s on


def test_the_probe_waits_for_the_steady_state(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    listening = probe.Probe(asked(warm=1.0), start=1000)
    for steps in (0, 500, 1000, 1500):
        listening(steps)
    assert listening.begun == (3.0, 1500)


def test_the_probe_tells_once(capsys: pytest.CaptureFixture[str]) -> None:
    listening = probe.Probe(asked(seconds=0.0, warm=0.0))
    assert [listening(n) for n in range(5)] == [False, False, True, True, True]
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_versions_are_told_of_what_is_installed() -> None:
    found = probe.versions("operant")
    assert {"operant", "torch"} <= set(found)
    assert "sb3" not in found


def test_cost_is_the_mean_of_a_call() -> None:
    assert 0.01 <= probe.cost(lambda: time.sleep(0.01), 0.05, warm=0.0) < 0.05


@pytest.mark.parametrize(
    ("work", "count"),
    [("ppo-pong", 16), ("ppo-cartpole", 16), ("ppo-halfcheetah", 320), ("dqn-pong", 1),
     ("rainbow-pong", 1), ("sac-halfcheetah", 1), ("td3-halfcheetah", 1)],
)  # fmt: skip
def test_gradient_steps_for_each_chunk(work: str, count: int) -> None:
    assert updates(*TRAINING[work]) == count


def test_every_training_work_is_defined() -> None:
    trained = {name for name, work in WORKS.items() if "operant_train" in work.jobs.values()}
    assert trained == set(TRAINING)


def test_replays_are_measured_once_learning_has_begun() -> None:
    starts = {name: steady(settings) for name, (_, settings) in TRAINING.items()}
    assert (starts["dqn-pong"], starts["sac-halfcheetah"], starts["ppo-pong"]) == (2000, 1000, 0)


@pytest.mark.parametrize("sleeps", [False, True])
def test_a_slow_environment_takes_its_time(sleeps: bool) -> None:
    env, begin = Slow(20.0, sleeps), time.perf_counter()
    env.step(0)
    assert time.perf_counter() - begin >= 0.02


def test_a_computing_environment_uses_the_processor_and_a_sleeping_one_does_not() -> None:
    spent = []
    for sleeps in (False, True):
        env, begin = Slow(20.0, sleeps), time.thread_time()
        env.step(0)
        spent.append(time.thread_time() - begin)
    assert spent[0] >= 0.02
    assert spent[1] < 0.01


def rates(**by_sampler: list[float]) -> scaling.Rates:
    return {name: dict(zip((1, 8, 32), found, strict=True)) for name, found in by_sampler.items()}


def test_a_speed_up_compares_the_same_number_of_environments() -> None:
    points = {"1 ms computing": rates(serial=[1, 10, 10], parallel=[9, 18, 20], auto=[9, 15, 16])}
    assert scaling.speedups(points) == {"1 ms computing": 1.9}


def test_the_speed_up_of_sleepers_compares_thirty_two_with_one() -> None:
    points = {"10 ms sleeping": rates(serial=[90, 90, 90], auto=[90, 700, 2700])}
    assert scaling.speedups(points) == {"10 ms sleeping": 30.0}


def test_steadiness_is_the_worst_fall_from_the_best_so_far() -> None:
    points = {"falls": rates(auto=[20, 15, 12]), "grows": rates(auto=[10, 11, 22])}
    assert scaling.steadiness(points) == {"falls": 0.6, "grows": 1.1}
