from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gs
from running import Result, call, train

from operant.agents import DQNConfig, PPOConfig, SACConfig
from operant.core.errors import UsageError
from operant.envs.env_settings import EnvConfig
from operant.session.run_settings import RunConfig, run_config


def refused(result: Result, code: int, *parts: str) -> None:
    """One line on standard error with these parts, and nothing else said."""
    assert (result.code, result.out) == (code, ""), result.err
    assert result.err.startswith("operant: error: ")
    assert result.err.count("\n") == 1
    for part in parts:
        assert part in result.err


WORDS = [
    ("train", "which agent? expected its name"),
    ("train pp", "agent 'pp' is unknown; did you mean 'ppo'?"),
    ("trian ppo", "command 'trian' is unknown; did you mean 'train'?"),
    ("--verbose", "command '--verbose' is unknown"),
    ("train ppo now", "'now': expected a flag"),
    ("train ppo --env.id CartPol-v1", "env.id = 'CartPol-v1': no such environment; did you mean"),
    ("train ppo --env.id CartPole-v7", "did you mean 'CartPole-v1'?"),
    ("train ppo --env.id nowhere:CartPole-v1", "module 'nowhere' cannot be imported"),
    ("train ppo --env.id ..:x", "env.id = '..:x': cannot be imported"),
    ("train ppo --env.id FrozenLake-v1 --env.kwargs map_name=9x9", "cannot be made: KeyError"),
    ("train ppo --env.kwargs length=3", "env.id = 'CartPole-v1': cannot be made with its kwargs"),
    ("train ppo --env.kwargs length", "--env.kwargs length: expected name=value"),
    ("train ppo --env.hide 9", "env.hide = (9,): expected indices from 0 to 3"),
    ("train ppo --env.manager native --env.id Acrobot-v1", "env.manager = 'native': Acrobot-v1"),
    ("train ppo --env.manager fast", "env.manager = 'fast': expected one of"),
    ("train dqn --env.id Pendulum-v1", "dqn on Pendulum-v1: action 'action' is Box(-1.0, 1.0"),
    ("train ppo --agent.lrr 1", "--agent.lrr: unknown flag; did you mean '--agent.lr'?"),
    ("train ppo --lr 1", "--lr: unknown flag; did you mean '--agent.lr'?"),
    ("train ppo --confg x", "--confg: unknown flag; did you mean '--config'?"),
    ("train ppo --agent.lr", "--agent.lr: a value is missing"),
    ("train ppo --agent.lr fast", "agent.lr = 'fast': expected a number or linear("),
    ("train ppo --agent.lr -1", "agent.lr = -1: expected a finite number of at least 0"),
    ("train ppo --agent.lr nan", "agent.lr = nan: expected a finite number of at least 0"),
    ("train ppo --agent.gamma nan", "agent.gamma = nan: expected a number"),
    ("train ppo --agent.gamma 1.01", "agent.gamma = 1.01: expected a number from 0 to 1"),
    ("train ppo --steps 0", "steps = 0: expected a finite number of at least 1"),
    ("train ppo --steps inf", "steps = inf: expected a finite number of at least 1"),
    ("train ppo --seed -1", "seed = -1: expected a finite number of at least 0"),
    ("train ppo --seed 1.5", "seed = 1.5: expected an integer"),
    ("train ppo --device gpu", "device = 'gpu': expected auto, cpu, cuda"),
    ("train ppo --threads 99999", "threads = 99999: expected a number from 0 to 1024"),
    ("train ppo --checkpoint.seconds 0", "checkpoint.seconds = 0: expected a finite number"),
    ("train ppo --network.activation than", "expected one of 'tanh', 'relu'"),
    ("train ppo --network.hidden 0", "network.hidden[0] = 0: expected a finite number"),
    ("train ppo --network.hidden 1e18", "ppo on CartPole-v1: the network cannot be made: "),
    ("train ppo --env.num-envs 1e12", "the run needs "),
    ("train dqn --agent.replay-size 1e13", "of it for the replay"),
    ("train dqn --agent.replay-size 9", "too small for chunks of"),
    ("train ppo --recipe dqn-cartpole", "no such recipe for ppo; did you mean 'ppo-cartpole'?"),
    ("train ppo --video avi", "video = 'avi': expected one of 'none', 'gif', 'mp4'"),
    ("train ppo --config nowhere.yaml", "nowhere.yaml: no such configuration file"),
    ("eval", "holds no run; name one, or start one with `operant train`"),
    ("resume", "holds no unfinished run; name one, or start one with `operant train`"),
    ("play nowhere --record x.gif", "nowhere: no such run"),
    ("plot nowhere", "nowhere: no such run"),
    ("eval a b", "'b': expected one name at most, and 'a' is one"),
    ("eval --episodes 0", "episodes = 0: expected a finite number of at least 1"),
]


