"""Trains, saves, resumes, evaluates and films an agent in every environment that can be made here.

`PYTHONPATH=tests/session python tests/envs/every_environment.py` writes a row for each to
`docs/environments-table.md`; with ids or patterns, only their rows are written anew.
`test_every_environment.py` runs each row again.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Discrete, Tuple
from running import call, only_run, trace

from operant.cli.listing import can_be_made
from operant.core.spaces import Space
from operant.envs import EnvConfig, make_env, make_manager
from operant.envs.providers import catalog
from operant.report.play import renders

PAGE = Path(__file__).parents[2] / "docs" / "environments-table.md"
FAMILIES = {  # module that an environment is made by: the family
    "gymnasium.envs.classic_control": "classic control",
    "gymnasium.envs.toy_text": "toy text",
    "gymnasium.envs.box2d": "Box2D",
    "gymnasium.envs.mujoco": "MuJoCo",
    "minatar": "MinAtar",
    "ale_py": "Atari",
}
AGENTS = {"discrete": ("ppo", "dqn", "a2c", "sac"), "continuous": ("sac", "ppo", "a2c")}
CHUNK = 16  # environment steps: eight in each of two environments
COMMON = (
    f"--recipe none --seed 3 --threads 1 --quiet --log-every {CHUNK} --eval.every none "
    "--env.num-envs 2 --env.time-limit 20 --agent.length 8 --network.hidden 16 "
    "--network.precision fp32 --network.image-size 16"
)
REPLAY = "--agent.learning-starts 8 --agent.batch-size 4 --agent.replay-size 200"
SETTINGS = {
    "a2c": "",
    "ppo": "--agent.minibatch 8 --agent.epochs 1",
    "dqn": f"{REPLAY} --agent.epsilon 0.5",  # a share of the run would follow its length
    "sac": f"{REPLAY} --agent.updates-per-step 0.25",
}
SIMPLE = "with `--env.manager simple`"
INTRO = """\
# Every environment

A slow test runs every row of this page, and `tests/envs/every_environment.py` writes it.

