"""Callbacks for `operant.train(..., callbacks=[...])` and `--callback operant.callbacks:Name(...)`.

What a callback is, and what it is given, is in `operant.session.callbacks`.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.callbacks.stop_at_return import StopAtReturn as StopAtReturn
    from operant.callbacks.weights_and_biases import WeightsAndBiases as WeightsAndBiases
    from operant.session.best import BestCheckpoint as BestCheckpoint
    from operant.session.callbacks import Event as Event

__getattr__ = lazy_names(__name__)