@pytest.mark.parametrize(("line", "message"), WORDS, ids=[line for line, _ in WORDS])
def test_a_wrong_command_is_refused_in_one_line_and_leaves_nothing(
    line: str, message: str, tmp_path: Path
) -> None:
    quiet = " --quiet" if line.startswith("train ") else ""
    known = line.split(maxsplit=1)[0] in ("train", "eval", "play", "plot", "resume")
    refused(call(line + quiet, tmp_path / "runs" if known else None), 2, message)
    assert not list(tmp_path.glob("runs/*"))


def test_list_without_a_match_says_so() -> None:
    refused(call("list nothing-like-it"), 2, "no environment matches 'nothing-like-it'")


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty; expected keys with values"),
    "only a comment": (b"# seed: 1\n", "is empty; expected keys with values"),
    "not YAML": (b"agent: [1, 2\n", ":2: "),
    "a tab": (b"agent:\n\tlr: 1\n", ":2: "),
    "a list": (b"- 1\n", "holds a list; expected keys with values"),
    "a word": (b"ppo\n", "holds only 'ppo'; expected keys with values"),
    "a key twice": (b"seed: 1\nseed: 2\n", ":2: the key 'seed' occurs twice"),
    "a key twice inside": (b"agent:\n  lr: 1\n  lr: 2\n", ":3: the key 'lr' occurs twice"),
    "an unknown key": (b"sead: 1\n", "sead: unknown key; did you mean 'seed'?"),
    "an unknown key inside": (b"agent: {gama: 1}\n", "agent.gama: unknown key; did you mean"),
    "a key of another agent": (b"agent: {epsilon: 1}\n", "agent.epsilon: unknown key"),
    "a wrong type": (b"steps: many\n", "steps = 'many': expected an integer"),
    "a number for a section": (b"agent: 3\n", "agent = 3: expected a section with keys among"),
    "not a number": (b"agent: {gamma: .nan}\n", "agent.gamma = nan: expected a number"),
    "a negative number": (b"agent: {clip: -0.1}\n", "agent.clip = -0.1: expected a finite"),
    "not UTF-8": (b"\xff\xfeseed", "not UTF-8 text (byte 0)"),
    "a Python tag": (b"seed: !!python/object/apply:os._exit [3]\n", ":1: "),
    "an alias": (b"agent: &a {}\nenv: *a\n", ":2: an alias (*name) is not allowed"),
    "two documents": (b"seed: 1\n---\nseed: 2\n", ":2: "),
    "another agent": (b"algorithm: dqn\n", "algorithm = 'dqn', and the command names 'ppo'"),
    "an unknown agent": (b"algorithm: pp\n", "algorithm = 'pp': there is no such agent; did"),
    "a number for an agent": (b"algorithm: 3\n", "algorithm = 3: there is no such agent"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_file_is_refused_with_its_name_and_place(name: str, tmp_path: Path) -> None:
    content, message = FILES[name]
    path = tmp_path / "run.yaml"
    path.write_bytes(content)
    result = call(["train", "ppo", "--config", str(path), "--quiet"], tmp_path / "runs")
    refused(result, 2, f"{path}:", message)
    assert not (tmp_path / "runs").exists()


def test_a_directory_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    refused(call(["train", "ppo", "--config", str(tmp_path)]), 2, "cannot be read: Is a directory")


@pytest.mark.parametrize("runs", ["/proc/runs", "file", "file/runs"])
def test_a_place_for_runs_that_cannot_be_written_is_refused(
    runs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    refused(call("train a2c --quiet", Path(runs)), 2, f"{runs}")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """Runs on a disk that cannot be written, one of them unfinished."""
    (train("train a2c --steps 20", tmp_path) / "done.json").unlink()
    mounts = (["--bind", str(tmp_path)], ["-o", "remount,ro,bind"])
    for options in mounts:
        command = ["mount", *options, str(tmp_path)]
        if os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("mounting needs root")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_disk_that_cannot_be_written_takes_no_run_but_shows_those_it_has(read_only: Path) -> None:
    message = "cannot be written: Read-only file system"
    refused(call("train a2c --quiet", read_only), 2, message)
    refused(call("resume", read_only), 2, message)
    refused(call("plot --metric eval/mean_reward", read_only), 2, "Read-only file system")
    assert call("eval --episodes 1", read_only).code == 0


def test_a_run_whose_configuration_is_broken_is_refused(tmp_path: Path) -> None:
    run = train("train a2c --steps 20", tmp_path)
    (run / "config.yaml").write_text("seed: 1\n")
    message = "config.yaml: algorithm is missing; expected an agent's name"
    refused(call(["eval", str(run)]), 2, message)
    (run / "done.json").unlink()
    refused(call(["resume", str(run)]), 2, message)


class Faulty(gymnasium.Env[Any, Any]):
    """Fine until it shows something else than its space promises."""

    observation_space = gs.Box(-1, 1, (2,), np.float32)
    action_space = gs.Discrete(2)

    def __init__(self, show: Any, at: int) -> None:
        self.show, self.at, self.t = show, at, 0

    def look(self) -> Any:
        self.t += 1
        if self.t < self.at:
            return np.zeros(2, np.float32)
        return self.show() if callable(self.show) else self.show

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        return self.look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.look(), 1.0, False, self.t % 7 == 0, {}


def broken() -> Any:
    raise ZeroDivisionError("too far\nto the left")


def unprintable() -> Any:
    raise ValueError("half a character: \ud800")


FAULTS: dict[str, tuple[Any, str]] = {
    "nan": (np.array([0, np.nan], np.float32), "observation 'observation' is NaN; expected finite"),
    "inf": (np.array([np.inf, 0], np.float32), "is infinite; expected finite numbers"),
    "shape": (np.zeros(3, np.float32), "has shape (3,); expected (2,)"),
    "type": (np.array(["a", "b"]), "expected float32 as its space says"),
    "none": (None, "is None; expected float32"),
    "surrogate": (unprintable, "ValueError: half a character: "),
    "raise": (broken, "ZeroDivisionError: too far to the left"),
}


@pytest.fixture
def faulty() -> Iterator[Callable[[Any, int], str]]:
    def register(show: Any, at: int) -> str:
        gymnasium.register("Faulty-v0", lambda **_: Faulty(show, at))
        return "train ppo --env.id Faulty-v0 --env.num-envs 1 --agent.length 8 --quiet"

    yield register
    gymnasium.registry.pop("Faulty-v0", None)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_environment_ends_the_run_with_its_place(
    name: str, tmp_path: Path, faulty: Callable[[Any, int], str]
) -> None:
    show, message = FAULTS[name]
    result = call(faulty(show, 90), tmp_path)  # after the trial of exact resume
    refused(result, 1, "Faulty-v0, environment 0, step ", message, "error.txt")
    (run,) = tmp_path.iterdir()
    assert "Traceback (most recent call last)" in (run / "error.txt").read_text()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_first_observation_is_found_before_there_is_a_run(
    name: str, tmp_path: Path, faulty: Callable[[Any, int], str]
) -> None:
    show, message = FAULTS[name]
    result = call(faulty(show, 1), tmp_path)
    assert (result.code, result.err.count("\n")) in ((1, 1), (2, 1))
    assert message.split(";")[0] in result.err
    assert not list(tmp_path.iterdir())


def test_learning_that_gives_no_number_ends_the_run(tmp_path: Path) -> None:
    line = "train a2c --agent.lr 1e30 --agent.max-grad-norm 0 --recipe none --quiet"
    refused(call(line, tmp_path), 1, "step ", "A smaller learning rate or a bound")


@pytest.mark.parametrize(
    ("env_id", "module", "extra"),
    [("ALE/Pong-v5", "ale_py", "atari"), ("MinAtar/Breakout-v1", "minatar.gym", "minatar")],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    env_id: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = env_id.split("/", maxsplit=1)[0]
    for name in [name for name in gymnasium.registry if name.startswith(f"{space}/")]:
        monkeypatch.delitem(gymnasium.registry, name)
    monkeypatch.setitem(sys.modules, module, None)  # makes importing it fail
    result = call(["train", "ppo", "--env.id", env_id, "--quiet"])
    refused(result, 2, f"env.id = '{env_id}' needs", f"pip install 'operant[{extra}]'")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PPOConfig(gamma=2.0), "gamma = 2.0: expected a number from 0 to 1"),
        (lambda: PPOConfig(epochs=0), "epochs = 0: expected a finite number of at least 1"),
        (lambda: DQNConfig(replay_size=-1), "replay_size = -1: expected"),
        (lambda: SACConfig(alpha=float("nan")), "alpha = nan: expected a finite number above 0"),
        (lambda: EnvConfig(num_envs=0), "num_envs = 0: expected"),
        (lambda: RunConfig(device="tpu"), "device = 'tpu': expected auto, cpu"),
        (lambda: run_config("pppo"), "agent 'pppo' is unknown; did you mean 'ppo'?"),
    ],
)
def test_python_gets_the_same_refusals(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value).startswith(message)


