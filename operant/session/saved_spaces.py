"""The spaces of a run's environment, in a file of the run: its policy acts without a simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from operant.core.errors import CheckpointError
from operant.core.protocols import EnvironmentManager
from operant.envs.interface import Interface

SPACES = "spaces.json"


def interface_of(manager: EnvironmentManager) -> Interface:
    """The interface of the environments behind a manager in this process."""
    first: Any = next(iter(getattr(manager, "envs", [manager])))
    return Interface.of(first)


def spaces_text(interface: Interface) -> str:
    """The content of the file."""
    return json.dumps(interface.to_json(), indent=1, allow_nan=False) + "\n"


def read_interface(run: Path) -> Interface | None:
    """The interface saved with a run; None for one that was made before it was saved."""
    path = run / SPACES
    if not path.exists():
        return None
    try:
        return Interface.from_json(json.loads(path.read_text("utf-8")))
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        AssertionError,
        RecursionError,
    ) as error:
        what = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"{path}: does not describe spaces ({type(error).__name__}: {what}); remove it, and "
            f"the environment is made to ask for them"
        ) from None
