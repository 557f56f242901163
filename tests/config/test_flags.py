from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from operant.config import parse_flags
from operant.core.config import Config, Count, Positive
from operant.core.errors import UsageError
from operant.core.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class Env(Config):
    id: str = "CartPole-v1"
    kwargs: dict[str, Any] = field(default_factory=dict)
    clip_reward: bool = False


@dataclass(frozen=True, kw_only=True)
class Agent(Config):
    lr: Schedule = Schedule(3e-4)
    target_kl: Positive | None = 0.1
    device: Literal["cpu", "cuda"] = "cpu"
    hidden: tuple[Count, ...] = (64, 64)
    noise: Positive | tuple[Positive, ...] = 0.1


@dataclass(frozen=True, kw_only=True)
class Run(Config):
    steps: Count = 10
    quiet: bool = False
    env: Env = field(default_factory=Env)
    agent: Agent = field(default_factory=Agent)


def parse(line: str) -> Run:
    return parse_flags(Run, line.split(), Run())[0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--steps 100_000", Run(steps=100_000)),
        ("--steps=1e6", Run(steps=1_000_000)),
        ("--steps 1 --steps 2", Run(steps=2)),
        ("--env.id 1e5", Run(env=Env(id="1e5"))),
        ("--env.id=a=b", Run(env=Env(id="a=b"))),
        ("--agent.lr 1e-4", Run(agent=Agent(lr=Schedule(1e-4)))),
        ("--agent.lr linear(1,0,5)", Run(agent=Agent(lr=Schedule(1.0, 0.0, 5)))),
        ("--agent.target-kl none", Run(agent=Agent(target_kl=None))),
        ("--agent.target_kl 0.5", Run(agent=Agent(target_kl=0.5))),
        ("--agent.hidden 32 16 --quiet", Run(quiet=True, agent=Agent(hidden=(32, 16)))),
        ("--agent.hidden=32,16", Run(agent=Agent(hidden=(32, 16)))),
        ("--agent.hidden []", Run(agent=Agent(hidden=()))),
        ("--env.kwargs a=1 b=x c=1e-4", Run(env=Env(kwargs={"a": 1, "b": "x", "c": 1e-4}))),
        ("--env.kwargs a=[1,2]", Run(env=Env(kwargs={"a": [1, 2]}))),
        ("--env.clip-reward", Run(env=Env(clip_reward=True))),
        ("--env.clip_reward true --no-env.clip-reward", Run()),
        ("--quiet false", Run()),
    ],
)
def test_a_flag_sets_its_field(line: str, expected: Run) -> None:
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--agent.lrr 1", "--agent.lrr: unknown flag; did you mean '--agent.lr'?"),
        ("--lr 1", "--lr: unknown flag; did you mean '--agent.lr'?"),
        ("--no-steps", "--no-steps: unknown flag; did you mean '--steps'?"),
        ("--agent.lr", "--agent.lr: a value is missing; expected a number or linear("),
        ("--agent.lr --quiet", "--agent.lr: a value is missing"),
        ("--steps -5", "steps = -5: expected a finite number of at least 1"),
        ("--steps many", "steps = 'many': expected an integer"),
        ("--quiet=maybe", "--quiet = 'maybe': expected true or false"),
        ("--no-quiet=true", "--no-quiet = 'true': expected no value"),
        ("--env.kwargs size", "--env.kwargs size: expected name=value"),
        ("--env.kwargs a=[1", "--env.kwargs a:1: "),
        ("--agent.device gpu", "agent.device = 'gpu': expected one of 'cpu', 'cuda'"),
        ("--agent.hidden 64 big", "agent.hidden[1] = 'big': expected an integer"),
        ("--env 5", "--env: unknown flag"),
    ],
)
def test_a_wrong_flag_gets_one_clear_line(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_words_that_belong_to_no_flag_are_handed_back_in_order() -> None:
    config, words = parse_flags(Run, ["ppo", "--steps", "5", "now"], Run())
    assert (config.steps, words) == (5, ["ppo", "now"])


def test_a_partial_reading_leaves_the_flags_of_others() -> None:
    config, words = parse_flags(
        Env, ["--id", "x", "--steps", "5", "--kwargs", "a=1"], Env(), partial=True
    )
    assert config == Env(id="x", kwargs={"a": 1})
    assert words == ["--steps", "5"]


def test_flags_known_elsewhere_are_suggested_too() -> None:
    with pytest.raises(UsageError, match="did you mean '--config'"):
        parse_flags(Run, ["--confg", "x"], Run(), others=["config"])


@pytest.mark.parametrize(
    ("text", "expected"), [("0.2", 0.2), ("[0.2]", (0.2,)), ("[0.2,1]", (0.2, 1.0))]
)
def test_a_number_or_a_list_of_them_is_read(text: str, expected: Any) -> None:
    assert parse(f"--agent.noise {text}").agent.noise == expected
