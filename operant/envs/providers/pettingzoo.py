"""PettingZoo: environments of several agents that all act at once (its parallel API).

`JointEnv` is such an environment as one of Gymnasium: its observation and action are dicts by
agent, its reward is the sum. What came to each agent is in the info of a step.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs

from operant.core.errors import EnvironmentFault, UsageError, suggest
from operant.core.spaces import AGENTS, MASK, Space, choices

GAME = re.compile(r"(?P<package>[^\W\d][\w.]*):(?P<game>[^\W\d]\w*_v\d+)")
PACKAGES = ("mpe2", "pettingzoo.butterfly", "pettingzoo.sisl")  # whose games are listed
EXTRA = "pip install 'operant[pettingzoo]'"
MAKER = "parallel_env"


def game(env_id: str) -> Callable[..., Any] | None:
    """What makes the game that an id such as `mpe2:simple_spread_v3` names; None: it names none."""
    found = GAME.fullmatch(env_id)
    if found is None:
        return None
    module = f"{found['package']}.{found['game']}"
    try:
        made: Callable[..., Any] | None = getattr(importlib.import_module(module), MAKER, None)
    except ModuleNotFoundError as error:
        _refuse_missing(env_id, found["package"], error.name == module, error)
        return None
    if made is None:
        raise UsageError(
            f"id = {env_id!r}: has no {MAKER!r}: its agents act in turn, and here all act at once; "
            f"convert it by pettingzoo.utils.conversions.turn_based_aec_to_parallel in a function "
            f"of your own, and name that one"
        )
    return made


def _refuse_missing(env_id: str, package: str, only_game: bool, error: ImportError) -> None:
    """An error for a game of a known package that is not there, or needs what is not there."""
    known, _, kind = package.partition(".")
    if known not in ("mpe2", "pettingzoo"):
        return
    if only_game:
        near = [name for name in games() if name.startswith(package)]
        raise UsageError(f"id = {env_id!r}: no such environment{suggest(env_id, near)}") from None
    here = kind and error.name not in ("mpe2", "pettingzoo")
    remedy = f"pip install 'pettingzoo[{kind}]'" if here else EXTRA
    raise UsageError(f"id = {env_id!r} needs a package ({error}): {remedy}") from None


def games() -> list[str]:
    """The games of installed packages."""
    found = []
    for package in PACKAGES:
        try:
            paths = importlib.import_module(package).__path__
        except ImportError:
            continue
        names = [module.name for module in pkgutil.iter_modules(paths)]
        found += [f"{package}:{name}" for name in names if GAME.fullmatch(f"{package}:{name}")]
    return found


def is_parallel(env: Any) -> bool:
    """Whether this is an environment of PettingZoo's parallel API."""
    package = sys.modules.get("pettingzoo")  # one that is not imported has made nothing
    return package is not None and isinstance(env, package.ParallelEnv)


def agents_of(env: gymnasium.Env[Any, Any]) -> tuple[str, ...]:
    """The names of an environment's agents; empty if there is one."""
    return env.unwrapped.names if isinstance(env.unwrapped, JointEnv) else ()