Each environment was made, trained for two chunks by the agent named (the agents take turns), saved,
resumed from the middle, evaluated, and recorded where it can be rendered, by the commands of the
[command line](command-line.md). *Exact resume* means that the resumed run equals the whole one bit
for bit, weights and log. Where it is not exact, weights and everything else are saved too, but
episodes start anew when the run is resumed: see [checkpoints](checkpoints.md#exact-resume).
"""


class Row(NamedTuple):
    """A line of the table."""

    family: str
    env_id: str
    observation: str
    action: str
    agent: str
    exact: str  # yes, no, or what makes it so


def env_ids() -> list[str]:
    """The latest version of every environment of the families that can be made here."""
    known = filter(family, catalog.known_ids())
    latest = [i for i in known if catalog.spec_of(i.rpartition("-v")[0]) is _spec(i)]
    order = [*FAMILIES.values()]
    return sorted(filter(can_be_made, latest), key=lambda env_id: order.index(family(env_id)))


def family(env_id: str) -> str:
    """Which of the families an environment belongs to; empty if to none."""
    made_by = str(_spec(env_id).entry_point)
    if made_by.startswith("ale_py") and not env_id.startswith("ALE/"):
        return ""  # older ids of the same games
    return next((name for module, name in FAMILIES.items() if made_by.startswith(module)), "")


def _spec(env_id: str) -> EnvSpec:
    return gymnasium.registry[env_id]


def assigned(ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each environment with an agent that fits, all of these in turn."""
    turns = {kind: cycle(agents) for kind, agents in AGENTS.items()}
    for env_id in ids:
        with_box = isinstance(_spaces(env_id)[1], Box)
        yield env_id, next(turns["continuous" if with_box else "discrete"])


def _spaces(env_id: str) -> tuple[Space, Space]:
    """What the environment shows and takes."""
    made = make_env(EnvConfig(id=env_id))
    made.close()
    return made.env.observation_space, made.env.action_space


def tried(env_id: str, agent: str, folder: Path) -> Row:
    """The row of an environment: train, save, resume, evaluate and play in it."""
    os.environ.setdefault("MUJOCO_GL", "egl")  # draws without a display
    line = f"train {agent} --env.id {env_id} {SETTINGS[agent]} {COMMON}"
    _done(f"{line} --steps {CHUNK}", folder / "parts")
    run = only_run(folder / "parts")
    _done(f"resume {run.name} --quiet --steps {2 * CHUNK}", folder / "parts")
    assert json.loads((run / "done.json").read_text())["step"] >= 2 * CHUNK
    exact = _exact(run)
    if exact:
        _done(f"{line} --steps {2 * CHUNK}", folder / "whole")
        equal = trace(run) == trace(only_run(folder / "whole"))
        assert equal, f"{env_id}: the resumed run differs from one that never stopped"
    _done(f"eval {run.name} --episodes 2", folder / "parts")
    if renders(EnvConfig(id=env_id)):
        film = folder / "play.gif"
        _done(f"play {run.name} --record {film}", folder / "parts")
        assert film.stat().st_size > 0
    observation, action = map(_in_words, _spaces(env_id))
    return Row(family(env_id), env_id, observation, action, agent, _in_table(env_id, exact))


def _done(line: str, runs: Path) -> None:
    result = call(line, runs)
    assert result.code == 0, f"operant {line}: {result.out}{result.err}"


def _exact(run: Path) -> bool:
    newest = max((run / "checkpoints").glob("ckpt-*"))
    return bool(json.loads((newest / "MANIFEST.json").read_text())["exact"])


def _in_table(env_id: str, exact: bool) -> str:
    if exact:
        return "yes"
    manager = make_manager(EnvConfig(id=env_id, num_envs=1, manager="simple"), seed=1)
    found = manager.exact
    manager.close()
    return SIMPLE if found else "no"


def _in_words(space: Space) -> str:
    """A space by its type and its shape, or its number of choices."""
    if isinstance(space, Tuple):
        return ", ".join(map(_in_words, space.spaces))
    if isinstance(space, Discrete):
        return f"Discrete({space.n})"
    return f"{type(space).__name__}({'×'.join(map(str, space.shape or ()))})"


def page(rows: Sequence[Row]) -> str:
    """The whole of `environments-table.md`."""
    counts = {name: sum(row.family == name for row in rows) for name in FAMILIES.values()}
    head = ["family", "environment", "observation", "action", "agent tried", "exact resume"]
    lines = [
        INTRO,
        ", ".join(f"{count} of {name}" for name, count in counts.items()) + ".\n",
        _line(head),
        _line(["---"] * len(head)),
        *(_line([row.family, f"`{row.env_id}`", *row[2:]]) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def read(text: str) -> list[Row]:
    """The rows of a page."""
    lines = [line.strip("| \n").split(" | ") for line in text.splitlines() if "| `" in line]
    return [Row(cells[0], cells[1].strip("`"), *cells[2:]) for cells in lines]


def write(patterns: Sequence[str]) -> int:
    """Run what the patterns select, all by default, and write the page; how many failed."""
    old = {row.env_id: row for row in read(PAGE.read_text("utf-8"))} if PAGE.exists() else {}
    rows, failed = [], 0
    for env_id, agent in assigned(env_ids()):
        if patterns and not any(fnmatch(env_id, pattern) for pattern in patterns):
            rows += [old[env_id]] if env_id in old else []
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows.append(tried(env_id, agent, Path(folder)))
                print(*rows[-1], sep=" | ", flush=True)
            except Exception as error:  # the others are tried all the same
                failed += 1
                print(f"FAILED {env_id} {agent}: {error}", flush=True)
        PAGE.write_text(page(rows), "utf-8")
    PAGE.write_text(page(rows), "utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(1 if write(sys.argv[1:]) else 0)
