"""Training, evaluating and watching agents from Python."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from operant.agents.registry import agent_name
from operant.config.values import convert
from operant.core.config import Count, CountOrZero
from operant.core.conversion import quoted
from operant.core.errors import UsageError
from operant.core.experience import Metrics, TrajInfo
from operant.core.objects import check_not_imported
from operant.core.protocols import Agent
from operant.envs.providers.passed import settings_of
from operant.recipes import RECIPES
from operant.report.play import record, show
from operant.report.progress import progress_of
from operant.session.build import build_evaluation
from operant.session.callback_names import name_of_callback
from operant.session.compose import compose
from operant.session.figures import summary
from operant.session.load_run import load_agent
from operant.session.output import lasting_output
from operant.session.run_directory import DONE, find_run
from operant.session.run_settings import RunConfig
from operant.session.runner import Runner
from operant.session.saved_spaces import read_interface
from operant.session.session import Session
from operant.session.trained_policy import Policy, State
from operant.session.try_out import interface_for

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")  # of a run directory
NAMES = "up to 200 letters, digits, and . _ - but none of these in front"


class Run:
    """A run directory, with its configuration and its trained agent."""

    def __init__(self, path: Path, config: RunConfig, agent: Agent) -> None:
        self.path, self.config, self.agent = path, config, agent
        self._policy: Policy | None = None

    def eval(self, episodes: int = 20, seed: int = 1_000) -> Metrics:
        """The mean return over whole episodes without exploration, and more, as in the log."""
        return evaluate(self.config, self.agent, episodes, seed)

    def play(self, out: str | Path | None = None, episodes: int = 1) -> list[TrajInfo]:
        """Watch the agent on screen, or write a .gif or .mp4 file."""
        if out is None:
            return show(self.config, self.agent, episodes)
        return record(self.config, self.agent, Path(out), episodes)

    def policy(self) -> Policy:
        """The trained policy for other programs; none of its environments is needed."""
        return Policy(self.agent, read_interface(self.path) or interface_for(self.config))

    def predict(
        self,
        observation: Any,
        state: State | None = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, State | None]:
        """An action and the recurrent state after it, as Stable-Baselines3's `model.predict`."""
        self._policy = self._policy or self.policy()
        return self._policy.predict(observation, state, episode_start, deterministic)


def train(
    algorithm: str | type[Any],
    env_id: Any = None,
    *,
    recipe: str = "auto",
    name: str = "",
    callbacks: Sequence[Any] = (),
    runs: str | Path = "runs",
    quiet: bool = False,
    from_run: str | Path | None = None,
    **settings: Any,
) -> Run:
    """Train an agent as `operant train` does; settings are those of a configuration file.

    `train("ppo", "CartPole-v1", steps=50_000, seed=2, agent={"lr": 1e-3})`

    `algorithm` is an agent's name, or a class of your own. The environment is an id, a class, a
    function that makes one, or a Gymnasium environment or `VectorEnv`, which is made again; without
    one it is the recipe's own, or CartPole. `network` may be a class or function that makes a
    network: see `networks/by_path.py`. `recipe` names the settings to start from, `"none"` gives
    the plain defaults. `name` is that of the run directory. `from_run` is a run whose weights it
    starts from. `callbacks` are functions and objects, or their names: see `operant.callbacks`.
    Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt once the run is saved.
    """
    check_not_imported()
    called = {"callbacks": [name_of_callback(x) for x in callbacks]} if callbacks else {}
    tree = {**settings, **called, "env": settings_of(env_id, settings.get("env"))}
    config, chosen = compose(agent_name(algorithm), tree, recipe=recipe, recipes=RECIPES)
    origin = None if from_run is None else find_run(from_run, Path(runs))
    session = create_session(config, Path(runs), sys.argv, name, origin)
    if not quiet:
        for line in filter(None, (chosen, session.trial.why)):
            print(line)
    try:
        return _train(session, quiet)
    except UsageError:
        session.discard()
        raise


def resume(
    run: str | Path,
    *,
    steps: int | None = None,
    runs: str | Path = "runs",
    trust: bool = False,
    force: bool = False,
    quiet: bool = False,
) -> Run:
    """Continue a run from its last checkpoint as `operant resume` does; with `steps`, for so long.

    A finished run without `steps` is returned as it is. `force` goes on with settings that were
    changed since and make it another run; `trust` imports code that somebody else's run names.
    """
    path = find_run(run, Path(runs))
    if steps is None and (path / DONE).exists():
        return load(path, trust=trust)
    length = None if steps is None else convert("steps", steps, Count)
    return _train(Session.open(path, trust, force, length), quiet)


def _train(session: Session, quiet: bool) -> Run:
    with lasting_output(), session:
        runner = Runner(session)
        try:
            runner.train(progress_of(runner, quiet))
        finally:
            runner.close()
    if runner.stopped is not None:  # as the signal would have without us, so that loops end
        raise KeyboardInterrupt(runner.stopped)
    return Run(session.run, session.config, runner.container.agent)


def create_session(
    config: RunConfig,
    root: Path,
    argv: Sequence[str],
    name: str = "",
    from_run: Path | None = None,
) -> Session:
    """A new run under `root`: of exactly this name, or of one that says what it is and when."""
    if not name:
        return Session.create(config, root, argv, from_run=from_run)
    if not NAME.fullmatch(name):
        raise UsageError(f"name = {quoted(name)}: expected {NAMES}")
    run = root.absolute() / name
    taken = f"name = {name!r}: {run} exists already; choose another name, or resume that run"
    if run.exists():
        raise UsageError(taken)
    session = Session.create(config, root, argv, name, from_run)
    try:
        session.run = session.run.rename(run)
    except OSError:  # another process took the name meanwhile
        session.discard()
        raise UsageError(taken) from None
    return session


def evaluate(config: RunConfig, agent: Agent, episodes: int, seed: int) -> Metrics:
    """Figures of whole episodes without exploration, by their names in the log."""
    played = build_evaluation(config, episodes, seed).run(agent)
    return summary(played) | {"eval/episodes": episodes}


def build_and_train(
    game: str = "CartPole-v1",
    run_ID: int = 0,  # noqa: N803  # rlpyt's spelling
    cuda_idx: int | None = None,
    algorithm: str = "ppo",
    **settings: Any,
) -> Run:
    """Build sampler, algorithm, agent and runner for a game, and train: rlpyt's example.

    `run_ID` is the seed; `cuda_idx` None trains on the CPU. Settings are those of `train`, such
    as `sampler="parallel"`.
    """
    chosen = {"seed": convert("run_ID", run_ID, CountOrZero), "device": _device(cuda_idx)}
    return train(algorithm, game, **{**chosen, **settings})


def _device(cuda_idx: int | None) -> str:
    """PyTorch's name of the GPU with this index, or of the CPU."""
    if cuda_idx is None:
        return "cpu"
    count = torch.cuda.device_count()
    if type(cuda_idx) is not int or not 0 <= cuda_idx < count:
        raise UsageError(
            f"cuda_idx = {cuda_idx!r}: expected the number of a GPU, counted from 0, and this "
            f"machine has {count}; None trains on the CPU"
        )
    return f"cuda:{cuda_idx}"


def load(run: str | Path, best: bool = False, trust: bool = False) -> Run:
    """A run by its directory, or by its name under `runs`; `best`: as its best evaluation was.

    Code that it names, such as an agent of one's own, is imported if this user made the run on
    this machine; else only with `trust`.
    """
    path = find_run(run, Path("runs"))
    return Run(path, *load_agent(path, trust, best))
