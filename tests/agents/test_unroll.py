"""Running networks over experience, and taking it apart."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from worked import Column, column, record, sloped, table, totalling

from operant.agents.advantages import Batch, values
from operant.agents.unroll import passes, unroll
from operant.core.experience import HiddenState, Tensors, substate
from operant.networks.custom import CustomNetwork

STATES = Column([3, 1, 2, 0], [0, 0, 0])
VALUES = [[0.0], [10.0], [20.0], [30.0]]


def test_a_network_without_memory_sees_the_rows_asked_for() -> None:
    network = table(value=VALUES)
    assert column(unroll(network, record(STATES), None)["value"]) == [30, 10, 20, 0]
    assert column(unroll(network, record(STATES), None, (1, 3))["value"]) == [10, 20]


def test_a_network_with_memory_starts_at_the_first_row_whatever_is_asked_for() -> None:
    chunk = record(STATES, total=torch.full((4, 1, 1), 5.0))
    chunk = chunk._replace(first=torch.zeros(4, 1, dtype=torch.bool))
    out = unroll(totalling(value=[1.0]), chunk, None, (1, 3))
    assert column(out["value"]) == [5 + 3 + 1, 5 + 3 + 1 + 2]


def test_memory_is_fresh_at_every_first() -> None:
    rows = Column([3, 1, 2, 4], [0, 0, 0], first=(0, 2))
    chunk = record(rows, total=torch.full((4, 1, 1), 5.0))
    assert column(unroll(totalling(value=[1.0]), chunk, None)["value"]) == [3, 4, 2, 6]


def test_environments_keep_memories_apart() -> None:
    columns = [Column([1, 1], [0], first=()), Column([2, 2], [0], first=())]
    chunk = record(*columns, total=torch.tensor([[[10.0], [20.0]]] * 2))
    out = unroll(totalling(value=[1.0]), chunk, None)["value"]
    assert out.squeeze(-1).tolist() == [[11, 22], [12, 24]]


def test_only_the_outputs_asked_for_come_back() -> None:
    network = table(value=VALUES, action=VALUES)
    assert list(unroll(network, record(STATES), ("action",))) == ["action"]


class Late(nn.Module):
    """Remembers states, and adds what is decided late."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        total = state["total"] + observation["state"][:, None] * self.scale
        return {"value": total + observation["action.a"]}, HiddenState(total=total)


def test_late_inputs_meet_their_own_rows() -> None:
    late = {"action.a": torch.tensor([[[0.1]], [[0.2]]])}
    feed_forward = sloped(value=VALUES, slope=[[1.0]] * 4)
    out = unroll(feed_forward, record(STATES), None, (1, 3), late=late)["value"]
    torch.testing.assert_close(out.flatten(), torch.tensor([10.1, 20.2]))
    chunk = record(STATES, total=torch.zeros(4, 1, 1))
    out = unroll(CustomNetwork(Late(), {"total": (1,)}), chunk, None, (1, 3), late=late)["value"]
    torch.testing.assert_close(out.flatten(), torch.tensor([4.1, 6.2]))


def test_a_late_input_leaves_the_batch_as_it_was() -> None:
    chunk = record(STATES)
    late = {"action.a": torch.zeros(4, 1, 1)}
    unroll(sloped(value=VALUES, slope=[[1.0]] * 4), chunk, None, late=late)
    assert list(chunk.observation) == ["state"]


def test_a_networks_state_is_told_apart_by_its_name() -> None:
    one, two = torch.zeros(1), torch.ones(1)
    state = {"critic1.h": one, "critic10.h": two}
    assert substate(state, "critic1") == {"h": one}
    assert substate({"h": two}, "") == {"h": two}


def test_values_now_and_next_are_one_row_apart() -> None:
    now, after = values(table(value=VALUES), record(STATES))
    assert (column(now), column(after)) == ([30, 10, 20], [10, 20, 0])


def test_a_replaced_row_leads_to_its_final_observation_and_no_other_does() -> None:
    columns = [
        Column([3, 1, 2, 0], [0, 0, 0], terminated=(1,), replaced={1: 3}),
        Column([1, 1, 1, 1], [0, 0, 0], truncated=(0, 2), replaced={0: 2, 2: 0}),
    ]
    now, after = values(table(value=VALUES), record(*columns))
    assert after.T.tolist() == [[10, 30, 0], [20, 10, 0]]
    assert now.T.tolist() == [[30, 10, 20], [10, 10, 10]]


