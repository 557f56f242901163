"""The agents under the names and calls of the systems that Operant descends from.

`rlpyt` has the learning half of an agent as rlpyt calls it. Nothing here computes a loss.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.frameworks.rlpyt import AgentInputs as AgentInputs
    from operant.frameworks.rlpyt import AgentTrain as AgentTrain
    from operant.frameworks.rlpyt import BatchSpec as BatchSpec
    from operant.frameworks.rlpyt import OptInfo as OptInfo
    from operant.frameworks.rlpyt import PolicyGradientAlgo as PolicyGradientAlgo
    from operant.frameworks.rlpyt import RLAlgorithm as RLAlgorithm
    from operant.frameworks.rlpyt import RlAlgorithm as RlAlgorithm

__getattr__ = lazy_names(__name__)
