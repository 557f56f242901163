"""One thread for every test: small networks are faster so, and the numbers do not vary."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from multiprocessing import forkserver

# On some processors MKL rounds a row by how many rows there are, and parts of a batch would differ
# from the whole; read when torch first multiplies.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

# Runs that name code of the user's own are signed with a key that is kept there.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="operant-tests-")

import leftovers
import pytest
import torch

torch.set_num_threads(1)

# Workers of every kind are forked from one server, which loads torch now and not each of them.
multiprocessing.set_forkserver_preload(
    ["operant.samplers.sampler_worker", "operant.envs.providers.gymnasium"]
)
forkserver.ensure_running()


@pytest.fixture
def nothing_left_behind() -> Iterator[None]:
    """A test with it fails if it leaves a process, shared memory or an open file."""
    with leftovers.watched():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked `every(n)`, all but each nth case are slow."""
    seen: dict[str, int] = {}
    for item in items:
        marker = item.get_closest_marker("every")
        if marker is None:
            continue
        name = item.nodeid.partition("[")[0]
        if seen.setdefault(name, 0) % marker.args[0]:
            item.add_marker(pytest.mark.slow)
        seen[name] += 1
