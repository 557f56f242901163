"""In every environment an agent can be trained, saved, resumed, evaluated and watched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from every_environment import PAGE, Row, env_ids, read, tried

from operant.cli.listing import can_be_made
from operant.envs import EnvConfig, make_manager

ROWS = read(PAGE.read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row.env_id for row in ROWS])
def test_an_environment_does_what_its_row_says(row: Row, tmp_path: Path) -> None:
    if not can_be_made(row.env_id):
        pytest.skip(f"what {row.env_id} needs is not installed")
    assert tried(row.env_id, row.agent, tmp_path) == row


@pytest.mark.slow
def test_the_table_has_every_environment_that_can_be_made_here() -> None:
    assert set(env_ids()) <= {row.env_id for row in ROWS}


def test_the_agents_of_the_table_are_all_of_them() -> None:
    assert {row.agent for row in ROWS} == {"a2c", "dqn", "ppo", "sac"}


@pytest.mark.parametrize("game", ["Backgammon", "VideoCheckers"])
def test_games_whose_actions_lack_a_no_op_begin_alike_alone_and_in_a_batch(game: str) -> None:
    """Their actions begin with FIRE, so neither is action 0 a no-op nor action 1 FIRE."""
    config = EnvConfig(id=f"ALE/{game}-v5", num_envs=2)
    managers = [make_manager(replace(config, manager=kind), 3) for kind in ("simple", "native")]
    alone, batch = (manager.reset(3)["observation"].copy() for manager in managers)
    for manager in managers:
        manager.close()
    assert (alone == batch).all()
