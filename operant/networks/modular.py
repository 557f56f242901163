"""A network assembled from parts, whose shapes are checked when they are joined."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import HiddenState, Tensors
from operant.core.protocols import NumpyForward
from operant.core.spaces import Shape
from operant.networks.normalize import Normalizer
from operant.networks.numpy_forward import numpy_network
from operant.networks.outputs import FreeOutput, check_known, output_layer, shaped
from operant.networks.rank import check_joined, convert
from operant.networks.submodule import (
    SubModule,
    as_part,
    check_fit,
    identity,
    key,
    module_dict,
    run,
    under,
)
from operant.networks.vector import MLP


class ModularNetwork(nn.Module):
    """Source nets read the observations, the body joins them, heads and output layers answer.

    There is one head for each rank of outputs (an identity unless given), one layer for each
    output. State is named `source.<observation>`, `body` or `head.<rank>`, then by the part.
    Observations without a source net are not looked at, except those in `late`: vectors that join
    what the body gives in front of the head of rank 1, and so leave no trace in its state. With
    `bf16`, source nets and body multiply in bfloat16; weights and outputs are float32 as ever.
    """

    joint = True  # sources and body are paid for once

    def __init__(
        self,
        sources: Mapping[str, SubModule],
        body: SubModule,
        outputs: Mapping[str, Shape],
        heads: Mapping[int, SubModule] | None = None,
        normalizer: Normalizer | None = None,
        late: Mapping[str, Shape] | None = None,
        bf16: bool = False,
    ) -> None:
        super().__init__()
        self.bf16 = bf16
        self.late = {name: prod(shape) for name, shape in (late or {}).items()}
        check_joined({n: s.output_shape() for n, s in sources.items()}, body.input_shape)
        ranks = {name: max(1, len(shape)) for name, shape in outputs.items()}
        heads = dict(heads or {})
        for rank in sorted({*ranks.values(), *heads}):
            head = heads.setdefault(rank, identity(body.output_shape(rank)))
            joins = sum(self.late.values()) if rank == 1 else 0
            check_fit("the body", body, f"the head of rank {rank}", head, joins)
        if len(heads) > len({*ranks.values()}):
            raise UsageError(f"heads of ranks {sorted(heads)}, but the outputs are {dict(outputs)}")
        self.normalizer = normalizer
        self.sources, self.body = module_dict(sources), body
        self.heads = module_dict({str(rank): head for rank, head in heads.items()})
        self.outputs = module_dict(
            {n: output_layer(n, heads[ranks[n]], shape) for n, shape in outputs.items()}
        )
        self.output_shapes = dict(outputs)
        self.source_keys = {name: key(name) for name in sources}
        self._ranks = ranks
        self.recurrent = any(part.recurrent for _, part in self.named_parts())

    def named_sources(self) -> list[tuple[str, SubModule]]:
        """Source nets by the observation that they read."""
        return [(name, as_part(self.sources[k])) for name, k in self.source_keys.items()]

    def named_parts(self) -> list[tuple[str, SubModule]]:
        """All parts by the path under which their state is kept."""
        sources = [(f"source.{k}", as_part(part)) for k, part in self.sources.items()]
        heads = [(f"head.{rank}", as_part(head)) for rank, head in self.heads.items()]
        return [*sources, ("body", self.body), *heads]

    def output_layer(self, name: str) -> nn.Module:
        """The layer that gives an output."""
        return self.outputs[key(name)]

    def fully_connected(self) -> MLP | None:
        """The layers between observations, late inputs included, and outputs: all that is learned.

        None if anything else is learned as well.
        """
        stem = self.heads["1"] if self.late else self.body
        learned = [part for _, part in self.named_parts() if not part.idle]
        if set(self.heads) - {"1"} or self.bf16 or type(stem) is not MLP or learned != [stem]:
            return None
        plain = (nn.Linear, FreeOutput)
        layers = [*stem.layers, *self.outputs.values()]
        return stem if all(type(layer) in plain for layer in layers) else None

    def forward(
        self,
        observation: Tensors,
        hidden_state: HiddenState,
        first: Tensor | None = None,
        outputs: tuple[str, ...] | None = None,
    ) -> tuple[Tensors, HiddenState]:
        """The wanted outputs and the state carried out; state behind other outputs stays."""
        if outputs is not None:
            check_known(outputs, self.output_shapes)
        carried = HiddenState(hidden_state) if self.recurrent else HiddenState()
        if self.bf16:
            with torch.autocast(next(iter(observation.values())).device.type, torch.bfloat16):
                x, times = self._trunk(observation, hidden_state, first, carried)
            x = x.float()  # outputs keep full precision
        else:
            x, times = self._trunk(observation, hidden_state, first, carried)
        at_rank: dict[int, Tensor] = {}
        results: Tensors = {}
        for name in self.output_shapes if outputs is None else outputs:
            rank = self._ranks[name]
            if rank not in at_rank:
                head = as_part(self.heads[str(rank)])
                y = self.join(x, observation) if self.late and rank == 1 else x
                y = run(head, f"head.{rank}", y, hidden_state, first, carried)
                at_rank[rank] = convert(y, rank)
            y = self.outputs[key(name)](at_rank[rank])
            results[name] = shaped(y, times, self.output_shapes[name])
        return results, carried

    def _trunk(
        self, observation: Tensors, state: HiddenState, first: Tensor | None, carried: HiddenState
    ) -> tuple[Tensor, Shape]:
        x, times = self.read(observation, state, first, carried)
        return run(self.body, "body", x, state, first, carried), times

    def initial_state(self, batch_size: int) -> HiddenState:
        """A fresh state for `batch_size` rows."""
        fresh = HiddenState()
        for path, part in self.named_parts():
            fresh.update(under(path, part.initial_state(batch_size)))
        return fresh

    def observe(self, observation: Tensors, valid: Tensor | None = None) -> None:
        """Let the normaliser, if there is one, take in the rows where `valid` is true."""
        if self.normalizer is not None:
            self.normalizer.observe(observation, valid)

    def numpy_forward(self, outputs: tuple[str, ...] | None) -> NumpyForward | None:
        """The network in NumPy for acting on a few rows, if it is fully connected."""
        return numpy_network(self, outputs)

    def join(self, x: Tensor, observation: Tensors) -> Tensor:
        """`x` with what comes late beside it."""
        parts = [observation[name].reshape(-1, size) for name, size in self.late.items()]
        return torch.cat([convert(x, 1), *parts], 1)

    def read(
        self, observation: Tensors, state: HiddenState, first: Tensor | None, carried: HiddenState
    ) -> tuple[Tensor, Shape]:
        """What the body takes, flat, and the two axes `(T, B)` if this is a sequence."""
        if not self.source_keys.keys() <= observation.keys():
            missing = ", ".join(sorted(self.source_keys.keys() - observation.keys()))
            raise UsageError(f"observations {sorted(observation)}: expected {missing} as well")
        if self.normalizer is not None:
            observation = self.normalizer(observation)
        body = self.body
        times: Shape = ()
        parts: list[Tensor] = []
        for name, source in self.named_sources():
            x = observation[name]
            if x.dim() != source.rank + 1:
                times = _times(name, x, source)
                x = x.flatten(0, 1)
            path = f"source.{self.source_keys[name]}"
            x = convert(run(source, path, x, state, first, carried), body.rank)
            parts.append(x if body.rank == 1 else x.expand(-1, -1, *body.input_shape[1:]))
        return (parts[0] if len(parts) == 1 else torch.cat(parts, 1)), times


def _times(name: str, x: Tensor, source: SubModule) -> Shape:
    if x.dim() != source.rank + 2:
        raise UsageError(
            f"observation {name!r} has the shape {tuple(x.shape)}; expected [B, ...] or "
            f"[T, B, ...] with {source.input_shape} for the dots"
        )
    return tuple(x.shape[:2])