VALID = """\
algorithm: ppo
seed: 1
steps: 100
device: cpu
env: {id: CartPole-v1, num_envs: 2, manager: auto, kwargs: {}, hide: []}
agent:
  lr: linear(1e-3, 0, 100)
  gamma: 0.99
  normalize_advantage: true
network:
  hidden: [8, 8]
  activation: tanh
eval: {every: 0, episodes: 1}
"""
SEEDS = 100  # of each of the two tests below
PIECES = (
    *(
        "0",
        "-1",
        "nan",
        ".inf",
        "1e18",
        "3.5",
        "true",
        "null",
        "ppo",
        "''",
        "\x00",
        "é",
        "  ",
        "\n",
    ),
    *("[]", "{}", ":", "- ", "#", "&a", "*a", "!!str", "|", "%", "@", "'", '"', "\t", "---", "x: "),
)


def mutated(text: str, rng: random.Random) -> str:
    """`text` with one to three places cut out, doubled or overwritten."""
    for _ in range(rng.randint(1, 3)):
        begin = rng.randrange(len(text))
        end = min(len(text), begin + rng.choice((0, 1, 1, 2, 5, 12)))
        piece = rng.choice((rng.choice(PIECES), text[begin:end] * 2, ""))
        text = (text[:begin] + piece + text[end:]) or "\n"
    return text


