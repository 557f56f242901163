"""Nested state as JSON and named tensors, and back; decoding runs no code.

In the JSON, null, true, false, numbers, strings and lists stand for themselves. Everything else is
an object whose one key is its type: `{"tuple": [...]}`, `{"tensor": "agent.network.weight"}`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from operant.core.durable import PIECE
from operant.core.errors import CheckpointError

SCALAR_KINDS = "biufc"  # NumPy's kinds of plain numbers; decoding objects would run code
Tensors = dict[str, Tensor]
DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def encode(state: Any) -> tuple[Any, Tensors]:
    """`state` as JSON values, and its tensors and arrays by name, which share its memory."""
    tensors: Tensors = {}
    return _encode(state, "", tensors), tensors


def decode(skeleton: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The inverse of `encode`."""
    try:
        return _decode(skeleton, tensors)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"state.json: not a saved state: {error!r}") from None


def _encode(value: Any, path: str, tensors: Tensors) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, Tensor):
        return {"tensor": _add_tensor(value.detach(), path, tensors)}
    if isinstance(value, np.ndarray):
        return {"array": _add_tensor(_as_tensor(value, path), path, tensors)}
    return _encode_other(value, path, tensors)


def _encode_other(value: Any, path: str, tensors: Tensors) -> Any:
    if isinstance(value, bytes):
        return {"bytes": _to_base64(value)}
    if isinstance(value, np.generic) and value.dtype.kind in SCALAR_KINDS:
        return {"scalar": [value.dtype.str, _to_base64(value.tobytes())]}
    if isinstance(value, dict):
        parts = [(key, _encode(part, f"{path}.{key}", tensors)) for key, part in value.items()]
        if all(type(key) is str for key in value):
            return {"dict": dict(parts)}
        return {"items": [[_encode(key, f"{path} key", {}), part] for key, part in parts]}
    # A named tuple would be decoded as a plain one, so it is refused.
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        items = [_encode(part, f"{path}.{i}", tensors) for i, part in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    raise CheckpointError(
        f"state{path}: a {type(value).__name__} cannot be saved; expected tensors, arrays, "
        "numbers, strings, bytes, none, and dicts, lists and tuples of these"
    )


def _as_tensor(array: np.ndarray[Any, Any], path: str) -> Tensor:
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    # torch accepts no negative strides, and warns of read-only memory.
    plain = native if native.flags.c_contiguous and native.flags.writeable else native.copy()
    try:
        return torch.from_numpy(plain)
    except TypeError:
        raise CheckpointError(f"state{path}: arrays of {array.dtype} cannot be saved") from None


def _add_tensor(tensor: Tensor, path: str, tensors: Tensors) -> str:
    name = wanted = path.lstrip(".") or "state"
    count = 1
    while name in tensors or name == "__metadata__":  # keys with dots can make two paths equal
        count += 1
        name = f"{wanted}#{count}"
    tensors[name] = tensor
    return name


def _to_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _scalar(pair: list[str]) -> np.generic:
    dtype = np.dtype(pair[0])
    if dtype.kind not in SCALAR_KINDS:
        raise ValueError(f"a scalar of {dtype}")
    scalar: np.generic = np.frombuffer(_from_base64(pair[1]), dtype)[0]
    return scalar


def _decode(skeleton: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(skeleton, list):
        return [_decode(part, tensors) for part in skeleton]
    if not isinstance(skeleton, dict):
        return skeleton
    ((kind, content),) = skeleton.items()
    plain: dict[str, Callable[[Any], Any]] = {
        "float": float,
        "bytes": _from_base64,
        "scalar": _scalar,
        "tensor": lambda name: tensors[name],
        "array": lambda name: tensors[name].numpy(),
        "tuple": lambda parts: tuple(_decode(part, tensors) for part in parts),
        "dict": lambda parts: {key: _decode(part, tensors) for key, part in parts.items()},
        "items": lambda pairs: {_decode(k, {}): _decode(v, tensors) for k, v in pairs},
    }
    return plain[kind](content)


def safetensors(tensors: dict[str, Tensor]) -> Iterator[bytes]:
    """The bytes of a safetensors file, in pieces.

    Not by the library, whose writer refuses tensors that share memory, hides the errno of a full
    disk, and whose file would have to be read again to be hashed.
    """
    # Largest element size first, as the library does, so that every tensor is aligned.
    ordered = sorted(tensors.items(), key=lambda item: -item[1].element_size())
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in ordered:
        if tensor.dtype not in DTYPES or tensor.layout != torch.strided:
            raise CheckpointError(f"state.{name}: a tensor of {tensor.dtype} cannot be saved")
        begin, end = end, end + tensor.numel() * tensor.element_size()
        shape = list(tensor.shape)
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for _, tensor in ordered:
        yield from _bytes_of(tensor)


def _bytes_of(tensor: Tensor) -> Iterator[bytes]:
    # A tensor of one element can have a stride of zero and still count as contiguous.
    flat = tensor.cpu().contiguous().as_strided((tensor.numel(),), (1,))
    raw = flat.view(torch.uint8).numpy()
    for begin in range(0, len(raw), PIECE):
        yield raw[begin : begin + PIECE].tobytes()
