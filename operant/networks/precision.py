"""Whether products in bfloat16 pay on this processor, and whether they work at all."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from functools import lru_cache
from typing import Literal

import torch
from torch.nn import functional as F

from operant.core.errors import UsageError

Precision = Literal["auto", "fp32", "bf16"]
PROBE_SECONDS = 10.0  # for a product that takes a few milliseconds


def resolve_precision(precision: Precision, images: bool, device: str = "cpu") -> Precision:
    """What `auto` stands for: bf16 for images where the processor has instructions for it.

    Where it has none, products take ten times as long as in fp32.
    """
    if precision == "fp32" or (precision == "auto" and not (images and _has_bf16(device))):
        return "fp32"
    failed = "" if device.startswith("cuda") else bf16_failure()
    if failed and precision == "bf16":
        raise UsageError(
            f"precision = 'bf16': a product in bfloat16 {failed} on this processor; use "
            f"precision = 'fp32', or set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
        )
    return "fp32" if failed else "bf16"


def _has_bf16(device: str) -> bool:
    """Whether the device says that it multiplies in bfloat16."""
    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    flags = torch.cpu.get_capabilities()
    return bool(flags.get("avx512_bf16") or flags.get("amx_bf16"))


@lru_cache(maxsize=1)
def bf16_failure() -> str:
    """What became of a product in bfloat16, empty if it worked.

    Some virtual machines announce instructions (AMX) that kill the process which uses them, so
    it is a forked child that tries.
    """
    child = os.fork()
    if child == 0:
        faulthandler.disable()  # its death is the answer, not a crash to report
        _multiply_and_exit()
    deadline = time.monotonic() + PROBE_SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == 0 else _ending(code)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"took more than {PROBE_SECONDS:g} s"


def _ending(code: int) -> str:
    return f"failed with {signal.Signals(-code).name}" if code < 0 else "raised an error"


def _multiply_and_exit() -> None:
    """A linear layer and a convolution, forward and backward, in the child."""
    code = 1
    try:
        torch.set_num_threads(1)  # threads of the parent do not exist here
        image, weight = torch.ones(2, 4, 12, 12), torch.ones(8, 4, 3, 3, requires_grad=True)
        layer = torch.ones(16, 800, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            y = F.linear(F.conv2d(image, weight).flatten(1), layer)
        y.float().sum().backward()
        code = 0
    finally:
        os._exit(code)
