"""What every framework has: a user's models, files, learning rates and pictures of models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from operant.core.errors import UsageError, suggest
from operant.core.state import restore, state_of
from operant.frameworks.episode import Step
from operant.frameworks.files import load_models, save_models
from operant.frameworks.rates import warn_of_products
from operant.frameworks.user_optimizer import UserOptimizer

OptimizerClass = Callable[..., torch.optim.Optimizer]


class Framework:
    """An agent over modules of a user's own, in a loop of the user's own.

    Settings are attributes under the names of the constructor, and may be changed at any time.
    """

    _is_top: ClassVar[list[str]] = []  # attributes that are models
    _is_restorable: ClassVar[list[str]] = []  # those that are saved
    _pairs: ClassVar[dict[str, str]] = {}  # target model: the model that starts as its copy
    _numbers: ClassVar[tuple[str, ...]] = ()  # attributes that change by themselves

    batch_size: int | None = 100  # steps in a minibatch
    discount: float = 0.99  # discount factor
    gradient_max: float = float("inf")  # gradient clipping: the largest norm
    replay_size: int = 500_000  # size of the replay buffer, in steps
    replay_device: str = "cpu"  # checked, and otherwise without effect: rows lie in main memory
    replay_buffer: Any = None  # a buffer of one's own
    lr_scheduler: Callable[..., LRScheduler] | None = None  # as in torch.optim.lr_scheduler
    lr_scheduler_args: Sequence[Sequence[Any]] | None = None  # one tuple for each optimizer
    lr_scheduler_kwargs: Sequence[Mapping[str, Any]] | None = None  # likewise
    visualize: bool = False  # draw the models when they first learn
    visualize_dir: str = ""  # where to

    def __init__(self, models: Mapping[str, nn.Module], settings: Mapping[str, Any]) -> None:
        known = self._setting_names()
        for name in settings:
            if name not in known:
                near = suggest(name, known)
                raise UsageError(f"{type(self).__name__}: {name!r} is no setting{near}")
        for name, model in models.items():
            if not isinstance(model, nn.Module):
                raise UsageError(f"{name} is a {type(model).__name__}; expected an nn.Module")
        self.__dict__.update(settings, **models)
        torch.device(self.replay_device)  # refuses what is no device
        self._optimizers: dict[str, torch.optim.Optimizer] = {}
        self._schedulers: dict[str, LRScheduler] = {}
        self._backward: Callable[[Tensor], object] = Tensor.backward
        self._copy_targets()
        for model in models.values():
            model.eval()

    @classmethod
    def _setting_names(cls) -> set[str]:
        """Annotated attributes with a default: what the constructor takes besides models."""
        noted = {name for base in cls.__mro__ for name in vars(base).get("__annotations__", {})}
        return {name for name in noted if name in dir(cls) and not name.startswith("_")}

    # Models

    @property
    def top_models(self) -> list[nn.Module]:
        """All models."""
        return [getattr(self, name) for name in self._is_top]

    @property
    def restorable_models(self) -> list[nn.Module]:
        """The models that are saved."""
        return [getattr(self, name) for name in self._is_restorable]

    def save(
        self,
        model_dir: str | PathLike[str],
        network_map: Mapping[str, str] | None = None,
        version: int = 0,
    ) -> None:
        """Write each restorable model into `<name>_<version>.pt`; see `network_map` for names."""
        models = {name: getattr(self, name) for name in self._is_restorable}
        save_models(models, model_dir, network_map, version)

    def load(
        self,
        model_dir: str | PathLike[str],
        network_map: Mapping[str, str] | None = None,
        version: int = -1,
    ) -> None:
        """Load the models of this version, or of the newest that all of them have."""
        models = {name: getattr(self, name) for name in self._is_restorable}
        load_models(models, model_dir, network_map, version)
        self._copy_targets()

    @torch.no_grad()
    def _copy_targets(self) -> None:
        """Each model starts as its target."""
        for target, online in self._pairs.items():
            getattr(self, online).load_state_dict(getattr(self, target).state_dict())

    # Optimizers and learning rates

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        """All optimizers."""
        return list(self._optimizers.values())

    @property
    def lr_schedulers(self) -> list[LRScheduler]:
        """All schedulers of learning rates."""
        return list(self._schedulers.values())

    def update_lr_scheduler(self) -> None:
        """One step of every scheduler, if there are any."""
        for scheduler in self._schedulers.values():
            scheduler.step()

    def set_backward_function(self, backward: Callable[[Tensor], object]) -> None:
        """Call this with every loss, in place of its `backward`."""
        if not callable(backward):
            raise UsageError(f"backward = {backward!r}: expected a function of a loss")
        self._backward = backward

    def _make_optimizers(self, optimizer: OptimizerClass, rates: Mapping[str, float]) -> None:
        """An optimizer, and a scheduler if one was asked for, for each model with a rate."""
        for name, rate in rates.items():
            self._optimizers[name] = optimizer(self._parameters_of(name), lr=rate)
        if self.lr_scheduler is None:
            return
        args = self.lr_scheduler_args or ((),) * len(rates)
        kwargs = self.lr_scheduler_kwargs or ({},) * len(rates)
        for given, what in ((args, "lr_scheduler_args"), (kwargs, "lr_scheduler_kwargs")):
            if not isinstance(given, Sequence) or len(given) != len(rates):
                raise UsageError(f"{what}: expected {len(rates)}, one each for {', '.join(rates)}")
        for (name, own), a, k in zip(self._optimizers.items(), args, kwargs, strict=True):
            self._schedulers[name] = self.lr_scheduler(own, *a, **k)
        warn_of_products(self.lr_schedulers)

    def _parameters_of(self, name: str) -> list[nn.Parameter]:
        """What the optimizer of this name moves."""
        return list(getattr(self, name).parameters())

    def _optimizer_of(self, *names: str) -> UserOptimizer:
        chosen = [self._optimizers[name] for name in names]
        return UserOptimizer(chosen, self.gradient_max, self._backward)

    # Storing

    def store_episode(self, episode: Sequence[Step]) -> None:
        """Check a whole episode, and store it; nothing is stored if a step has a fault."""
        self.replay_buffer.store_episode(episode)

    def store_transition(self, transition: Step) -> None:
        """Deprecated: store an episode of one step."""
        warnings.warn("store_transition is deprecated; use store_episode", stacklevel=2)
        self.store_episode([transition])

    # State, for exact resume of a loop of one's own

    def _stateful(self) -> dict[str, Any]:
        models = {name: getattr(self, name) for name in self._is_top}
        return {**models, "replay_buffer": self.replay_buffer}

    def state_dict(self) -> dict[str, Any]:
        """Models, optimizers, schedulers, buffer and counts: enough to go on exactly."""
        return {
            "parts": {name: part.state_dict() for name, part in self._stateful().items()},
            "optimizers": {name: own.state_dict() for name, own in self._optimizers.items()},
            "schedulers": {name: own.state_dict() for name, own in self._schedulers.items()},
            "numbers": state_of(self, *self._numbers),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        for name, part in self._stateful().items():
            part.load_state_dict(state["parts"][name])
        for name, own in self._optimizers.items():
            own.load_state_dict(state["optimizers"][name])
        for name, scheduler in self._schedulers.items():
            scheduler.load_state_dict(state["schedulers"][name])
        restore(self, state["numbers"], *self._numbers)
