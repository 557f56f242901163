"""The versions that decide what a run computes, and which of them differ from those of before."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from operant import __version__

LIBRARIES = ("torch", "numpy", "gymnasium")


def versions() -> dict[str, str]:
    """The versions of Operant, Python and the libraries that are used here, by name."""
    ours = {"operant": __version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in LIBRARIES}


def other_versions(saved: Mapping[str, Any]) -> list[str]:
    """Which of the saved versions are others here, in words; a name that is not known is passed."""
    here = versions()
    return [
        f"{name} {saved[name]}, here {found}"
        for name, found in here.items()
        if name in saved and saved[name] != found
    ]
