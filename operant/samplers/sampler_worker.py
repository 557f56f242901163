"""What runs inside a process that acts and steps by itself: one byte starts a batch."""

from __future__ import annotations

import os
import pickle
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any, NamedTuple

import torch

from operant.core import tree
from operant.core.experience import TrajInfo
from operant.core.protocols import EnvironmentManager, Rows
from operant.memory.rollout import RolloutCache
from operant.processes.weights import unpack
from operant.processes.worker import (
    LOAD,
    RESET,
    SAVE,
    STEP,
    Commands,
    obey,
    prepare,
    tell_error,
    told,
)
from operant.samplers.collector import Collecting, Collector
from operant.samplers.shared_buffers import Desk, Layout, mapped
from operant.samplers.trajectory import TrajTracker

BATCH, BEGIN, EXACT = STEP, RESET, b"x"


class Post(NamedTuple):
    """All that a worker is told when it starts."""

    worker: int  # which one it is
    rows: Rows
    layout: Layout
    plan: Collecting
    actor: bytes


class Remote:
    """A collector that takes its orders from a desk."""

    def __init__(self, manager: EnvironmentManager, post: Post, desk: Desk) -> None:
        self.manager, self.desk, self.index = manager, desk, post.worker
        start, stop, total = post.rows
        self.actor = unpack(post.actor, post.layout.forms, desk.weights)
        self.actor.rows = post.rows if stop - start < total else None
        self.caches = [RolloutCache(post.plan.length) for _ in desk.chunks]
        for cache, chunk in zip(self.caches, desk.chunks, strict=True):
            cache.adopt(tree.index(chunk, (slice(None), slice(start, stop))))
        sums = desk.rewards[start:stop], desk.lengths[start:stop]
        tracker = TrajTracker(stop - start, *sums)
        self.collector = Collector(
            manager, self.actor, self.caches[0], post.plan, post.rows, tracker, self.tick
        )

    def tick(self) -> bool:
        """Show that work goes on; whether it shall."""
        self.desk.progress[self.index] += 1
        return not self.desk.stop[0]

    def begin(self) -> None:
        """Begin new episodes, under the seed and at the row that the desk says."""
        self._at(int(self.desk.cursor[0]))
        self.collector.start_envs(int(self.desk.seed[0]), int(self.desk.warm[0]))
        self.collector.start_agent()

    def batch(self) -> list[TrajInfo]:
        """Collect a batch; the episodes that ended."""
        self._at(0)
        self.desk.take(self.actor)
        finished = self.collector.collect_batch(0)
        self.desk.leave(self.actor, 1 + self.index)
        seconds = self.collector.seconds
        self.desk.seconds[self.index] = list(seconds.values())
        for name in seconds:
            seconds[name] = 0.0
        return finished

    def _at(self, cursor: int) -> None:
        self.collector.cache = self.caches[int(self.desk.buffer[0])]
        self.collector.cache.cursor = cursor


def serve(talk: Connection, trace: Connection, payload: bytes) -> None:
    """Build the environments, take a place at the desk, and obey until told to close."""
    prepare(trace)
    torch.set_num_threads(1)
    try:
        manager: Any = pickle.loads(payload)()
        talk.send((manager.spaces, manager.frames_per_step, manager.num_envs))
    except BaseException as error:
        return talk.send(told(error))
    try:
        post: Post = talk.recv()
        memory = recv_handle(talk)
        remote = Remote(manager, post, mapped(post.layout, memory))
        os.close(memory)
    except EOFError:  # the parent hung up
        return None
    except BaseException as error:
        return tell_error(talk, error)
    commands: Commands = {
        BEGIN: remote.begin,
        BATCH: remote.batch,
        EXACT: lambda: manager.exact,
        SAVE: manager.state_dict,
        LOAD: lambda: manager.load_state_dict(talk.recv()),
    }
    return obey(commands, talk, manager.close)
