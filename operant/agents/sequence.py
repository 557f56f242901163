"""Running a network over experience, whether or not it remembers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from operant.core import tree
from operant.core.experience import Experience, HiddenState, Tensors
from operant.core.protocols import Network

IMAGES = 4  # axes of rows `(N, C, H, W)`
Part = tuple[Any, Tensor | None]  # some of a batch, and which of its steps count; None: all


def unroll(
    network: Network,
    batch: Any,
    outputs: tuple[str, ...] | None,
    rows: tuple[int, int | None] = (0, None),
    name: str = "",
    late: Tensors | None = None,
) -> Tensors:
    """Outputs `[T', B, ...]` of the rows from the first up to the second of `rows`.

    A network with memory starts from the batch's first row, one without sees only those rows.
    `name` tells this network's hidden state from that of others in the batch; `late` are its
    inputs in those rows that are no observations.
    """
    begin, end = rows
    start = 0 if network.recurrent else begin
    observation = tree.index(batch.observation, slice(start, end))
    skipped = (0, 0) * (len(batch.first.shape) - 1) + (begin - start, 0)
    for key, x in (late or {}).items():
        # What is decided late leaves no trace, so any number does where nobody looks.
        observation[key] = F.pad(x, (0, 0) * (x.dim() - 2) + skipped) if begin > start else x
    state = substate(tree.index(batch.hidden_state, 0), name)
    out, _ = network(observation, state, batch.first[start:end], outputs)
    return out if begin == start else {key: x[begin - start :] for key, x in out.items()}


def substate(state: Tensors, name: str) -> HiddenState:
    """The hidden state of the network called `name`; of the only one, if it has no name."""
    if not name:
        return HiddenState(state)
    return HiddenState(
        {key.removeprefix(name + "."): x for key, x in state.items() if key.startswith(name + ".")}
    )


@torch.no_grad()
def values_of(network: Network, chunk: Experience) -> tuple[Tensor, Tensor]:
    """Value of each row and of what its action led to, `[T, B]` each, from output `value`."""
    if "value" in chunk.memo:  # acting has seen every row but the last
        last = tree.index((chunk.observation, dict(chunk.hidden_state)), -1)
        after = network(last[0], HiddenState(last[1]).reset(chunk.first[-1]), None, ("value",))[0]
        value = torch.cat([chunk.memo["value"], after["value"].T])
    else:
        value = unroll(network, chunk, ("value",))["value"].squeeze(-1)
    next_value = value[1:].clone()
    if chunk.replaced.any():
        # What followed these steps was a new episode; their worth is that of the final observation.
        final = tree.index(chunk.final_observation, chunk.replaced)
        state = HiddenState({k: x[1:][chunk.replaced] for k, x in chunk.hidden_state.items()})
        next_value[chunk.replaced] = network(final, state, None, ("value",))[0]["value"].squeeze(-1)
    return value[:-1], next_value


def passes(
    batch: Any, epochs: int, size: int, recurrent: bool, generator: torch.Generator
) -> Iterator[Iterator[Part]]:
    """The batch `epochs` times, each time in parts of about `size` steps, shuffled anew.

    Steps are shuffled one by one, as `[1, steps]`; a network with memory needs them in order, so
    then whole environments are shuffled, `[T, environments]`.
    """
    rows = None if recurrent else tree.map(_flat, batch)
    for _ in range(epochs):
        yield _by_env(batch, size, generator) if rows is None else _by_step(rows, size, generator)


def _by_env(batch: Any, size: int, generator: torch.Generator) -> Iterator[Part]:
    steps, envs = batch.valid.shape
    count = max(1, size // steps)
    for part in torch.randperm(envs, generator=generator, device=generator.device).split(count):
        yield batch[:, part], batch.valid[:, part]


def _by_step(rows: Any, size: int, generator: torch.Generator) -> Iterator[Part]:
    chosen = rows.valid.nonzero().squeeze(-1)
    if not len(chosen):
        return
    order = chosen[torch.randperm(len(chosen), generator=generator, device=generator.device)]
    parts = max(1, round(len(order) / size))
    for part in order.tensor_split(parts):
        yield tree.map(lambda x, p=part: _taken(x, p)[None], rows), None


def _flat(x: Tensor) -> Tensor:
    """`[T, B, ...]` as rows; images with their channels last, as convolutions read them best."""
    rows = x.flatten(0, 1)
    return rows.permute(0, 2, 3, 1).contiguous() if rows.dim() == IMAGES else rows


def _taken(rows: Tensor, chosen: Tensor) -> Tensor:
    """Some of the rows that `_flat` made; images are `(C, H, W)` again, but in that order."""
    part = rows.index_select(0, chosen)  # not by an index, which copies byte by byte
    return part.permute(0, 3, 1, 2) if part.dim() == IMAGES else part
