"""Units of the record: what observations and actions become."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gs

from operant.core.errors import TrainingFault, UsageError
from operant.envs.environment import record_spaces
from operant.envs.preprocessing.action import ActionCheck, ActionPreprocessor
from operant.envs.preprocessing.action_mask import allowed, check_masks, info_masks
from operant.envs.preprocessing.observation import Hide, ObsPreprocessor, standard

Space = gymnasium.Space[Any]
DTYPE: Any = np.bool_  # Gymnasium's Box is typed for floats
BITS = gs.Box(0, 1, (10, 10, 4), DTYPE)


def f32(values: Any) -> Any:
    return np.array(values, np.float32)


def i8(values: Any) -> Any:
    return np.array(values, np.int8)


def convert(space: Space, x: Any) -> tuple[Space, Any]:
    preprocess = ObsPreprocessor(standard({"x": space}))
    return preprocess.space({"x": space})["x"], preprocess({"x": np.asarray(x)})["x"]


@pytest.mark.parametrize(
    ("space", "shape", "dtype"),
    [
        (gs.Box(-1, 1, (3,), np.float64), (3,), "float32"),
        (gs.Box(0, 255, (210, 160, 3), np.uint8), (3, 210, 160), "uint8"),
        (gs.Box(0, 255, (4, 84, 84), np.uint8), (4, 84, 84), "uint8"),
        (BITS, (4, 10, 10), "float32"),
        (gs.Box(0, 1, (10, 10, 10), DTYPE), (10, 10, 10), "float32"),
        (gs.Box(0, 255, (5, 5, 7), np.uint8), (7, 5, 5), "uint8"),
        (gs.Box(0, 255, (8, 5, 5), np.uint8), (8, 5, 5), "uint8"),
        (gs.Box(0, 9, (2,), np.int64), (2,), "float32"),
        (gs.Discrete(5), (5,), "float32"),
        (gs.MultiDiscrete([2, 3]), (5,), "float32"),
        (gs.MultiBinary(4), (4,), "float32"),
    ],
)
@pytest.mark.parametrize("lead", [(), (6,), (2, 3)])
def test_every_space_becomes_what_networks_take(
    space: Space, shape: tuple[int, ...], dtype: str, lead: tuple[int, ...]
) -> None:
    x = np.broadcast_to(np.asarray(space.sample()), (*lead, *(space.shape or ())))
    out, y = convert(space, x)
    assert out.shape == shape
    assert out.dtype == np.dtype(dtype)
    assert y.shape == lead + shape
    assert y.dtype == np.dtype(dtype)


def test_whole_numbers_become_one_hot_from_their_start() -> None:
    assert convert(gs.Discrete(3, start=5), 6)[1].tolist() == [0, 1, 0]
    _, hot = convert(gs.MultiDiscrete([2, 3], start=np.array([1, 0])), [[2, 0], [1, 2]])
    assert hot.tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]


def test_an_image_keeps_its_pixels_when_its_channels_move() -> None:
    space = gs.Box(0, 255, (4, 5, 3), np.uint8)
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    assert convert(space, image)[1][2, 3, 4] == image[3, 4, 2]


@pytest.mark.parametrize("channels", [3, 5, 6])
def test_channels_move_however_many_there_are(channels: int) -> None:
    image = np.arange(25 * channels, dtype=np.uint8).reshape(5, 5, channels)
    moved = convert(gs.Box(0, 255, image.shape, np.uint8), image)[1]
    assert moved[2, 3, 4] == image[3, 4, 2]


def test_a_stack_of_as_many_frames_as_pixels_a_side_stays_a_stack() -> None:
    space, action = gs.Box(0, 255, (6, 6, 6), np.uint8), ActionPreprocessor(gs.Discrete(2))
    preprocess, spaces = record_spaces(space, action, (), {}, stacked=True)
    stack = np.arange(216, dtype=np.uint8).reshape(6, 6, 6)
    assert preprocess({"observation": stack})["observation"].tolist() == stack.tolist()
    assert spaces.stacked == ("observation",)


def test_hiding_leaves_out_entries_of_space_and_array() -> None:
    space = gs.Box(f32([0, 1, 2, 3]), f32([4, 5, 6, 7]))
    hide = Hide("observation", (1, 3))
    assert hide.space(space) == gs.Box(f32([0, 2]), f32([4, 6]))
    assert hide(np.arange(8.0).reshape(2, 4)).tolist() == [[0, 2], [4, 6]]


@pytest.mark.parametrize("indices", [(4,), (-1,), (0, 1, 2, 3)])
def test_hiding_what_is_not_there_is_refused(indices: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="hide ="):
        Hide("observation", indices).space(gs.Box(0, 1, (4,)))


def test_an_operation_on_an_unknown_observation_is_refused() -> None:
    with pytest.raises(UsageError, match="no observation 'pixels'; expected one of x"):
        ObsPreprocessor([Hide("pixels", (0,))]).space({"x": gs.Discrete(2)})


def test_a_bounded_box_action_spans_minus_one_to_one() -> None:
    pre = ActionPreprocessor(gs.Box(f32([-2, 0]), f32([2, 10])))
    assert pre.spaces["action"] == gs.Box(-1, 1, (2,))
    given = f32([[-1, -1], [0, 0], [1, 1], [5, -5]])
    assert pre({"action": given}).tolist() == [[-2, 0], [0, 5], [2, 10], [2, 0]]


@pytest.mark.parametrize(
    ("most", "dtype"), [(3.4e38, np.float32), (1.7e308, np.float64), (2**40, np.int64)]
)
def test_a_box_action_of_any_width_is_rescaled_without_overflow(most: float, dtype: Any) -> None:
    pre = ActionPreprocessor(gs.Box(-most, most, (5,), dtype))
    taken = pre({"action": f32([-1, -0.5, 0, 0.5, 1])})
    assert taken.dtype == dtype
    assert taken.astype(float).tolist() == pytest.approx([-most, -most / 2, 0, most / 2, most])


def test_a_box_of_small_integers_is_rescaled_to_its_bounds() -> None:
    pre = ActionPreprocessor(gs.Box(-128, 127, (3,), i8(0).dtype.type))
    assert pre({"action": f32([-1, 0.004, 1])}).tolist() == [-128, 0, 127]


def test_an_unbounded_box_action_passes_as_it_is() -> None:
    pre = ActionPreprocessor(gs.Box(-np.inf, np.inf, (2,)))
    assert pre({"action": f32([7, -9])}).tolist() == [7, -9]


def test_discrete_actions_count_from_zero_for_agents_and_from_start_for_environments() -> None:
    pre = ActionPreprocessor(gs.Discrete(3, start=-1))
    assert pre.spaces["action"] == gs.Discrete(3)
    assert pre({"action": np.array([0, 2])}).tolist() == [-1, 1]
    assert type(pre({"action": np.array(2)})) is int


def test_actions_take_the_structure_of_the_environment() -> None:
    box, pair = gs.Box(0, 4, (1,)), gs.MultiDiscrete([2, 2])
    pre = ActionPreprocessor(gs.Dict({"a": gs.Discrete(2), "b": gs.Tuple((box, pair))}))
    assert list(pre.spaces) == ["a", "b.0", "b.1"]
    took = pre({"a": np.array(1), "b.0": f32([0]), "b.1": np.array([0, 1])})
    assert took["a"] == 1
    assert [part.tolist() for part in took["b"]] == [[2], [0, 1]]


@pytest.mark.parametrize(
    ("space", "action", "message"),
    [
        (gs.Discrete(3), np.array([0, 3]), "expected values in Discrete"),
        (gs.Discrete(3), np.array([0, -1]), "expected values in Discrete"),
        (gs.Discrete(3), np.array([0.0, 1.0]), "expected values in Discrete"),
        (gs.Discrete(3), np.array([0, 1, 2]), r"shape \(3,\); expected \(2,\)"),
        (gs.MultiDiscrete([2, 2]), np.array([[0, 1], [2, 0]]), "MultiDiscrete"),
        (gs.MultiBinary(1), np.array([[0], [2]]), "MultiBinary"),
    ],
)
def test_an_action_outside_its_space_is_refused(space: Space, action: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ActionCheck({"action": space})({"action": action}, (2,))


def test_an_action_that_is_no_number_is_a_fault_of_training() -> None:
    with pytest.raises(
        TrainingFault,
        match=r"\[\[ 0.\] \[nan\]\]: .* the policy has diverged",
    ):
        ActionCheck({"action": gs.Box(-1, 1, (1,))})({"action": np.array([[0.0], [np.nan]])}, (2,))


def test_a_missing_action_is_refused() -> None:
    with pytest.raises(UsageError, match="'b' is missing; expected a, b"):
        ActionCheck({"a": gs.Discrete(2), "b": gs.Discrete(2)})({"a": np.zeros(1, int)}, (1,))


def test_masks_told_in_the_info_become_bool_observations() -> None:
    masks = info_masks({"action_mask": {"move": i8([1, 0]), "say": (np.ones(1), np.zeros(2))}})
    assert {name: mask.tolist() for name, mask in masks.items()} == {
        "action_mask.move": [True, False],
        "action_mask.say": [True, False, False],
    }


@pytest.mark.parametrize(
    ("space", "mask", "wanted", "taken"),
    [
        (gs.Discrete(4), [[0, 1, 0, 1], [1, 1, 1, 1]], [2, 2], [3, 2]),
        (gs.Discrete(4), [[1, 1, 0, 0], [0, 1, 0, 0]], [2, 3], [0, 1]),
        (gs.MultiDiscrete([2, 3]), [[0, 1, 1, 0, 1]], [[0, 1]], [[1, 2]]),
        (gs.MultiBinary(2), [[1, 0, 0, 1]], [[1, 0]], [[0, 1]]),
    ],
)
def test_an_action_that_a_mask_forbids_becomes_the_next_one_allowed(
    space: Space, mask: Any, wanted: Any, taken: Any
) -> None:
    observation = {"action_mask": np.array(mask, bool)}
    found = allowed({"action": space}, observation, {"action": np.array(wanted)})
    assert found["action"].tolist() == taken


def test_actions_without_a_mask_stay_as_they_are() -> None:
    spaces: dict[str, Space] = {"move": gs.Discrete(2), "turn": gs.Box(-1, 1, (1,))}
    observation = {"action_mask.move": np.array([False, True])}
    found = allowed(spaces, observation, {"move": np.array(0), "turn": f32([0.5])})
    assert found["move"].tolist() == 1
    assert found["turn"].tolist() == [0.5]


def test_a_mask_in_the_info_extends_the_spaces() -> None:
    action = ActionPreprocessor(gs.Discrete(3))
    _, spaces = record_spaces(gs.Discrete(2), action, (), {"action_mask": i8([1, 1, 0])})
    assert spaces.observation["action_mask"].shape == (3,)
    assert spaces.observation["action_mask"].dtype == np.dtype(bool)


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("action_mask", 2, "only discrete"),
        ("action_mask.action", 2, "only discrete"),
        ("action_mask.other", 2, "masks no action; expected action_mask.action"),
    ],
)
def test_a_mask_without_a_discrete_action_is_refused(name: str, size: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_masks({name: gs.MultiBinary(size)}, {"action": gs.Box(-1, 1, (2,))})


def test_a_mask_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(UsageError, match=r"shape \(4,\); expected \(5,\)"):
        check_masks({"action_mask": gs.MultiBinary(4)}, {"action": gs.MultiDiscrete([2, 3])})
