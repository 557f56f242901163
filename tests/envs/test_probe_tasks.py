"""The tasks that test agents have the answers they are said to have."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.envs.managers.exactness import random_actions
from operant.envs.probe_tasks import (
    ACTION_SPACES,
    BOUND,
    CUES,
    PARTS,
    Variant,
    best_return,
    random_return,
)
from operant.envs.providers.gymnasium import GymEnv, make_env

VARIANTS = [
    Variant(sight, deed, mask, memory)
    for sight, deed, mask, memory in product(PARTS, ACTION_SPACES, (False, True), (False, True))
    if not (mask and deed == "box")
]


def match(variant: Variant) -> GymEnv:
    return make_env(EnvConfig(id="operant/MatchAction-v0", kwargs=vars(variant)))


def cue_in(observation: dict[str, Any]) -> int | None:
    """The cue that an observation shows, read from whichever part has it."""
    found = []
    for name, x in observation.items():
        if name.startswith("action_mask"):
            continue
        shown = x[0, 0, :: x.shape[-1] // (CUES + 1)][:CUES] / 255 if x.ndim == 3 else x[:CUES]
        found += np.nonzero(shown)[0].tolist()
    return found[0] if found else None


def answer(env: GymEnv, cue: int) -> dict[str, Any]:
    """The right action in the record's units."""
    amount, choice = (cue - 1) * 0.8, np.array(cue)
    space = env.spaces.action.get("action")
    if space is None:
        return {"choice": choice, "amount": np.full(1, amount, np.float32)}
    if hasattr(space, "nvec"):
        return {"action": np.array([cue, cue % 2])}
    return {"action": np.full(2, amount, np.float32) if space.shape else choice}


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_right_answers_earn_the_best_return(variant: Variant) -> None:
    env = match(variant)
    for seed in range(6):
        observation, total, ended, cue = env.reset(seed=seed), 0.0, False, 0
        while not ended:
            shown = cue_in(observation)
            cue = cue if shown is None else shown
            observation, reward, ended, _, _ = env.step(answer(env, cue))
            total += reward
        assert total == pytest.approx(best_return(variant))


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.observation == "dict"], ids=str)
def test_random_answers_earn_the_random_return(variant: Variant) -> None:
    env, rng, total = match(variant), np.random.default_rng(0), 0.0
    episodes = 400
    for seed in range(episodes):
        observation, ended = env.reset(seed=seed), False
        while not ended:
            action = random_actions(env.spaces, rng)
            for name, mask in observation.items():
                if name.startswith("action_mask"):
                    target = "choice" if name.endswith("choice") else "action"
                    legal = rng.choice(np.nonzero(mask[:CUES])[0])
                    action[target].reshape(-1)[0] = legal
            observation, reward, ended, _, _ = env.step(action)
            total += reward
    assert total / episodes == pytest.approx(random_return(variant), abs=0.06)
    assert random_return(variant) < 0.6 * best_return(variant)


def test_a_forbidden_choice_raises() -> None:
    env = match(Variant(mask=True))
    illegal = np.array(env.reset(seed=0)["action_mask"].argmin())
    with pytest.raises(RuntimeError, match="forbidden by the action mask"):
        env.step({"action": illegal})


def test_with_memory_the_cue_is_seen_once_and_asked_for_last() -> None:
    env = match(Variant(memory=True))
    first = env.reset(seed=0)["observation"]
    rest = [env.step({"action": np.array(0)})[0]["observation"] for _ in range(2)]
    assert first.sum() == 1
    assert [x.tolist() for x in rest] == [[0, 0, 0, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("task", "rewards", "ends"),
    [
        ("ConstantReward", [1], "terminated"),
        ("DelayedReward", [0, 1], "terminated"),
        ("TruncatedForever", [1] * 5, "truncated"),
    ],
)
def test_value_tasks_reward_as_they_say(task: str, rewards: list[float], ends: str) -> None:
    manager = make_manager(EnvConfig(id=f"operant/{task}-v0", num_envs=1), seed=0)
    manager.reset(0)
    seen = []
    for _ in rewards:
        step = manager.step({"action": np.zeros(1, np.int64)})
        seen.append((float(step.reward[0]), bool(getattr(step, ends)[0])))
    assert seen == [(reward, i == len(rewards) - 1) for i, reward in enumerate(rewards)]
    assert (step.terminated ^ step.truncated).tolist() == [True]


def test_observed_reward_is_what_is_seen() -> None:
    env = make_env(EnvConfig(id="operant/ObservedReward-v0", kwargs={"action": "box"}))
    pairs = []
    for seed in range(20):
        seen = float(env.reset(seed=seed)["observation"][0])
        pairs.append((seen, env.step({"action": np.zeros(2, np.float32)})[1]))
    assert {seen for seen, _ in pairs} == {-1.0, 1.0}
    assert all(seen == reward for seen, reward in pairs)


def test_truncated_forever_looks_the_same_at_every_step() -> None:
    env = make_env(EnvConfig(id="operant/TruncatedForever-v0"))
    seen = [env.reset(seed=0)] + [env.step({"action": np.array(0)})[0] for _ in range(5)]
    assert {float(x["observation"][0]) for x in seen} == {0.0}


def test_box_answers_are_given_in_units_of_the_environment() -> None:
    env = match(Variant(action="box"))
    env.reset(seed=0)
    assert env.action_preprocessor({"action": np.ones(2, np.float32)}).tolist() == [BOUND, BOUND]
