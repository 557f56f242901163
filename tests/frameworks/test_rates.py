"""Learning rates by step."""

from __future__ import annotations

import logging
import warnings

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from operant.core.errors import UsageError
from operant.frameworks.rates import AbsoluteLR, gen_learning_rate_func, warn_of_products

TABLE = [(0, 1e-3), (200, 3e-4)]


def optimizer(lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr)


def test_a_rate_is_constant_until_the_next_row() -> None:
    rate = gen_learning_rate_func(TABLE)
    assert [rate(step) for step in (0, 199, 200, 10**9)] == [1e-3, 1e-3, 3e-4, 3e-4]


def test_a_change_of_the_rate_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        rate = gen_learning_rate_func(TABLE, logging.getLogger("rates"))
        for step in (0, 1, 200, 201):
            rate(step)
    assert [record.getMessage() for record in caplog.records] == [
        "learning rate 0.001 from step 0 on",
        "learning rate 0.0003 from step 200 on",
    ]


@pytest.mark.parametrize("table", [[], [(5, 1e-3), (5, 1e-4)], [(9, 1e-3), (0, 1e-4)]])
def test_a_table_whose_steps_do_not_increase_is_refused(table: list[tuple[int, float]]) -> None:
    with pytest.raises(UsageError, match="whose steps increase"):
        gen_learning_rate_func(table)


def test_absolute_rates_are_set_not_multiplied() -> None:
    own = optimizer(1e-3)
    scheduler = AbsoluteLR(own, gen_learning_rate_func([(0, 1e-2), (2, 1e-4)]))
    seen = []
    for _ in range(3):
        seen.append(own.param_groups[0]["lr"])
        own.step()
        scheduler.step()
    assert seen == [1e-2, 1e-2, 1e-4]


def test_a_product_of_two_small_rates_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"multiplies learning_rate = 0.001 by 0.001.*1e-06"):
        warn_of_products([LambdaLR(optimizer(1e-3), gen_learning_rate_func(TABLE))])


def test_a_factor_is_no_reason_to_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_products([LambdaLR(optimizer(1e-3), lambda step: 0.5)])
        warn_of_products([LambdaLR(optimizer(1.0), gen_learning_rate_func(TABLE))])
