"""A network assembled from parts, whose shapes are checked when they are joined."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import HiddenState, Tensors
from operant.core.spaces import Shape
from operant.networks.normalize import Normalizer
from operant.networks.outputs import check_known, output_layer, shaped
from operant.networks.rank import check_joined, convert
from operant.networks.submodule import (
    SubModule,
    check_fit,
    identity,
    key,
    module_dict,
    run,
    under,
)


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
        # The same parts again in plain dicts: torch takes a microsecond to find a module's module.
        self.source_paths = {name: f"source.{key(name)}" for name in sources}
        self.parts = {self.source_paths[name]: source for name, source in sources.items()}
        self.parts["body"] = body
        self.parts |= {f"head.{rank}": head for rank, head in heads.items()}
        self._outputs = {name: (ranks[name], self.outputs[key(name)]) for name in outputs}
        self.recurrent = any(part.recurrent for part in self.parts.values())

    def forward(
        self,
        observation: Tensors,
        hidden_state: HiddenState,
        first: Tensor | None = None,
        outputs: tuple[str, ...] | None = None,
    ) -> tuple[Tensors, HiddenState]:
        """The wanted outputs and the state carried out; state behind other outputs stays."""
        if outputs is not None:
            check_known(outputs, self._outputs)
        carried = HiddenState(hidden_state) if self.recurrent else HiddenState()
        if self.bf16:
            with torch.autocast(next(iter(observation.values())).device.type, torch.bfloat16):
                x, times = self._trunk(observation, hidden_state, first, carried)
            x = x.float()  # what is decided and what it is worth keep every digit
        else:
            x, times = self._trunk(observation, hidden_state, first, carried)
        at_rank: dict[int, Tensor] = {}
        results: Tensors = {}
        for name in self._outputs if outputs is None else outputs:
            rank, layer = self._outputs[name]
            if rank not in at_rank:
                path = f"head.{rank}"
                y = self.join(x, observation) if self.late and rank == 1 else x
                y = run(self.parts[path], path, y, hidden_state, first, carried)
                at_rank[rank] = convert(y, rank)
            results[name] = shaped(layer(at_rank[rank]), times, self.output_shapes[name])
        return results, carried

    def _trunk(
        self, observation: Tensors, state: HiddenState, first: Tensor | None, carried: HiddenState
    ) -> tuple[Tensor, Shape]:
        x, times = self.read(observation, state, first, carried)
        return run(self.parts["body"], "body", x, state, first, carried), times

    def initial_state(self, batch_size: int) -> HiddenState:
        """A fresh state for `batch_size` rows."""
        fresh = HiddenState()
        for path, part in self.parts.items():
            fresh.update(under(path, part.initial_state(batch_size)))
        return fresh

    def observe(self, observation: Tensors, valid: Tensor | None = None) -> None:
        """Let the normaliser, if there is one, take in the rows where `valid` is true."""
        if self.normalizer is not None:
            self.normalizer.observe(observation, valid)

    def join(self, x: Tensor, observation: Tensors) -> Tensor:
        """`x` with what comes late beside it."""
        parts = [observation[name].reshape(-1, size) for name, size in self.late.items()]
        return torch.cat([convert(x, 1), *parts], 1)

    def read(
        self, observation: Tensors, state: HiddenState, first: Tensor | None, carried: HiddenState
    ) -> tuple[Tensor, Shape]:
        """What the body takes, flat, and the two axes `(T, B)` if this is a sequence."""
        if not self.source_paths.keys() <= observation.keys():
            missing = ", ".join(sorted(self.source_paths.keys() - observation.keys()))
            raise UsageError(f"observations {sorted(observation)}: expected {missing} as well")
        if self.normalizer is not None:
            observation = self.normalizer(observation)
        body = self.parts["body"]
        times: Shape = ()
        parts: list[Tensor] = []
        for name, path in self.source_paths.items():
            source = self.parts[path]
            x = observation[name]
            if x.dim() != source.rank + 1:
                times = _times(name, x, source)
                x = x.flatten(0, 1)
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
