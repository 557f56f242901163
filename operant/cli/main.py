"""The entry point of the command line: finds the command, prints help, and reports errors."""

from __future__ import annotations

import gc
import re
import select
import sys
import warnings
from collections.abc import Callable, Sequence

from operant import __version__
from operant.cli import check_env, commands, compare, doctor, options, sweep
from operant.cli.interrupt import ended_by_signals
from operant.cli.streams import prepare_streams
from operant.config import describe
from operant.core.config import Config
from operant.core.errors import (
    CheckpointError,
    EnvironmentFault,
    TrainingFault,
    UsageError,
    suggest,
)
from operant.session.output import (
    discard_unwritten,
    lasting_output,
    to_nothing,
)

INTRO = """\
Operant: deep reinforcement learning for PyTorch.

  operant train ppo --env.id CartPole-v1   train; every setting is a flag
  operant resume [RUN]                     continue; with --steps N, for longer
  operant eval [RUN]                       evaluate a trained agent
  operant play [RUN]                       watch it, or --record out.mp4
  operant plot [RUN ...]                   plot learning curves to a PNG file
  operant compare [RUN ...]                print what groups of runs reached
  operant sweep AGENT --grid SETTING=A,B   train combinations of settings
  operant doctor [RUN]                     examine a run: is it whole?
  operant list [PATTERN]                   list agents, recipes and environments
  operant check-env ID|module:Class        find faults of an environment

`operant train AGENT --help` explains every setting of an agent, and
`operant COMMAND --help` the options of a command. RUN is a run directory, or
its name under runs/; the default is the newest run.

Exit codes: 0 success, 1 failure, 2 wrong usage, 130, 143 and 129 stopped by
Ctrl-C, SIGTERM and a closed terminal after saving a checkpoint.
"""


TRAINING = (["train"], ["resume"], ["sweep"])  # go on when nobody reads what they print
Command = Callable[[list[str]], int]
COMMANDS: dict[str, tuple[Command, type[Config], str]] = {
    "train": (
        commands.train,
        options.TrainOptions,
        "operant train AGENT [--config FILE] [--SETTING VALUE ...]",
    ),
    "resume": (commands.resume, options.ResumeOptions, "operant resume [RUN] [--steps N]"),
    "eval": (commands.evaluate, options.EvalOptions, "operant eval [RUN] [--episodes N] [--json]"),
    "play": (commands.play, options.PlayOptions, "operant play [RUN] [--record out.mp4]"),
    "plot": (commands.plot, options.PlotOptions, "operant plot [RUN ...] [--out curves.png]"),
    "compare": (compare.compare, options.CompareOptions, "operant compare [RUN ...] [--json]"),
    "sweep": (
        sweep.sweep_command,
        options.SweepOptions,
        "operant sweep AGENT [--grid SETTING=VALUE,VALUE ...] [--seeds N]",
    ),
    "doctor": (doctor.doctor, doctor.DoctorOptions, "operant doctor [RUN] [--json]"),
    "list": (commands.list_, Config, "operant list [PATTERN]"),
    "check-env": (
        check_env.check_env,
        options.CheckOptions,
        "operant check-env ID|module:Class [--steps N] [--json]",
    ),
}


def help_text(argv: list[str]) -> str:
    """What `--help` prints for these arguments."""
    if not argv or argv[0] not in COMMANDS:
        return INTRO
    command, accepted, usage = COMMANDS[argv[0]]
    color = sys.stdout.isatty()
    intro = f"{usage}\n\n{command.__doc__}"
    examples = EXAMPLES.get(argv[0], ())
    text = describe(accepted, intro=intro, examples=examples, title="options", color=color)
    if argv[0] == "train" and len(argv) > 1:
        given, config, recipe = commands.composed(argv[1:])
        none = "no recipe is used" if given.recipe == "none" else f"no recipe fits {config.env.id}"
        own = f"{config.algorithm}'s own: {none}"
        origin = f"Defaults are {f'those of the recipe {recipe.name}' if recipe else own}.\n"
        text += "\n" + describe(type(config), config, intro=origin, color=color)
    return text


EXAMPLES: dict[str, Sequence[tuple[str, str]]] = {
    "train": (
        ("operant train ppo --help", "every setting of PPO"),
        ("operant train ppo --env.id CartPole-v1 --seed 2", "with the recipe for CartPole"),
        ("operant train sac --env.id Pendulum-v1 --dry-run", "only print what would be run"),
        ("operant train dqn --agent.lr 1e-4 --agent.double false", "other settings"),
        ("operant train --config runs/NAME/config.yaml", "repeat a run"),
    ),
    "compare": (
        ("operant compare runs/NAME", "a directory that holds runs, such as a sweep's"),
        ("operant compare runs/ppo-* --metric rollout/ep_len_mean", "several runs"),
    ),
    "sweep": (
        ("operant sweep ppo --env.id CartPole-v1 --seeds 5", "five seeds"),
        (
            "operant sweep ppo --grid agent.lr=1e-3,3e-4 --grid agent.gamma=0.98,0.99",
            "four settings; the same command goes on with them if it was stopped",
        ),
        ("operant sweep --resume runs/NAME", "the same, by the directory"),
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; an error is one line on standard error and an exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    prepare_streams()
    with lasting_output(stdout=words[:1] in TRAINING):
        return _main(words)


def _main(words: list[str]) -> int:
    if "" not in sys.path:
        sys.path.append("")  # so that modules here can be imported; last, or they hide others
    if words[:1] in (["train"], ["resume"]):
        # Until training starts nearly all that is allocated is imports, which stay; each
        # collection of garbage would look through them for a tenth of a second.
        gc.disable()
    try:
        with ended_by_signals(), warnings.catch_warnings():
            warnings.showwarning = _warn
            warnings.filterwarnings("ignore", "builtin type .* has no __module__")  # Box2D's
            code = _dispatch(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if not _reader_is_gone():
            raise  # another pipe broke, such as one to a worker
        to_nothing(sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        reason, code = _explained(error)
        if not reason:
            raise  # a bug, for which the traceback is needed
        discard_unwritten(sys.stdout)
        print(f"operant: error: {' '.join(reason.split())}", file=sys.stderr)
        return code
    finally:
        gc.unfreeze()
        gc.enable()


def _reader_is_gone() -> bool:
    """Whether what reads our output, such as `head`, has closed it."""
    line = select.poll()
    try:
        line.register(sys.stdout.fileno(), select.POLLOUT)
    except (OSError, ValueError):  # there is no standard output
        return False
    return any(event & select.POLLERR for _, event in line.poll(0))


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a library's warning as one line, without the colours that Gymnasium adds."""
    text = re.sub(r"\x1b\[\d+m|WARN: ", "", str(message))
    print(f"operant: warning: {' '.join(text.split())}", file=sys.stderr)


def _explained(error: BaseException) -> tuple[str, int]:
    """The message for an error, empty if it is unexpected, and the exit code."""
    match error:
        case UsageError():
            return str(error), 2
        case CheckpointError() | EnvironmentFault() | TrainingFault():
            return str(error), 1
        case KeyboardInterrupt():
            return "interrupted; the last checkpoint is complete", 128 + (*error.args, 2)[0]
        case OSError(strerror=str(reason)):
            return f"{error.filename or 'a file or standard output'}: {reason}", 1
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