class JointEnv(gymnasium.Env[Any, Any]):
    """All agents of a parallel environment as one.

    An agent that is not there sees zeros, its action is not used, and it is not `valid`. The
    episode ends when none is left: truncated if a time limit took one of the last, else terminated.
    """

    def __init__(self, env: Any, env_id: str = "") -> None:
        self.env, self.env_id = env, env_id or str(env)
        self.metadata, self.render_mode = env.metadata, getattr(env, "render_mode", None)
        self.ids = {str(agent): agent for agent in env.possible_agents}
        self.names = tuple(self.ids)
        if any("." in name for name in self.names):
            raise UsageError(
                f"id = {self.env_id!r}: its agents are {', '.join(self.names)}; expected names "
                f"without a dot"
            )
        seen = {name: env.observation_space(agent) for name, agent in self.ids.items()}
        # Agents whose masks are part of what they see, and those who were given one at any time.
        self.masked = [k for k, x in seen.items() if isinstance(x, gs.Dict) and MASK in x.spaces]
        self.told: list[str] = []
        done = {name: env.action_space(agent) for name, agent in self.ids.items()}
        self.observation_space = self.seen = _by_agent(seen, "observation")
        self.action_space = _by_agent(done, "action")
        self.single = [k for k, x in done.items() if not isinstance(x, gs.Dict)]
        self.horizon: int | None = getattr(env.unwrapped, "max_cycles", None)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        result = self.env.reset(seed=seed, options=options)
        if not isinstance(result, tuple) or len(result) != 2:
            raise EnvironmentFault(
                f"{self.env_id}: reset returns a {type(result).__name__}; return `observations, "
                f"infos`, two dicts by agent"
            )
        observations, infos = result
        return self._seen(observations, ()), self._masks(observations, infos)

    def step(self, action: Mapping[str, Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        acting = [name for name, agent in self.ids.items() if agent in self.env.agents]
        own = {k: action[k]["action"] if k in self.single else action[k] for k in acting}
        result = self.env.step({self.ids[k]: x for k, x in own.items()})
        observations, rewards, terminations, truncations, infos = result
        died = {k for k in acting if terminations.get(self.ids[k], False)}
        cut = {k for k in acting if truncations.get(self.ids[k], False)} - died
        left = {str(agent) for agent in self.env.agents} - died - cut
        reward = [float(rewards.get(self.ids[k], 0.0)) if k in acting else 0.0 for k in self.names]
        each = {
            "reward": np.array(reward, np.float32),
            "terminated": np.array([k in died for k in self.names]),
            "valid": np.array([k in acting for k in self.names]),
        }
        info = {AGENTS: each, **self._masks(observations, infos)}
        over = not left
        seen = self._seen(observations, died)
        return seen, float(sum(reward)), over and not cut, over and bool(cut), info

    def _seen(self, observations: Mapping[Any, Any], died: Any) -> dict[str, Any]:
        """What every agent sees; zeros for one that is not there, as for one of whom none is told.

        Nothing is bootstrapped from what a death led to, so that some environments leave it out.
        """
        found: dict[str, Any] = {}
        for name, agent in self.ids.items():
            if agent not in observations:
                if agent in self.env.agents and name not in died:
                    raise EnvironmentFault(
                        f"{self.env_id}: the observations lack {name!r}, which is among the agents"
                    )
                found[name] = blank(self.seen[name])
            elif isinstance(self.env.observation_space(agent), gs.Dict):
                found[name] = {k: x for k, x in observations[agent].items() if k != MASK}
            else:
                found[name] = {"observation": observations[agent]}
        return found

    def _masks(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> dict[str, Any]:
        """Masks over actions by agent; one that is not there may do anything."""
        masks = {}
        for name, agent in self.ids.items():
            holder = observations if name in self.masked else infos
            mask = (holder.get(agent) or {}).get(MASK)
            if mask is not None and name not in self.told:
                self.told.append(name)
            if name not in self.told:
                continue
            size = sum(choices(self.env.action_space(agent)))
            free = mask is None or not np.any(mask)
            masks[f"{name}.action"] = np.ones(size, bool) if free else np.asarray(mask, bool)
        return {MASK: masks} if masks else {}

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()


def _by_agent(spaces: Mapping[str, Space], name: str) -> gs.Dict:
    """A Dict of every agent's own Dict; a plain space is called `name`, and masks are left out."""
    parts: dict[str, OrderedDict[str, Space]] = {}
    for agent, space in spaces.items():
        own = space.spaces.items() if isinstance(space, gs.Dict) else [(name, space)]
        parts[agent] = OrderedDict((k, x) for k, x in own if k != MASK)
    return gs.Dict(OrderedDict((agent, gs.Dict(own)) for agent, own in parts.items()))


def blank(space: Space) -> Any:
    """Zeros in a space; of integers that do not begin there, the smallest."""
    if isinstance(space, gs.Dict):
        return {key: blank(part) for key, part in space.spaces.items()}
    if isinstance(space, gs.Tuple):
        return tuple(blank(part) for part in space.spaces)
    start = getattr(space, "start", 0)
    return np.full(space.shape or (), start, space.dtype)
