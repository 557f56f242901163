"""Running a network over a batch of experience, whether or not it is recurrent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from operant.core import tree
from operant.core.experience import HiddenState, Tensors, substate
from operant.core.protocols import Network
from operant.ops.distribution import Distribution, masks_of

IMAGE_AXES = 4  # of rows `(N, C, H, W)`
Minibatch = tuple[Any, Tensor | None]  # some of a batch, and which of its steps count; None: all


def unroll(
    network: Network,
    batch: Any,
    outputs: tuple[str, ...] | None,
    rows: tuple[int, int | None] = (0, None),
    name: str = "",
    late: Tensors | None = None,
) -> Tensors:
    """Outputs `[T', B, ...]` of the rows from the first up to the second of `rows`.

    A recurrent network starts from the batch's first row, another sees only those rows. No gradient
    flows into rows before those asked for. `name` tells this network's hidden state from that of
    others in the batch; `late` are its inputs in those rows that are no observations.
    """
    begin, end = rows
    start = 0 if network.recurrent else begin
    state = substate(tree.index(batch.hidden_state, 0), name)
    if begin > start and torch.is_grad_enabled():
        state, start = _burn_in(network, batch, state, begin, late or {}), begin
    observation = tree.index(batch.observation, slice(start, end))
    skipped = (0, 0) * (len(batch.first.shape) - 1) + (begin - start, 0)
    for key, x in (late or {}).items():
        # Late inputs leave no trace in the hidden state, so any number does in skipped rows.
        observation[key] = F.pad(x, (0, 0) * (x.dim() - 2) + skipped) if begin > start else x
    out, _ = network(observation, state, batch.first[start:end], outputs)
    return out if begin == start else {key: x[begin - start :] for key, x in out.items()}


@torch.no_grad()
def _burn_in(
    network: Network, batch: Any, state: HiddenState, steps: int, late: Tensors
) -> HiddenState:
    """The hidden state after the first `steps` rows (R2D2; Kapturowski et al. 2019, section 3)."""
    observation = tree.index(batch.observation, slice(0, steps))
    any_number = {key: x.new_zeros((steps, *x.shape[1:])) for key, x in late.items()}
    return network({**observation, **any_number}, state, batch.first[:steps], None)[1]


def evaluate_actions(
    network: Network, distribution: Distribution, batch: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probability of the actions taken, entropy and value under the network as it is."""
    out = unroll(network, batch, None, late=distribution.late(batch.action))
    masks = masks_of(batch.observation, distribution.parts)
    log_prob, entropy = distribution.evaluate(out, batch.action, masks)
    return log_prob, entropy, out["value"].squeeze(-1)


def passes(
    batch: Any, epochs: int, size: int, recurrent: bool, generator: torch.Generator
) -> Iterator[Iterator[Minibatch]]:
    """The batch `epochs` times, each time in minibatches of about `size` steps, shuffled anew.

    Steps are shuffled one by one, as `[1, steps]`; a recurrent network needs them in order, so then
    whole environments are shuffled, `[T, environments]`.
    """
    rows = None if recurrent else tree.map(_to_rows, batch)
    for _ in range(epochs):
        yield _by_env(batch, size, generator) if rows is None else _by_step(rows, size, generator)


def _by_env(batch: Any, size: int, generator: torch.Generator) -> Iterator[Minibatch]:
    steps, envs = batch.valid.shape
    count = max(1, size // steps)
    for part in torch.randperm(envs, generator=generator, device=generator.device).split(count):
        yield batch[:, part], batch.valid[:, part]


def _by_step(rows: Any, size: int, generator: torch.Generator) -> Iterator[Minibatch]:
    chosen = rows.valid.nonzero().squeeze(-1)
    if not len(chosen):
        return
    order = chosen[torch.randperm(len(chosen), generator=generator, device=generator.device)]
    parts = max(1, round(len(order) / size))
    for part in order.tensor_split(parts):
        yield tree.map(lambda x, p=part: _select(x, p)[None], rows), None


def _to_rows(x: Tensor) -> Tensor:
    """`[T, B, ...]` as rows; images channels-last, as convolutions read them best."""
    rows = x.flatten(0, 1)
    return rows.permute(0, 2, 3, 1).contiguous() if rows.dim() == IMAGE_AXES else rows


def _select(rows: Tensor, chosen: Tensor) -> Tensor:
    """Some of the rows that `_to_rows` made; images are `(C, H, W)` again, still channels-last."""
    part = rows.index_select(0, chosen)  # not by an index, which copies byte by byte
    return part.permute(0, 3, 1, 2) if part.dim() == IMAGE_AXES else part
