"""Writes `command-line.md` from the configuration, so that it stays current."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from operant.agents.registry import AGENTS, Algorithm, agent_name
from operant.cli.main import COMMANDS
from operant.config import Row, rows
from operant.session import run_config

PAGE = Path(__file__).with_name("command-line.md")

INTRO = """\
# The command line

This page is generated from the source by `make docs`; `--help` prints the same.

Every setting of a run is a flag: `--section.field value`. The same names, nested, are the keys
of a YAML file given by `--config`, and of the `config.yaml` in every run directory. Flags override
the file, the file overrides the recipe that fits the agent and the environment, and the recipe
overrides the defaults below.

- A boolean is `--agent.double` or `--no-agent.double`, or takes `true` or `false`. Where the
  default is on, the tables list the flag that turns it off, beside what is done while it is on.
- A list takes several values: `--network.hidden 64 64` or `--network.hidden 64,64`.
- A schedule is a number, or `linear(start, end)`, which is interpolated linearly from `start` to
  `end` over the whole run: `--agent.lr "linear(3e-4, 0)"`. A third value ends it earlier: `10%`
  after that share of the run, `100_000` after that many environment steps. In `config.yaml` a
  share stands with the length it is of, `linear(1.0, 0.05, 10% of 100000)`, and follows `--steps`.
- Integers may be written `100_000` or `1e5`.
- `--env.kwargs name=value ...` is passed to the environment's constructor.
- A name that another library uses, such as `--learning-rate` or `--n-steps`, is an error that gives
  Operant's name for it.

Exit codes: 0 success, 1 failure, 2 wrong usage, 130, 143 and 129 stopped by Ctrl-C, SIGTERM and a
closed terminal (SIGHUP) after saving a checkpoint.
"""


def page() -> str:
    """The content of `command-line.md`."""
    parts = [INTRO, "## Commands\n"]
    for command, options, usage in COMMANDS.values():
        about = (command.__doc__ or "").splitlines()[0]
        parts += [f"### `{usage}`\n", about + "\n", *_table(rows(options))]
    parts.append("## Settings that every agent has\n")
    settings = [row for row in rows(run_config("ppo")) if row.flag != "--algorithm"]
    shared = [row for row in settings if row.section != "agent"]
    for section in dict.fromkeys(row.section for row in shared):
        parts.append(f"### {section or 'The run'}\n")
        parts += _table(row for row in shared if row.section == section)
    parts.append("## Settings of one agent\n")
    for name, known in AGENTS.items():
        parts += [f"### {name}\n", *_agent(name, known)]
    return "\n".join(parts)


def _agent(name: str, known: Algorithm) -> list[str]:
    """The settings of an agent; of a variant of another one, those whose defaults differ."""
    own = [row for row in rows(run_config(name)) if row.section == "agent"]
    base = agent_name(known.cls)
    if base == name:
        about = (known.cls.__doc__ or "").splitlines()[0]
        return [f"`{known.cls.__name__}`: {about}\n", *_table(own)]
    same = rows(run_config(base))
    different = _table(row for row in own if row not in same)
    return [
        f"{known.config.__doc__} The settings of [{base}](#{base}), with these defaults:\n",
        *different,
    ]


def _table(found: Iterable[Row]) -> list[str]:
    lines = [
        f"| `{row.flag}` | {_code(row.accepts)} | {_code(row.default)} | {row.comment} |"
        for row in found
    ]
    if not lines:
        return []
    return ["| flag | takes | default | |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"]


def _code(text: str) -> str:
    return " or ".join(f"`{part}`" for part in text.split("|") if part)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
