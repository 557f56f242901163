"""The command line: which command is meant, its help, and what to say when it fails."""

from __future__ import annotations

import gc
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence

from operant import __version__
from operant.cli import commands
from operant.config import describe
from operant.core.config import Config
from operant.core.errors import (
    CheckpointError,
    EnvironmentFault,
    TrainingFault,
    UsageError,
    suggest,
)

INTRO = """\
Operant trains agents by deep reinforcement learning.

  operant train ppo --env.id CartPole-v1   train; every setting is a flag
  operant resume                           go on with the newest unfinished run
  operant eval RUN                         play episodes and report the return
  operant play RUN                         watch it, or --record out.mp4
  operant plot RUN ...                     learning curves to a PNG
  operant list                             agents, recipes and environments

`operant train AGENT --help` explains every setting of an agent, and
`operant COMMAND --help` the rest. RUN is a run directory, or its name under
runs/; without one, the newest run is meant.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 and 143 stopped by Ctrl-C and
SIGTERM with everything saved.
"""


Command = Callable[[list[str]], int]
COMMANDS: dict[str, tuple[Command, type[Config], str]] = {
    "train": (
        commands.train,
        commands.TrainOptions,
        "operant train AGENT [--config FILE] [--SETTING VALUE ...]",
    ),
    "resume": (commands.resume, commands.ResumeOptions, "operant resume [RUN]"),
    "eval": (commands.evaluate, commands.EvalOptions, "operant eval [RUN] [--episodes N] [--json]"),
    "play": (commands.play, commands.PlayOptions, "operant play [RUN] [--record out.mp4]"),
    "plot": (commands.plot, commands.PlotOptions, "operant plot [RUN ...] [--out curves.png]"),
    "list": (commands.list_, Config, "operant list [PATTERN]"),
}


def help_text(argv: list[str]) -> str:
    """What `--help` prints for these words."""
    if not argv or argv[0] not in COMMANDS:
        return INTRO
    command, options, usage = COMMANDS[argv[0]]
    color = sys.stdout.isatty()
    intro = f"{usage}\n\n{command.__doc__}"
    text = describe(options, intro=intro, examples=EXAMPLES.get(argv[0], ()), color=color)
    if argv[0] == "train" and len(argv) > 1:
        _, config, recipe = commands.composed(argv[1:])
        origin = f"Defaults are those of the recipe {recipe.name}.\n" if recipe else ""
        text += "\n" + describe(type(config), config, intro=origin, color=color)
    return text


EXAMPLES: dict[str, Sequence[tuple[str, str]]] = {
    "train": (
        ("operant train ppo --help", "every setting of PPO"),
        ("operant train ppo --env.id CartPole-v1 --seed 2", "with the recipe for CartPole"),
        ("operant train sac --env.id Pendulum-v1 --dry-run", "look before training"),
        ("operant train dqn --agent.lr 1e-4 --agent.double false", "set anything"),
        ("operant train --config runs/NAME/config.yaml", "run a run again"),
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; what went wrong is one line, and an exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if "" not in sys.path:
        sys.path.insert(0, "")  # for environments of one's own, as `python -m operant` has it
    if words[:1] in (["train"], ["resume"]):
        # Until training begins hardly anything but imports happens, and none of it is garbage:
        # looking through it takes a tenth of a second each time.
        gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = _dispatch(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        reason, code = _explained(error)
        if not reason:
            raise  # a mistake of ours, which only a traceback explains
        print(f"operant: error: {' '.join(reason.split())}", file=sys.stderr)
        return code
    finally:
        gc.unfreeze()  # at the end everything is to go
        gc.enable()


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """A warning of a library as one line, without the colours that Gymnasium puts around it."""
    text = re.sub(r"\x1b\[\d+m|WARN: ", "", str(message))
    print(f"operant: warning: {' '.join(text.split())}", file=sys.stderr)


def _explained(error: BaseException) -> tuple[str, int]:
    """What happened in one sentence, empty if there is none to say, and the exit code."""
    match error:
        case UsageError():
            return str(error), 2
        case CheckpointError() | EnvironmentFault() | TrainingFault():
            return str(error), 1
        case KeyboardInterrupt():
            return "interrupted; the last checkpoint is whole", 128 + (*error.args, 2)[0]
        case OSError(strerror=str(reason)):
            return f"{error.filename or 'a file'}: {reason}", 1
        case MemoryError() | RuntimeError() if "allocate" in str(error):
            return f"out of memory: {error}; --dry-run shows what a run needs", 1
    return "", 1


def _dispatch(words: list[str]) -> int:
    if not words or {"-h", "--help"} & set(words):
        print(help_text([w for w in words if w not in ("-h", "--help")]))
        return 0
    if words[0] == "--version":
        print(f"operant {__version__}")
        return 0
    if words[0] not in COMMANDS:
        raise UsageError(f"command {words[0]!r} is unknown{suggest(words[0], COMMANDS)}")
    return COMMANDS[words[0]][0](words[1:])