def accepted_or_refused(words: list[str], seed: int) -> bool:
    result = call([*words, "--dry-run"])
    if result.code == 0:
        return True
    assert result.code == 2, (seed, words, result)
    assert result.err.startswith("operant: error: "), (seed, words, result)
    assert (result.err.count("\n"), result.out) == (1, ""), (seed, words, result)
    return False


def test_mutated_files_are_accepted_or_refused_in_one_line(tmp_path: Path) -> None:
    path, accepted = tmp_path / "run.yaml", 0
    for seed in range(SEEDS):
        path.write_text(mutated(VALID, random.Random(seed)), "utf-8")
        accepted += accepted_or_refused(["train", "--config", str(path)], seed)
    assert 5 < accepted < 75


def test_mutated_command_lines_are_accepted_or_refused_in_one_line() -> None:
    line = (
        "train ppo --steps 100 --seed=3 --env.id CartPole-v1 --env.kwargs sutton_barto_reward=true "
        "--agent.lr linear(1,0,9) --no-agent.normalize-advantage --network.hidden 8 8 --env.hide 1"
    )
    accepted = 0
    for seed in range(SEEDS):
        words = mutated(line, random.Random(seed)).split()
        # Words that are another command, or none, are not what this is about.
        accepted += accepted_or_refused(["train", *words[1:]], seed)
    assert 5 < accepted < 75
