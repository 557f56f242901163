"""Every fault scenario that one machine can have, the tests that play it, and their table.

`python tests/faults/scenarios.py` runs these tests, the slow ones too, and writes
`docs/faults.md` from what came of them; given reports of pytest, `--junitxml`, from those.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
SOAK = Path(__file__).with_name("soak.json")
WORKERS, VALUES = "faults/test_worker_faults.py::", "faults/test_value_faults.py::"
RUNS, HOSTILE = "faults/test_run_faults.py::", "faults/test_hostile_runs.py::"
SAVES, MACHINE = "faults/test_crash_points.py::", "faults/test_machine_faults.py::"
TORN, RESUME = "session/checkpoint/test_checkpoint_attacks.py::", "session/test_resume.py::"
INPUT, DISK = "session/test_bad_input.py::", "session/test_runner.py::"
ELSEWHERE = range(26, 35)  # scenarios of several machines, ranks or actors


class Scenario(NamedTuple):
    """What goes wrong, what is expected then, and the tests of it, below `tests/`."""

    number: int
    fault: str
    expected: str
    tests: tuple[str, ...]
    within: float | None = None  # seconds in which it is noticed; None: before or when it is used
    when: str = ""  # it is noticed, where that is no matter of seconds


SCENARIOS = (
    Scenario(
        1,
        "a worker is killed in the middle of a step",
        "it is replaced, its rows are not valid, the run reaches its last step and counts 1",
        (f"{WORKERS}test_a_killed_worker_is_replaced_and_counted",),
        within=2,
    ),
    Scenario(
        2,
        "a worker crashes: segmentation fault, or an exit from C",
        "as 1; the warning names the signal or the exit code",
        (f"{WORKERS}test_a_crash_is_named_by_its_signal_or_exit_code",),
        within=2,
    ),
    Scenario(
        3,
        "a worker dies again and again",
        "after `env.max_restarts` the run ends with exit code 1, and does not loop",
        (f"{WORKERS}test_a_worker_that_always_dies_ends_the_run",),
        within=10,
    ),
    Scenario(
        4,
        "an environment raises in its constructor, `reset` or `step`",
        "the run ends with one line that names it; the traceback is in `error.txt`",
        (
            f"{WORKERS}test_an_exception_of_an_environment_ends_the_run_with_its_place",
            f"{WORKERS}test_a_constructor_that_raises_is_refused_before_there_is_a_run",
        ),
        within=2,
    ),
    Scenario(
        5,
        "an environment hangs in `step`, `reset` or `close`, or its process is stopped",
        "after `env.step_timeout`, 2 s here, the worker is replaced; closing takes 5 s at most",
        (
            f"{WORKERS}test_a_worker_that_hangs_is_replaced_after_the_timeout",
            f"{WORKERS}test_a_worker_that_hangs_while_closing_is_killed",
        ),
        within=6,
    ),
    Scenario(
        6,
        "environments are slow at random",
        "no worker is replaced, and training goes on",
        (f"{WORKERS}test_slow_steps_are_not_taken_for_a_hang",),
        when="never",
    ),
    Scenario(
        7,
        "an observation is NaN or infinite",
        "the run ends with the environment, the step and the field; what was saved is finite",
        (f"{VALUES}test_an_observation_that_is_no_number_ends_the_run_and_spoils_no_checkpoint",),
        when="at that step",
    ),
    Scenario(
        8,
        "a reward is NaN, None or an array; or an integer or a bool",
        "the run ends, naming the place; integers and bools are numbers",
        (
            f"{VALUES}test_a_reward_that_is_no_number_ends_the_run",
            f"{VALUES}test_whole_numbers_and_bools_are_rewards",
        ),
        when="at that step",
    ),
    Scenario(
        9,
        "an observation has the wrong shape or type, is None, or lacks a key",
        "the run ends at the first one, naming the place",
        (
            f"{VALUES}test_an_observation_that_breaks_its_space_ends_the_run",
            f"{VALUES}test_a_missing_key_is_named",
        ),
        when="at that step",
    ),
    Scenario(
        10,
        "a loss or gradient becomes NaN",
        "the run ends with the metric and the step; what is broken is not saved",
        (f"{VALUES}test_learning_that_diverges_ends_the_run_and_keeps_the_last_good_checkpoint",),
        when="at that update",
    ),
    Scenario(
        11,
        "an action is outside of its space, or there are too few",
        "an error before any environment steps",
        (f"{VALUES}test_actions_that_do_not_fit_reach_no_environment",),
        when="before the step",
    ),
    Scenario(
        12,
        "stepping after closing, closing twice, resetting twice",
        "a clear error; nothing; a new episode",
        (f"{VALUES}test_using_environments_in_the_wrong_order_is_an_error_or_nothing",),
        when="at the call",
    ),
    Scenario(
        13,
        "the run is killed at random moments",
        "resuming ends bit for bit as if it never was; no process and no memory is left",
        (
            f"{RUNS}test_a_killed_run_leaves_no_process_and_is_resumed",
            f"{RUNS}test_a_run_killed_twenty_times_ends_as_if_it_never_was",
        ),
        within=5,
    ),
    Scenario(
        14,
        "the run dies before each file operation of a save, or in the middle of a write",
        "the checkpoint before or the new one loads, never a mix",
        (
            f"{SAVES}test_a_crash_before_any_operation_leaves_a_whole_checkpoint",
            f"{SAVES}test_a_crash_before_anything_python_does_to_files_leaves_a_whole_checkpoint",
            f"{SAVES}test_a_write_cut_short_leaves_a_whole_checkpoint",
        ),
        when="when it is loaded",
    ),
    Scenario(
        15,
        "the newest checkpoint is cut short, empty or lacks a file",
        "it is refused by name, and the one before it used",
        (
            f"{TORN}test_a_file_cut_short_is_found_and_the_one_before_is_used",
            f"{TORN}test_a_missing_file_is_named",
            f"{RESUME}test_a_torn_checkpoint_is_refused_by_name_and_the_one_before_it_used",
        ),
        when="when it is loaded",
    ),
    Scenario(
        16,
        "a bit of a checkpoint is flipped",
        "as 15",
        (f"{TORN}test_a_flipped_bit_is_found_and_the_one_before_is_used",),
        when="when it is loaded",
    ),
    Scenario(
        17,
        "every checkpoint is broken",
        "resuming stops with an error, and never begins at step 0",
        (f"{RESUME}test_with_every_checkpoint_torn_nothing_begins_again_in_silence",),
        when="when it is loaded",
    ),
    Scenario(
        18,
        "the disk is full while saving",
        "older checkpoints stay, training goes on with a warning; three in a row end the run",
        (
            f"{TORN}test_a_full_disk_costs_only_the_checkpoint_that_did_not_fit",
            f"{DISK}test_a_disk_that_is_full_for_a_while_costs_one_checkpoint",
            f"{DISK}test_a_last_checkpoint_that_cannot_be_saved_is_no_success",
        ),
        when="at that save",
    ),
    Scenario(
        19,
        "runs cannot be written: read-only disk, no permission, a file in the way",
        "an error before training; runs that are there can be read",
        (
            f"{INPUT}test_a_disk_that_cannot_be_written_takes_no_run_but_shows_those_it_has",
            f"{INPUT}test_a_place_for_runs_that_cannot_be_written_is_refused",
        ),
        when="before training",
    ),
    Scenario(
        20,
        "Ctrl-C or SIGTERM once, twice, and during a save",
        "saved, exit code 130 or 143; the second one leaves at once; resumed bit for bit",
        (f"{RUNS}test_a_signal_at_any_moment_ends_the_run_resumably",),
        within=2,
    ),
    Scenario(
        21,
        "a run is stopped and resumed",
        "log and state are bit for bit those of a run that was never stopped",
        (f"{RESUME}test_a_run_stopped_and_resumed_is_as_if_never_stopped",),
        when="never",
    ),
    Scenario(
        22,
        "environments cannot be saved",
        "resuming works, the manifest says why it is not exact, episodes have new seeds",
        (
            f"{RESUME}test_what_cannot_be_saved_exactly_says_so_and_goes_on",
            "envs/test_snapshot.py::test_what_cannot_be_restored_begins_anew_under_a_new_seed",
        ),
        when="before training",
    ),
    Scenario(
        23,
        "an agent with a replay buffer is resumed",
        "buffer, priorities, counters and schedules are the same; as many updates are made",
        (f"{RUNS}test_a_resumed_replay_agent_has_the_same_buffer_and_owes_no_more_updates",),
        when="never",
    ),
    Scenario(
        24,
        "the configuration was changed between",
        "resuming is refused, and the run stays as it is",
        (f"{RUNS}test_a_run_whose_network_was_changed_is_not_resumed",),
        when="before training",
    ),
    Scenario(
        25,
        "two processes write to one run",
        "the second is refused with the id of the first",
        (
            f"{RUNS}test_a_second_process_is_refused",
            f"{RESUME}test_a_run_in_use_is_not_resumed",
        ),
        when="before training",
    ),
    Scenario(
        35,
        "a stranger connects",
        "nothing listens on the network; sockets of workers are in a directory of the user's",
        (f"{MACHINE}test_nothing_listens_on_the_network",),
        when="never",
    ),
    Scenario(
        36,
        "a checkpoint holds code, paths, links, pipes or a header of gigabytes",
        "refused without side effect, by every command",
        (
            f"{TORN}test_a_pickle_in_place_of_a_file_never_runs",
            f"{TORN}test_a_manifest_that_names_other_files_is_refused",
            f"{TORN}test_a_link_in_place_of_a_file_is_refused",
            f"{TORN}test_a_pipe_in_place_of_a_file_does_not_hang",
            f"{TORN}test_a_header_that_claims_gigabytes_is_refused",
            f"{HOSTILE}test_a_hostile_run_does_nothing_to_any_command",
        ),
        when="when it is loaded",
    ),
    Scenario(
        37,
        "a configuration holds code",
        "refused without running it",
        (f"{HOSTILE}test_a_configuration_runs_no_code",),
        when="when it is read",
    ),
    Scenario(
        38,
        "a configuration is malformed",
        "one line that names the key, the value and what was expected; exit code 2",
        (
            f"{INPUT}test_a_wrong_file_is_refused_with_its_name_and_place",
            f"{INPUT}test_a_wrong_command_is_refused_in_one_line_and_leaves_nothing",
        ),
        when="before training",
    ),
    Scenario(
        39,
        "no such environment, a missing package, actions that an agent cannot take",
        "one line with the remedy",
        (f"{MACHINE}test_what_cannot_be_trained_is_refused_in_one_line",),
        when="before training",
    ),
    Scenario(
        40,
        "an environment takes all memory",
        "the error names it; killed by the system, as 1, with the hint that memory ran out",
        (
            f"{WORKERS}test_an_environment_that_takes_all_memory_is_named",
            f"{WORKERS}test_a_killed_worker_is_replaced_and_counted",
        ),
        within=10,
    ),
    Scenario(
        41,
        "`/dev/shm` is too small",
        "no matter: shared memory is anonymous",
        (f"{MACHINE}test_a_tiny_dev_shm_is_no_matter",),
        when="never",
    ),
    Scenario(
        42,
        "the clock jumps; the disk is slow",
        "the same is learned; saving takes its share of the time and no more",
        (
            f"{MACHINE}test_a_clock_that_jumps_changes_nothing",
            f"{MACHINE}test_a_slow_disk_is_written_to_less_often",
        ),
        when="never",
    ),
    Scenario(
        43,
        "processes are forked while torch has threads",
        "impossible: workers come from a fork server that never computes",
        (f"{MACHINE}test_workers_are_never_forked_from_a_process_with_threads",),
        when="never",
    ),
    Scenario(
        44,
        "a run of many hours",
        "memory, descriptors, threads, shared memory and temporary files do not grow",
        (f"{MACHINE}test_nothing_grows_under_any_sampler",),
        when="never",
    ),
)
BY_NUMBER = {one.number: one for one in SCENARIOS}

INTRO = """\
# Faults

