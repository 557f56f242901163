"""Several agents in one record, with deaths by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from operant.core.experience import Experience, HiddenState
from operant.core.several import as_rows, named_for, own, part_of, seen_by

AGENTS = ("a", "b")


def record() -> Experience:
    """Three steps of two environments: in the first, `a` dies in step 0, and all is over in 1."""
    shown = torch.arange(16.0).view(4, 2, 2)
    end = torch.tensor([[0, 0], [1, 0], [0, 0]]).bool()
    died = torch.zeros(3, 2, 2, dtype=torch.bool)
    died[0, 0, 0] = died[1, 0, 1] = True
    valid = torch.ones(3, 2, 2, dtype=torch.bool)
    valid[1, 0, 0] = False
    rewards = torch.arange(12.0).view(3, 2, 2) * valid
    return Experience(
        observation={"a.x": shown[..., 0], "b.x": shown[..., 1]},
        hidden_state=HiddenState(),
        first=torch.zeros(4, 2, dtype=torch.bool),
        action={"a.move": torch.zeros(3, 2), "b.move": torch.ones(3, 2)},
        memo={},
        reward=rewards.sum(-1),
        terminated=end,
        truncated=torch.zeros_like(end),
        valid=torch.ones(3, 2, dtype=torch.bool),
        final_observation={"a.x": -shown[:3, :, 0], "b.x": -shown[:3, :, 1]},
        replaced=end,
        agents={"reward": rewards, "terminated": died, "valid": valid},
    )


def column(x: Tensor, b: int = 0) -> list[float]:
    """One environment's numbers."""
    found: list[float] = x[:, b].tolist()
    return found


def test_an_agent_that_is_gone_has_no_valid_row_and_no_reward() -> None:
    seen = seen_by(record(), 0)
    assert column(seen.valid) == [True, False, True]
    assert column(seen.terminated) == [True, False, False]
    assert column(seen.reward) == [0.0, 0.0, 8.0]
    assert column(seen.cut) == [True, True, False]


def test_who_lives_when_all_is_over_by_a_limit_is_truncated() -> None:
    chunk = record()
    limit = chunk._replace(terminated=chunk.truncated, truncated=chunk.terminated)
    died = chunk.agents["terminated"].clone()
    died[1, 0, 1] = False
    seen = seen_by(limit._replace(agents=chunk.agents | {"terminated": died}), 1)
    assert column(seen.truncated) == [False, True, False]
    assert column(seen.terminated) == [False, False, False]


def test_what_a_death_led_to_is_the_row_after() -> None:
    mine = part_of(record(), "a", 0)
    assert column(mine.next_observation["x"]) == [4.0, -4.0, 12.0]
    assert list(mine.action) == ["move"]
    assert mine.agents is None


def test_every_agent_is_a_row_of_its_own() -> None:
    rows = as_rows(record(), AGENTS)
    assert rows.observation["x"][1].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert rows.action["move"][0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert rows.reward[2].tolist() == [8.0, 9.0, 10.0, 11.0]
    assert rows.valid[1].tolist() == [False, True, True, True]
    assert rows.replaced[1].tolist() == [True, True, False, False]


def test_rows_are_what_the_agents_would_have_recorded_alone() -> None:
    rows, parts = as_rows(record(), AGENTS), [part_of(record(), k, i) for i, k in enumerate("ab")]
    for i, part in enumerate(parts):
        for name in ("reward", "terminated", "truncated", "valid", "cut", "replaced"):
            assert torch.equal(getattr(rows, name)[:, i::2], getattr(part, name)), name
        assert torch.equal(rows.next_observation["x"][:, i::2], part.next_observation["x"])


def test_masks_keep_what_makes_them_masks() -> None:
    whole = named_for({"x": 1, "action_mask.move": 2}, "a")
    assert whole == {"a.x": 1, "action_mask.a.move": 2}
    assert own(whole | {"ab.x": 3, "action_mask.ab.move": 4}, "a") == {
        "x": 1,
        "action_mask.move": 2,
    }