def test_final_observations_of_several_environments_meet_their_own_memories() -> None:
    columns = [
        Column([1, 1, 1], [0, 0], truncated=(1,), first=(0, 2), replaced={1: 4}),
        Column([2, 2, 2], [0, 0], truncated=(0,), first=(0, 1), replaced={0: 5}),
    ]
    carried = torch.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 2.0]])[..., None]
    _, after = values(totalling(value=[1.0]), record(*columns, total=carried))
    assert after.T.tolist() == [[2, 2 + 4], [2 + 5, 4]]


def batch_of(valid: Tensor) -> Batch:
    """A batch in which every field tells which step it is."""
    steps, envs = valid.shape
    number = torch.arange(steps * envs).view(steps, envs)
    return Batch({"x": number}, {}, number, {"a": number}, number, number, number, valid)


VALID = torch.ones(4, 5, dtype=torch.bool).index_put(
    (torch.tensor([1, 3]), torch.tensor([2, 4])), torch.tensor(False)
)


def numbers(parts: list[tuple[Batch, Tensor | None]]) -> list[list[int]]:
    return [part.target.flatten().tolist() for part, _ in parts]


def test_minibatches_hold_each_valid_step_once_and_no_other() -> None:
    parts = shuffled(batch_of(VALID), 6, 0)
    seen = numbers(parts)
    assert [len(part) for part in seen] == [6, 6, 6]
    assert sorted(n for part in seen for n in part) == [n for n in range(20) if n not in (7, 19)]
    assert all(mask is None for _, mask in parts)


def test_every_field_of_a_minibatch_holds_the_same_steps() -> None:
    for part, _ in shuffled(batch_of(VALID), 6, 0):
        fields = (part.observation["x"], part.first, part.action["a"], part.log_prob)
        assert all(x.tolist() == part.target.tolist() for x in (*fields, part.advantage))


def test_minibatches_are_of_nearly_equal_size() -> None:
    sizes = [len(part) for part in numbers(shuffled(batch_of(VALID), 7, 0))]
    assert sizes == [6, 6, 6]
    assert [len(p) for p in numbers(shuffled(batch_of(VALID), 100, 0))] == [18]


def shuffled(batch: Batch, size: int, seed: int) -> list[tuple[Batch, Tensor | None]]:
    return list(next(passes(batch, 1, size, False, torch.Generator().manual_seed(seed))))


def test_the_order_of_minibatches_is_the_generators() -> None:
    orders = [numbers(shuffled(batch_of(VALID), 6, seed)) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


def test_each_pass_is_shuffled_anew() -> None:
    generator = torch.Generator().manual_seed(0)
    one, other, *more = (numbers(list(x)) for x in passes(batch_of(VALID), 2, 6, False, generator))
    assert not more
    assert one != other
    assert sorted(n for part in one for n in part) == sorted(n for part in other for n in part)


def test_images_keep_their_numbers_whatever_the_order_they_lie_in() -> None:
    images = torch.arange(4 * 5 * 2 * 3 * 3, dtype=torch.uint8).reshape(4, 5, 2, 3, 3)
    batch = batch_of(VALID)._replace(observation={"x": images})
    for part, _ in shuffled(batch, 6, 0):
        seen = part.observation["x"]
        assert torch.equal(seen[0], images.flatten(0, 1)[part.target[0].long()])
        assert seen[0].is_contiguous(memory_format=torch.channels_last)


def test_with_memory_whole_environments_are_shuffled_in_order_with_their_mask() -> None:
    parts = list(next(passes(batch_of(VALID), 1, 8, True, torch.Generator().manual_seed(0))))
    assert [part.target.shape for part, _ in parts] == [(4, 2), (4, 2), (4, 1)]
    columns = [c for part, _ in parts for c in part.target.T.tolist()]
    assert sorted(columns) == [[b, b + 5, b + 10, b + 15] for b in range(5)]
    for part, mask in parts:
        assert mask is not None
        expected = [[n not in (7, 19) for n in row] for row in part.target.tolist()]
        assert mask.tolist() == expected
