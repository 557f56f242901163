"""Filling a replay, and what may be drawn from it."""

from __future__ import annotations

from typing import Any, TypeVar

from streams import APART, Row, Streams

from operant.core import tree
from operant.core.experience import Drawn, Experience
from operant.memory.replay import ExperienceReplay
from operant.memory.rollout import RolloutCache

R = TypeVar("R", bound=ExperienceReplay)


def fill(replay: R, streams: Streams, lengths: list[int]) -> R:
    """The replay after chunks of these lengths."""
    whole, at = streams.fill(RolloutCache(sum(lengths))), 0
    for length in lengths:
        replay.store(part(whole, at, at + length))
        at += length
    return replay


def part(chunk: Experience, start: int, stop: int) -> Experience:
    """Some steps of a chunk, as a chunk."""
    seen = ("observation", "hidden_state", "first")
    return Experience(
        **{k: tree.index(v, slice(start, stop + (k in seen))) for k, v in chunk.items()}
    )


def next_chunk(streams: Streams, steps: int) -> Experience:
    """The next steps, as from a cache that wrote those before them."""
    before = [(env.first, env.seen) for env in streams.envs]
    chunk = streams.fill(RolloutCache(steps))
    for b, (first, seen) in enumerate(before):
        chunk.first[0, b] = first
        chunk.hidden_state["h"][0, b] = 0 if first else seen
    return chunk


def starts(streams: Streams, replay: ExperienceReplay, length: int) -> list[int]:
    """First observations of all windows that may be drawn."""
    kept = replay.capacity - 1
    return [
        env.b * APART + k
        for env in streams.envs
        for k in range(max(0, len(env.rows) - kept), len(env.rows) - length + 1)
        if env.rows[k].valid
    ]


def check_window(streams: Streams, window: Any, length: int) -> None:
    """That a window is a run of consecutive rows of the truth."""
    ids = window.observation["o"].squeeze(-1).tolist()
    assert ids == list(range(ids[0], ids[0] + length + 1))
    env, k = streams.envs[ids[0] // APART], ids[0] % APART
    assert window.hidden_state["h"].item() == ids[0] or env.rows[k].first
    assert window.next_observation["o"].squeeze(-1).tolist() == ids[1:]
    ahead = Row(False, first=env.first)  # what the row at the cursor is before it is decided
    firsts = [row.first for row in (*env.rows, ahead)[k : k + length + 1]]
    assert window.first.tolist() == firsts
    for j, row in enumerate(env.rows[k : k + length]):
        told = (window.valid[j], window.reward[j], window.terminated[j], window.truncated[j])
        assert tuple(x.item() for x in told) == row[:4]
        if row.valid:
            assert window.action["a"][j].item() == (ids[0] + j) % 5
            assert window.memo["m"][j].item() == (ids[0] + j) % 3


def check_same(one: Drawn, other: Drawn) -> None:
    """That two samples are equal, bit for bit."""
    assert one.place.tolist() == other.place.tolist()
    assert (one.weight is None) == (other.weight is None)
    pairs = zip(tree.leaves(one[:2]), tree.leaves(other[:2]), strict=True)
    for (path, x), (_, y) in pairs:
        assert x.dtype == y.dtype, path
        assert x.equal(y), path
