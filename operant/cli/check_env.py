"""`operant check-env`: what is wrong with an environment."""

from __future__ import annotations

import json
from contextlib import nullcontext

from operant.cli.options import CheckOptions
from operant.config import parse_flags
from operant.core.errors import UsageError
from operant.session.output import output_to_stderr


def check_env(argv: list[str]) -> int:
    """Check an environment: one line a fault with its remedy, and exit code 1 if there is one."""
    from operant.envs.env_checks import check_env as checked  # noqa: PLC0415

    options, words = parse_flags(CheckOptions, argv)
    if len(words) != 1:
        raise UsageError("which environment? expected one id, or module:Class")
    try:
        with output_to_stderr() if options.json else nullcontext():
            found = checked(words[0], options.steps, **options.kwargs)
    except UsageError as error:
        known = str(error).startswith("id ")
        raise UsageError(f"env.{error}" if known else str(error)) from error
    if options.json:
        told = {"id": words[0], "steps": found.steps}
        lists = {"faults": [*found.faults.values()], "advice": [*found.advice.values()]}
        print(json.dumps(told | lists))
    else:
        print(found)
    return 1 if found else 0
