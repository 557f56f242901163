"""Discrete distributions against torch.distributions, with and without masks."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Generator, Tensor
from torch.distributions import Categorical as Reference
from torch.distributions import kl_divergence

from operant.ops.categorical import Categorical, MultiCategorical

UNEQUAL, EQUAL = (3, 2, 4), (3, 3, 3)
Multi = MultiCategorical


def some_logits(*shape: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(*shape, generator=Generator().manual_seed(seed))


def some_mask(rows: int, choices: tuple[int, ...]) -> Tensor:
    """Random, with the first choice of every part allowed."""
    mask = torch.rand(rows, sum(choices), generator=Generator().manual_seed(9)) < 0.6
    begins = [sum(choices[:i]) for i in range(len(choices))]
    mask[:, begins] = True
    return mask


def reference(logits: Tensor, mask: Tensor) -> list[Reference]:
    """One distribution a row over the allowed choices alone."""
    return [Reference(logits=x[m]) for x, m in zip(logits, mask, strict=True)]


def parts_of(flat: Tensor, choices: tuple[int, ...]) -> tuple[Tensor, ...]:
    return torch.split(flat, list(choices), -1)


def test_a_categorical_agrees_with_torch() -> None:
    p, q = some_logits(6, 5), some_logits(6, 5, seed=1)
    action, one = torch.arange(6) % 5, Categorical(5)
    torch.testing.assert_close(one.log_prob(p, action, None), Reference(logits=p).log_prob(action))
    torch.testing.assert_close(one.entropy(p, None), Reference(logits=p).entropy())
    expected = kl_divergence(Reference(logits=p), Reference(logits=q))
    torch.testing.assert_close(one.kl(p, q, None), expected)


def test_a_masked_categorical_is_one_over_the_allowed_choices_alone() -> None:
    p, q, mask = some_logits(7, 5), some_logits(7, 5, seed=1), some_mask(7, (5,))
    one, ps, qs = Categorical(5), reference(p, mask), reference(q, mask)
    first = torch.zeros(7, dtype=torch.int64)
    log_prob = torch.stack([x.log_prob(torch.tensor(0)) for x in ps])
    torch.testing.assert_close(one.log_prob(p, first, mask), log_prob)
    torch.testing.assert_close(one.entropy(p, mask), torch.stack([x.entropy() for x in ps]))
    kl = torch.stack([kl_divergence(x, y) for x, y in zip(ps, qs, strict=True)])
    torch.testing.assert_close(one.kl(p, q, mask), kl)


@pytest.mark.parametrize("masked", [False, True])
def test_draws_are_as_frequent_as_their_probabilities(masked: bool) -> None:
    logits = torch.tensor([0.5, -1.0, 2.0, 1.0])
    mask = torch.tensor([True, True, False, True]) if masked else None
    drawn = Categorical(4).sample(
        logits.expand(10_000, 4), mask if mask is None else mask.expand(10_000, 4), Generator()
    )
    expected = (logits if mask is None else logits.masked_fill(~mask, -math.inf)).softmax(-1)
    frequency = torch.bincount(drawn, minlength=4) / 10_000
    torch.testing.assert_close(frequency, expected, atol=0.02, rtol=0)


@pytest.mark.parametrize("choices", [UNEQUAL, EQUAL])
def test_no_part_ever_draws_a_forbidden_choice(choices: tuple[int, ...]) -> None:
    # Forbidden choices have the highest logits, so that only the mask keeps them away.
    mask = some_mask(1, choices)
    logits = torch.where(mask, 0.0, 50.0).expand(10_000, -1)
    drawn = Multi(choices).sample(logits, mask.expand(10_000, -1), Generator())
    for part, allowed in zip(drawn.unbind(-1), parts_of(mask[0], choices), strict=True):
        frequency = torch.bincount(part, minlength=len(allowed)) / 10_000
        torch.testing.assert_close(frequency, allowed / allowed.sum(), atol=0.02, rtol=0)
        assert frequency[~allowed].sum() == 0


def test_the_same_generator_state_draws_the_same() -> None:
    logits = some_logits(64, 5)
    draws = [Categorical(5).sample(logits, None, Generator().manual_seed(s)) for s in (3, 3, 4)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_the_mode_is_the_likeliest_allowed_choice() -> None:
    logits, mask = torch.tensor([1.0, 3.0, 2.0]), torch.tensor([True, False, True])
    assert Categorical(3).mode(logits, None).item() == 1
    assert Categorical(3).mode(logits, mask).item() == 2
    both = Multi((3, 2)).mode(torch.tensor([1.0, 3.0, 2.0, 5.0, 4.0]), None)
    assert both.tolist() == [1, 0]


@pytest.mark.parametrize("choices", [UNEQUAL, EQUAL])
@pytest.mark.parametrize("masked", [False, True])
def test_several_parts_are_the_sum_of_each(choices: tuple[int, ...], masked: bool) -> None:
    size = sum(choices)
    p, q, mask = some_logits(2, 4, size), some_logits(2, 4, size, seed=1), some_mask(4, choices)
    many, given = Multi(choices), mask.expand(2, 4, size) if masked else None
    action = many.sample(p, given, Generator())
    log_prob, entropy, kl = torch.zeros(3, 2, 4)
    masks = parts_of(given, choices) if given is not None else (None,) * 3
    logits = zip(parts_of(p, choices), parts_of(q, choices), strict=True)
    for (x, y), m, a in zip(logits, masks, action.unbind(-1), strict=True):
        one = Categorical(x.shape[-1])
        log_prob += one.log_prob(x, a, m)
        entropy += one.entropy(x, m)
        kl += one.kl(x, y, m)
    torch.testing.assert_close(many.log_prob(p, action, given), log_prob)
    torch.testing.assert_close(many.entropy(p, given), entropy)
    torch.testing.assert_close(many.kl(p, q, given), kl)


@pytest.mark.parametrize("choices", [UNEQUAL, EQUAL, (9,)])
def test_gradients_under_masks_are_finite_and_zero_at_forbidden_choices(
    choices: tuple[int, ...],
) -> None:
    logits, mask = some_logits(8, 9).requires_grad_(), some_mask(8, choices)
    many = Multi(choices)
    action = many.sample(logits, mask, Generator())
    terms = (many.log_prob(logits, action, mask), many.entropy(logits, mask))
    for term in (*terms, many.kl(logits, some_logits(8, 9, seed=1), mask)):
        (gradient,) = torch.autograd.grad(term.sum(), logits)
        assert gradient[~mask].abs().sum() == 0
        assert gradient[mask].abs().sum() > 0
        assert gradient.isfinite().all()


def test_a_forbidden_choice_has_probability_exactly_zero() -> None:
    mask = torch.tensor([True, False])
    log_prob = Categorical(2).log_prob(torch.zeros(2), torch.tensor(1), mask)
    assert log_prob.exp().item() == 0
    assert log_prob.isfinite()


def test_a_single_allowed_choice_has_no_entropy() -> None:
    logits, mask = some_logits(3), torch.tensor([False, True, False])
    assert Categorical(3).entropy(logits, mask).item() == 0
    assert Categorical(3).log_prob(logits, torch.tensor(1), mask).item() == 0


@pytest.mark.parametrize("choices", [UNEQUAL, EQUAL])
def test_where_a_mask_allows_nothing_everything_is_as_if_unmasked(choices: tuple[int, ...]) -> None:
    logits, nothing = some_logits(4, 9), torch.zeros(4, 9, dtype=torch.bool)
    many = Multi(choices)
    torch.testing.assert_close(many.entropy(logits, nothing), many.entropy(logits, None))
    assert torch.equal(many.mode(logits, nothing), many.mode(logits, None))


def test_acting_in_inference_mode_first_does_not_hinder_learning() -> None:
    many, logits = Multi((2, 5, 4)), some_logits(8, 11).requires_grad_()
    with torch.inference_mode():
        action = many.sample(logits, None, Generator())
    many.log_prob(logits, action.clone(), None).sum().backward()
    assert logits.grad is not None
    assert logits.grad.abs().sum() > 0


@pytest.mark.parametrize("choices", [UNEQUAL, EQUAL, (9,)])
@pytest.mark.parametrize("weight", [5.0, 1e6])
def test_a_masked_entropy_has_its_gradient_at_any_weight(
    choices: tuple[int, ...], weight: float
) -> None:
    logits, mask = some_logits(8, 9).requires_grad_(), some_mask(8, choices)
    action = torch.zeros(8, len(choices), dtype=torch.int64)
    many = Multi(choices)
    (plain,) = torch.autograd.grad(many.entropy(logits, mask).sum(), logits)
    for entropy in (many.entropy(logits, mask), many.evaluate(logits, action, mask)[1]):
        (gradient,) = torch.autograd.grad(weight * entropy.sum(), logits)
        torch.testing.assert_close(gradient / weight, plain)


def test_the_gradient_of_a_masked_entropy_is_that_of_the_allowed_choices_alone() -> None:
    logits = some_logits(3).requires_grad_()
    (5 * Categorical(3).entropy(logits, torch.tensor([True, False, True]))).backward()
    alone = logits.detach()[[0, 2]].requires_grad_()
    (5 * Reference(logits=alone).entropy()).backward()
    assert logits.grad is not None
    assert alone.grad is not None
    torch.testing.assert_close(logits.grad[[0, 2]], alone.grad)
    assert logits.grad[1].item() == 0


def test_parts_of_unequal_sizes_have_a_gradient_of_their_entropy_at_any_weight() -> None:
    logits = some_logits(9).requires_grad_()
    (1e6 * Multi(UNEQUAL).entropy(logits, None)).backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("choices", [(3, 2, 4, 2), (3, 3, 3, 3)])
def test_a_grid_of_parts_is_a_vector_of_them_in_another_shape(choices: tuple[int, ...]) -> None:
    logits, size = some_logits(6, sum(choices)), (6, 2, 2)
    grid, flat = Multi(choices, (2, 2)), Multi(choices)
    drawn = [x.sample(logits, None, Generator().manual_seed(1)) for x in (grid, flat)]
    assert torch.equal(drawn[0], drawn[1].view(size))
    assert torch.equal(grid.mode(logits, None), flat.mode(logits, None).view(size))
    for one, other in zip(
        grid.evaluate(logits, drawn[0], None), flat.evaluate(logits, drawn[1], None), strict=True
    ):
        assert torch.equal(one, other)
    assert torch.equal(grid.log_prob(logits, drawn[0], None), flat.log_prob(logits, drawn[1], None))
