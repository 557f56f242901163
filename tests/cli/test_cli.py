from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from running import call, train

from operant import __version__
from operant.agents.registry import AGENTS
from operant.cli.main import COMMANDS
from operant.config import load_yaml
from operant.session.runner import Runner
from operant.session.view import View


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    train("train a2c --steps 60 --env.num-envs 2", root)
    return root


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_garbage_is_collected_while_training_and_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    begin = Runner.train

    def watched(runner: Runner, view: View | None = None) -> Runner:
        seen.append((gc.isenabled(), gc.get_freeze_count() > 0))
        return begin(runner, view)

    monkeypatch.setattr(Runner, "train", watched)
    train("train a2c --steps 20 --env.num-envs 2", tmp_path)
    assert seen == [(True, True)]
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, 0)
    assert call("train a2c --steps none").code == 2
    assert gc.isenabled()


HELP = [
    "--help",
    "-h",
    *(f"{name} --help" for name in COMMANDS),
    *(f"train {name} --help" for name in AGENTS),
]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("line", HELP)
def test_help_fits_a_screen_of_eighty_columns(line: str) -> None:
    result = call(line)
    assert (result.code, result.err) == (0, "")
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_begins_with_its_usage(name: str) -> None:
    assert call(f"{name} --help").out.startswith(f"operant {name} ")


@pytest.mark.parametrize("name", AGENTS)
def test_the_help_of_an_agent_explains_each_of_its_settings(name: str) -> None:
    said = call(f"train {name} --help").out
    config = AGENTS[name].config
    assert config.__doc__ is not None
    assert f"agent  {config.__doc__}" in said
    for field in fields(config):
        assert f"agent.{field.name.replace('_', '-')}" in said


