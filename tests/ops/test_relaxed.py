"""The Gumbel-softmax trick."""

from __future__ import annotations

import pytest
import torch

from operant.ops import relaxed

LOGITS = torch.tensor([[0.0, 1.0, -1.0, 2.0, 0.5]])
SIZES = [3, 2]


def test_without_noise_it_is_the_best_choice_of_each_part() -> None:
    found = relaxed.gumbel_softmax(LOGITS, torch.zeros(()), SIZES)
    assert found.tolist() == [[0.0, 1.0, 0.0, 1.0, 0.0]]


def test_a_mask_forbids_choices() -> None:
    mask = torch.tensor([[True, False, True, False, True]])
    found = relaxed.gumbel_softmax(LOGITS, torch.zeros(()), SIZES, mask)
    assert found.tolist() == [[1.0, 0.0, 0.0, 0.0, 1.0]]


def test_the_gradient_is_that_of_the_softmax() -> None:
    logits = LOGITS[:, :3].clone().requires_grad_()
    relaxed.gumbel_softmax(logits, torch.zeros(()), [3])[0, 0].backward()
    p = LOGITS[0, :3].softmax(-1).tolist()
    expected = [p[0] * (1 - p[0]), -p[0] * p[1], -p[0] * p[2]]
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx(expected)


def test_draws_follow_the_policy() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor([0.1, 0.2, 0.7]).log().expand(20_000, 3)
    noise = relaxed.gumbel_noise((20_000, 3), generator)
    share = relaxed.gumbel_softmax(logits, noise, [3]).mean(0)
    assert share.tolist() == pytest.approx([0.1, 0.2, 0.7], abs=0.015)


def test_choices_become_one_hot_and_back() -> None:
    action = torch.tensor([[2, 0], [1, 1]])
    hot = relaxed.one_hot(action, SIZES)
    assert hot.tolist() == [[0, 0, 1, 1, 0], [0, 1, 0, 0, 1]]
    assert torch.equal(relaxed.choices_of(hot, SIZES), action)
