"""Vector environments, written in C++ or NumPy.

The steps mean the same in every autoreset mode of Gymnasium. Next-step: where an episode ended the
observation is its final one, and the step after it, which only resets, is not valid. Same-step and
disabled: the observation is the next episode's, with the final one beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from operant.core import tree
from operant.core.errors import EnvironmentFault, UsageError
from operant.core.experience import Arrays, EnvStep
from operant.core.spaces import MASK, is_mask
from operant.core.tree import Array
from operant.envs import snapshot
from operant.envs.bounds import BoundsCheck
from operant.envs.check import Guard
from operant.envs.environment import record_spaces
from operant.envs.lives import LIVES, BatchLives, check_lives
from operant.envs.managers.exactness import TRIAL_STEPS, Resumable, random_actions, same_bytes
from operant.envs.managers.simple import restart_step
from operant.envs.preprocessing.action import ActionCheck, ActionPreprocessor
from operant.envs.preprocessing.action_mask import allowed, info_masks, late_mask
from operant.envs.preprocessing.observation import Operation
from operant.envs.providers import atari, envpool

Vector = VectorEnv[Any, Any, Any]
VectorFn = Callable[[int], Vector]  # makes one for a seed; `reset(seed=...)` follows
FINAL = ("final_obs", "final_observation", "terminal_observation")  # newest name first
OPAQUE = ("ale_py", "envpool")  # packages whose vector environments give no access to their state
SEEDS = 2**31  # vector environments written in C take a seed as an int


class NativeEnvManager(Resumable):
    """A vector environment as an EnvironmentManager."""

    obs_preprocessor_gpu = None

    def __init__(
        self,
        env_fn: VectorFn,
        seed: int = 0,
        operations: Sequence[Operation] = (),
        frames_per_step: int = 1,
        env_id: str = "",
        episodic_life: bool = False,
    ) -> None:
        super().__init__(seed)
        self.env_fn, self.operations = env_fn, operations
        self.frames_per_step = frames_per_step
        self.env = env = env_fn(seed)
        self.env_id, self.episodic_life = env_id or type(env).__name__, episodic_life
        self.num_envs, self.env_cls = env.num_envs, type(env)
        self.mode = _mode(env)
        self.guard = Guard(self.env_id, env.single_observation_space, (env.num_envs,))
        self._check_bounds = BoundsCheck(self.env_id, self.guard.spaces)
        self.action_preprocessor = ActionPreprocessor(env.single_action_space)
        info = env.reset()[1]  # only a reset shows whether masks and lives come in the info
        if episodic_life:
            check_lives(self.env_id, info)
        self._lives = BatchLives(info) if episodic_life else None
        self.obs_preprocessor_cpu, self.spaces = record_spaces(
            env.single_observation_space,
            self.action_preprocessor,
            operations,
            info,
            lead=1,
            stacked=atari.is_ale_vector(env) or envpool.stacks_frames(env),
        )
        self._converts = bool(self.obs_preprocessor_cpu.operations)
        self._check, self._lead = ActionCheck(self.spaces.action), (self.num_envs,)
        self._masks = [name for name in self.spaces.observation if is_mask(name)]
        self._no_masks = {name: x for name, x in self._zeros().items() if is_mask(name)}
        self._all, self._none = np.ones(self.num_envs, bool), np.zeros(self.num_envs, bool)
        self._ended = self._none  # where the last step ended an episode that is not reset yet
        self._finish = {
            AutoresetMode.NEXT_STEP: self._next_step,
            AutoresetMode.SAME_STEP: self._same_step,
            AutoresetMode.DISABLED: self._disabled,
        }[self.mode]

    def reset(self, seed: int | None = None) -> Arrays:
        """Begin an episode everywhere; the vector environment derives the seeds from `seed`."""
        seed = self._reset_seed(seed)
        if seed is not None:
            seed %= SEEDS - self.num_envs  # environment i is seeded with `seed + i`
            if envpool.seeded_when_made(self.env):
                self.env.close()
                self.env, seed = self.env_fn(seed), None
        raw, infos = self.env.reset(seed=seed)
        self._ended = self._none
        if self._lives is not None:
            self._lives.begin(infos)
        return self._observe(raw, infos, self._none)

    def step(self, actions: Arrays) -> EnvStep:
        """One action in every environment."""
        self._check_started()
        if self.episodes_lost:
            return restart_step(self._zeros(), self.reset)
        self._check(actions, self._lead)
        self.steps += 1
        self.guard.steps = self.steps
        raw, reward, terminated, truncated, infos = self.env.step(self.action_preprocessor(actions))
        step = self._finish(raw, self.guard.rewards(reward), terminated, truncated, infos)
        return step if self._lives is None else self._lives.mark(step)

    def close(self) -> None:
        """Close the vector environment; a second call does nothing."""
        if not self.closed:
            self.closed = True
            self.env.close()

    def _try_resuming(self) -> bool:
        if any(kind.__module__.startswith(OPAQUE) for kind in type(self.env.unwrapped).__mro__):
            return False
        about = (self.operations, self.frames_per_step, self.env_id, self.episodic_life)
        one, other = (NativeEnvManager(self.env_fn, 1, *about) for _ in range(2))
        try:
            return _continues_alike(one, other)
        except EnvironmentFault:
            return False
        finally:
            one.close()
            other.close()

    def _capture(self) -> dict[str, Any]:
        lives = {} if self._lives is None else {LIVES: self._lives.count.copy()}
        return {"env": snapshot.capture(self.env), "ended": self._ended.copy()} | lives

    def _restore(self, state: dict[str, Any]) -> None:
        snapshot.restore(self.env, state["env"])
        ended = np.asarray(state["ended"], bool)
        self._ended = ended if ended.any() else self._none
        if self._lives is not None:
            self._lives.begin(state)

    def _next_step(
        self, raw: Any, reward: Array, terminated: Array, truncated: Array, infos: dict[str, Any]
    ) -> EnvStep:
        valid = self._all
        if self._ended is not self._none:
            valid = ~self._ended
            reward, terminated, truncated = reward * valid, terminated & valid, truncated & valid
        ended = terminated | truncated
        self._ended = ended if np.count_nonzero(ended) else self._none
        observation = self._observe(raw, infos, ended)
        return EnvStep(observation, reward, terminated, truncated, valid, None, infos)

    def _same_step(
        self, raw: Any, reward: Array, terminated: Array, truncated: Array, infos: dict[str, Any]
    ) -> EnvStep:
        ended = terminated | truncated
        observation = self._observe(raw, infos, self._none)
        final = None
        if np.count_nonzero(ended):
            last = infos.get("final_info", {})
            final = self._observe(_final(raw, ended, infos, self.guard), last, self._all)
            infos = infos | {k: v for k, v in last.items() if k.endswith("is_success")}
        return EnvStep(observation, reward, terminated, truncated, self._all, final, infos)

    def _disabled(
        self, raw: Any, reward: Array, terminated: Array, truncated: Array, infos: dict[str, Any]
    ) -> EnvStep:
        ended = terminated | truncated
        observation, final = self._observe(raw, infos, ended), None
        if np.count_nonzero(ended):
            final = {name: x.copy() for name, x in observation.items()}
            raw, info = self.env.reset(options={"reset_mask": ended})
            fresh = self._observe(raw, info, ~ended)
            if self._lives is not None:
                infos = infos | {LIVES: _where(ended, info[LIVES], infos[LIVES])}
            observation = {k: _where(ended, fresh[k], x) for k, x in final.items()}
        return EnvStep(observation, reward, terminated, truncated, self._all, final, infos)

    def _observe(self, raw: Any, infos: dict[str, Any], ended: Array) -> Arrays:
        """Checked and preprocessed arrays; masks may be missing where an episode `ended`."""
        observation = self.guard.observation(raw)
        self._check_bounds(observation, self.steps)
        if self._masks or MASK in infos:
            masks = info_masks(infos)
            if late := late_mask(masks, self._masks):
                raise self.guard.fault(late)
            observation = self._no_masks | observation | masks
        if self._converts:
            observation = self.obs_preprocessor_cpu(observation)
        for name in self._masks:
            empty = ~np.any(observation[name], axis=-1)
            if empty.any():
                if (empty & ~ended).any():
                    row = int(np.argmax(empty & ~ended))
                    raise self.guard.fault(f"{name!r} allows no action; expected at least one", row)
                observation[name] = observation[name] | empty[:, None]
        return observation

    def _zeros(self) -> Arrays:
        shapes = self.spaces.observation.items()
        return {k: np.zeros((self.num_envs, *(s.shape or ())), s.dtype) for k, s in shapes}


def _mode(env: Vector) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode")
    try:
        return mode if isinstance(mode, AutoresetMode) else AutoresetMode(mode)
    except ValueError:
        raise UsageError(
            f"{type(env).__name__}: metadata['autoreset_mode'] = {mode!r}; expected one of "
            f"{[m.value for m in AutoresetMode]}, which say what follows the end of an episode"
        ) from None


def _final(raw: Any, ended: Array, infos: dict[str, Any], guard: Guard) -> Any:
    """Observations `raw` with the final ones in the rows that ended."""
    found = next((infos[name] for name in FINAL if name in infos), None)
    if found is None:
        raise guard.fault(f"an episode ended, but info has none of {', '.join(FINAL)}")
    if isinstance(found, np.ndarray) and found.dtype == object:
        return _with_rows(raw, ended, list(found[ended]))
    return found  # already one array for all, as ALE and dicts of arrays


def _with_rows(raw: Any, ended: Array, values: list[Any]) -> Any:
    if isinstance(raw, dict):
        return {k: _with_rows(x, ended, [value[k] for value in values]) for k, x in raw.items()}
    if isinstance(raw, tuple):
        return tuple(_with_rows(x, ended, [v[i] for v in values]) for i, x in enumerate(raw))
    whole = np.array(raw)
    whole[ended] = np.stack([np.asarray(value) for value in values])
    return whole


def _where(where: Array, fresh: Array, x: Array) -> Array:
    return np.where(where.reshape(-1, *(1,) * (x.ndim - 1)), fresh, x)


def _continues_alike(one: NativeEnvManager, other: NativeEnvManager) -> bool:
    """Whether a snapshot of one, restored into the other, continues like the original."""
    rng = np.random.default_rng(0)
    actions = [random_actions(one.spaces, rng, one.num_envs) for _ in range(2 * TRIAL_STEPS)]
    before = _play(one, one.reset(1), actions[:TRIAL_STEPS])
    one.exact = True
    other.load_state_dict(one.state_dict())
    last = before[-1][0]
    seen = [_play(manager, last, actions[TRIAL_STEPS:]) for manager in (one, other)]
    return same_bytes([seen[0], one.reset()], [seen[1], other.reset()])


def _play(manager: NativeEnvManager, observation: Arrays, actions: list[Arrays]) -> list[Any]:
    """What the actions lead to; some environments raise on one that their mask forbids."""
    seen: list[Any] = []
    for action in actions:
        step = manager.step(allowed(manager.spaces.action, observation, action))
        seen.append(tree.map(np.copy, list(step[:6])))
        observation = seen[-1][0]
    return seen