What happens when something breaks, is killed or is hostile. This page is generated by `python
tests/faults/scenarios.py`, which runs the tests that it names, also those that take minutes.

The faults come from one environment, `tests/faults/fault_env.py`, which goes wrong in a chosen
way (killed, crashed, raising, hanging, stopped, stalling, NaN, wrong shape or type, None,
leaking, printing, forking) at a chosen step, in a chosen environment, or with a probability, and
notes each time in a file that outlives it. After every test in `tests/faults` no process, no
shared memory and no open file may be left.

*Noticed after* is the longest time that was measured from the fault until it was noticed, and in
brackets the limit that the test holds it to; where there is no number, the moment. The machine
was busy with other work meanwhile.

"""
SOAK_INTRO = """
## Soak

`python tests/faults/soak.py serial parallel alternating async --minutes 30` trains PPO on
CartPole under the four samplers at the same time, with an evaluation every 20,000 steps and a
checkpoint every five seconds, and looks at each run with all its processes every five seconds.
*First* and *last* are medians of the first and the last quarter of the time, without the first
fifth; the slope is that of a line through all of it, per hour.

"""


class Outcome(NamedTuple):
    """What came of the tests of a scenario."""

    passed: int
    failed: int
    skipped: int
    seconds: float | None  # the longest time to notice

    def __str__(self) -> str:
        if self.failed or not self.passed:
            return "FAILED" if self.failed else "not run"
        return f"passed ({self.passed})" + (f", {self.skipped} skipped" if self.skipped else "")


def outcomes(reports: list[Path]) -> dict[int, Outcome]:
    """What reports of pytest say of each scenario."""
    cases = [case for report in reports for case in ElementTree.parse(report).iter("testcase")]
    return {one.number: _outcome(one, cases) for one in SCENARIOS}


def _outcome(scenario: Scenario, cases: list[ElementTree.Element]) -> Outcome:
    names = {test.partition("::")[2] for test in scenario.tests}
    ours = [case for case in cases if case.get("name", "").partition("[")[0] in names]
    skipped = sum(case.find("skipped") is not None for case in ours)
    failed = sum(any(case.find(x) is not None for x in ("failure", "error")) for case in ours)
    values = [p.get("value", "") for case in ours for p in case.iter("property")]
    times = [float(value) for value in values]
    return Outcome(len(ours) - skipped - failed, failed, skipped, max(times, default=None))


def page(found: dict[int, Outcome]) -> str:
    """The whole of `faults.md`."""
    head = ["#", "what goes wrong", "what is expected", "outcome", "noticed after", "tests"]
    lines = [_row(head), _row(["---"] * len(head))]
    for one in SCENARIOS:
        cells = [str(one.number), one.fault, one.expected, str(found[one.number])]
        lines.append(_row([*cells, _noticed(one, found[one.number]), "<br>".join(_shown(one))]))
    fine = sum(str(outcome).startswith("passed") for outcome in found.values())
    numbers = f"{ELSEWHERE[0]} to {ELSEWHERE[-1]}"
    counted = f"{fine} of {len(SCENARIOS)} scenarios pass. Numbers {numbers} are about several "
    counted += "ranks, actors or machines, which there are none of yet.\n"
    return INTRO + counted + "\n" + "\n".join(lines) + "\n" + _soak()


def _shown(scenario: Scenario) -> list[str]:
    return [f"`{test}`" for test in scenario.tests]


def _noticed(scenario: Scenario, outcome: Outcome) -> str:
    if scenario.within is None:
        return scenario.when
    measured = "–" if outcome.seconds is None else f"{outcome.seconds:.2f} s"
    return f"{measured} (< {scenario.within:g} s)"


def _soak() -> str:
    """The tables of the last soak, if there was one."""
    if not SOAK.exists():
        return ""
    runs = json.loads(SOAK.read_text())
    names = ("memory", "descriptors", "threads", "processes", "shared", "files")
    head = ["sampler", "minutes", "steps", "MiB", *names[1:4], "shared memory", "temporary files"]
    lines = [_row(head), _row(["---"] * len(head))]
    for run in runs:
        about = [run["sampler"], f"{run['minutes']:g}", f"{run['steps']:,}"]
        lines.append(_row([*about, *(_levels(run[name]) for name in names)]))
    left = sum(run["processes left"] + run["files left"] for run in runs)
    ended = (
        f"\nA cell is: first → last (slope per hour). After SIGTERM {left or 'no'} processes or "
    )
    return SOAK_INTRO + "\n".join(lines) + "\n" + ended + "temporary files were left.\n"


def _levels(figures: dict[str, float]) -> str:
    slope = figures["slope"] + 0.0
    return f"{figures['first']:g} → {figures['last']:g} ({slope:+.2f})"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def run_all(report: Path, *more: str) -> int:
    """Run the tests of every scenario; the exit code of pytest."""
    names = dict.fromkeys(f"tests/{test}" for one in SCENARIOS for test in one.tests)
    words = ["-m", "slow or not slow", "-o", "junit_family=xunit1", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *words, "--timeout=1800", *more, *names]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    given = [Path(word) for word in sys.argv[1:] if word.endswith(".xml")]
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory) / "report.xml"
        code = 0 if given else run_all(where, *sys.argv[1:])
        PAGE.write_text(page(outcomes(given or [where])))
    sys.exit(code)
