"""What precision products have, and that a processor which only claims bfloat16 harms nobody."""

from __future__ import annotations

import os
import signal

import pytest
import torch

from operant.core.errors import UsageError
from operant.networks import precision
from operant.networks.precision import bf16_failure, resolve_precision


@pytest.fixture(autouse=True)
def works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "bf16_failure", lambda: "")


@pytest.mark.parametrize("flag", ["avx512_bf16", "amx_bf16"])
def test_auto_is_bf16_only_for_images_on_processors_that_have_it(
    flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {flag: True})
    assert [resolve_precision("auto", images) for images in (True, False)] == ["bf16", "fp32"]
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {flag: False})
    assert resolve_precision("auto", images=True) == "fp32"
    assert resolve_precision("bf16", images=False) == "bf16"


def test_where_a_product_kills_its_process_auto_is_fp32_and_bf16_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(precision, "bf16_failure", lambda: "failed with SIGILL")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})
    assert resolve_precision("auto", images=True) == "fp32"
    with pytest.raises(UsageError, match=r"failed with SIGILL.*ONEDNN_MAX_CPU_ISA"):
        resolve_precision("bf16", images=True)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (lambda: os._exit(0), ""),
        (lambda: os._exit(1), "raised an error"),
        (lambda: os.kill(os.getpid(), signal.SIGILL), "failed with SIGILL"),
    ],
)
def test_what_became_of_the_child_is_told(
    end: object, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "_multiply_and_exit", end)
    bf16_failure.cache_clear()
    try:
        assert bf16_failure() == told
    finally:
        bf16_failure.cache_clear()