def test_help_shows_the_defaults_of_the_recipe_and_of_flags_before_it() -> None:
    said = call("train ppo --env.id CartPole-v1 --agent.gamma 0.25 --quiet --help").out
    assert "Defaults are those of the recipe ppo-cartpole." in said
    assert "[0.25]" in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train ppo", "Defaults are those of the recipe ppo-cartpole."),
        ("train ppo --recipe none", "Defaults are ppo's own: no recipe is used."),
        ("train ppo --env.id Acrobot-v1", "Defaults are ppo's own: no recipe fits Acrobot-v1."),
        ("train --config FILE", "Defaults are those of the recipe ppo-cartpole."),
    ],
)
def test_help_says_whose_defaults_it_shows(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text("algorithm: ppo\n")
    assert said in call(f"{line} --help".replace("FILE", str(tmp_path / "file.yaml"))).out


@pytest.mark.parametrize("name", ["PPO", "Ppo", "ppo"])
def test_an_agent_may_be_written_in_capitals(name: str) -> None:
    result = call(f"train {name} --dry-run --threads 1")
    assert (result.code, result.out.splitlines()[0]) == (0, "algorithm: ppo")


def test_a_recipe_for_several_environments_asks_for_one() -> None:
    result = call("train ppo --recipe ppo-minatar --dry-run")
    assert result.code == 2
    assert "--recipe ppo-minatar: is for MinAtar/*; name one of them with --env.id" in result.err


def test_a_recipe_for_one_environment_brings_it_along() -> None:
    result = call("train sac --recipe sac-pendulum --dry-run")
    assert (result.code, "id: Pendulum-v1" in result.out) == (0, True)


def test_the_agent_is_no_flag() -> None:
    assert "--algorithm" not in call("train ppo --help").out
    for line in ("train ppo --algorithm dqn", "train ppo --algorithm=ppo"):
        result = call(line)
        assert result.code == 2
        assert "--algorithm: is no flag; name the agent first" in result.err


def test_without_arguments_it_prints_the_help() -> None:
    result = call([])
    assert result.code == 0
    assert all(f"operant {name}" in result.out for name in COMMANDS)


def test_the_version_is_that_of_the_package() -> None:
    assert call("--version").out == f"operant {__version__}\n"


def test_list_names_agents_recipes_and_environments() -> None:
    lines = call("list").out.splitlines()
    assert {"agents", "recipes", "environments"} <= set(lines)
    assert {"  CartPole-v1", "  Pendulum-v1"} <= set(lines)
    assert sum(line.startswith("  ppo") for line in lines) >= 4


@pytest.mark.parametrize("pattern", ["cartpole", "CART*-v1", "*tpole-v1*"])
def test_list_narrows_the_environments(pattern: str) -> None:
    said = call(["list", pattern]).out
    found = said[said.index("environments") :].split("\nmore")[0].splitlines()[1:]
    assert "  CartPole-v1" in found
    assert all("cartpole" in line.lower() for line in found)


def test_eval_prints_one_json_object(runs: Path) -> None:
    result = call("eval --json --episodes 3", runs)
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    names = ("mean_reward", "std_reward", "mean_ep_length", "episodes")
    assert list(found) == [f"eval/{name}" for name in names]
    assert found["eval/episodes"] == 3
    assert found["eval/mean_reward"] == found["eval/mean_ep_length"] >= 8  # one for each step


def test_eval_says_the_same_twice_and_another_seed_something_else(runs: Path) -> None:
    line = "eval --json --episodes 5"
    first, again, other = (call(x, runs).out for x in (line, line, f"{line} --seed 7"))
    assert first == again != other


def test_eval_in_words_names_the_environment(runs: Path) -> None:
    said = call("eval --episodes 2", runs).out
    assert said.startswith("CartPole-v1: ")
    assert said.endswith(" over 2 episodes\n")


def test_a_run_is_named_by_its_directory_or_its_name(runs: Path) -> None:
    (run,) = runs.iterdir()
    assert call(["eval", str(run), "--episodes", "1"]).code == 0
    assert call(["eval", run.name, "--episodes", "1"], runs).code == 0


def test_plot_draws_several_runs_into_one_picture(runs: Path, tmp_path: Path) -> None:
    (run,) = runs.iterdir()
    out = tmp_path / "both.png"
    result = call(["plot", str(run), str(run), "--out", str(out), "--metric", "eval/mean_reward"])
    assert (result.code, result.out) == (0, f"{out}\n")
    assert out.read_bytes()[:4] == b"\x89PNG"


def test_a_dry_run_prints_settings_network_and_memory_and_makes_nothing(tmp_path: Path) -> None:
    result = call("train dqn --seed 9 --network.hidden 32 --dry-run", tmp_path / "runs")
    assert (result.code, list(tmp_path.iterdir())) == (0, [])
    sections = ("observations", "actions", "network", "memory")
    assert all(f"\n{name}\n" in result.out for name in sections)
    (tmp_path / "config.yaml").write_text(result.out[: result.out.index("\nobservations")])
    tree = load_yaml(tmp_path / "config.yaml")
    assert (tree["algorithm"], tree["seed"], tree["network"]["hidden"]) == ("dqn", 9, [32])


def test_a_run_can_be_run_again_from_its_own_configuration(runs: Path, tmp_path: Path) -> None:
    (run,) = runs.iterdir()
    assert call(["train", "--config", str(run / "config.yaml"), "--quiet"], tmp_path).code == 0
    (again,) = tmp_path.iterdir()
    for name in ("config.yaml", "metrics.jsonl"):
        assert (again / name).read_bytes() == (run / name).read_bytes()


def test_what_a_run_prints_ends_with_commands_that_work(tmp_path: Path) -> None:
    said = call("train a2c --steps 20 --eval.episodes 1", tmp_path).out
    (run,) = tmp_path.iterdir()
    commands = said[said.index("try next:") :].splitlines()[1:]
    assert len(commands) == 3
    assert commands[0].split()[:3] == ["operant", "eval", str(run)]
    assert call([*commands[0].split()[1:-1], "1"]).code == 0


def test_as_a_module_in_a_process_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "operant", "train", "pppo"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "operant: error: agent 'pppo' is unknown; did you mean 'ppo'?\n"


def test_a_pipe_that_is_closed_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "operant", "--help"]
    result = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_named_run_is_evaluated_by_its_name_and_made_once(tmp_path: Path) -> None:
    train("train a2c --steps 20 --name mine", tmp_path)
    assert call("eval mine --episodes 1", tmp_path).code == 0
    again = call("train a2c --steps 20 --name mine", tmp_path)
    assert (again.code, len(list(tmp_path.iterdir()))) == (2, 1)
    assert f"name = 'mine': {tmp_path / 'mine'} exists already; choose another name" in again.err


def test_playing_is_suggested_only_where_something_can_be_seen(tmp_path: Path) -> None:
    for env_id, seen in (("operant/ConstantReward-v0", False), ("CartPole-v1", True)):
        line = f"train a2c --steps 20 --eval.episodes 1 --env.id {env_id}"
        said = call(line, tmp_path).out
        assert ("operant play" in said) is seen
        assert "operant eval" in said


def test_a_small_return_keeps_its_digits(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"mean_reward": -0.0412, "std_reward": 0.0, "mean_ep_length": 9.0}
    found = {f"eval/{name}": value for name, value in figures.items()}
    monkeypatch.setattr("operant.run.summary", lambda episodes: found)
    assert call("eval --episodes 1", runs).out == "CartPole-v1: -0.0412 ± 0.0 over 1 episodes\n"


def test_a_run_without_evaluation_ends_well(tmp_path: Path) -> None:
    line = "train ppo --env.id CartPole-v1 --steps 600 --eval.every none --quiet --compile off"
    result = call(f"{line} --runs {tmp_path}")
    assert result.code == 0
    assert "mean return" not in result.out
