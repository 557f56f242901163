"""What everything speaks: the record of experience, the protocols, spaces, settings and errors.

Nothing here knows of a network, an environment or an algorithm. `protocols` is the architecture on
one page; `experience` the one record that all parts pass on.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.core.config import AgentConfig as AgentConfig
    from operant.core.config import Config as Config
    from operant.core.config import Count as Count
    from operant.core.config import CountOrZero as CountOrZero
    from operant.core.config import Fraction as Fraction
    from operant.core.config import NotNegative as NotNegative
    from operant.core.config import Positive as Positive
    from operant.core.config import Range as Range
    from operant.core.config import Rate as Rate
    from operant.core.config import Share as Share
    from operant.core.errors import CheckpointError as CheckpointError
    from operant.core.errors import EnvironmentFault as EnvironmentFault
    from operant.core.errors import TrainingFault as TrainingFault
    from operant.core.errors import UsageError as UsageError
    from operant.core.experience import Arrays as Arrays
    from operant.core.experience import Decision as Decision
    from operant.core.experience import EnvStep as EnvStep
    from operant.core.experience import Experience as Experience
    from operant.core.experience import HiddenState as HiddenState
    from operant.core.experience import Memo as Memo
    from operant.core.experience import Metrics as Metrics
    from operant.core.experience import Tensors as Tensors
    from operant.core.experience import TrajInfo as TrajInfo
    from operant.core.namedarraytuple import namedarraytuple as namedarraytuple
    from operant.core.protocols import Acting as Acting
    from operant.core.protocols import Actor as Actor
    from operant.core.protocols import Agent as Agent
    from operant.core.protocols import Container as Container
    from operant.core.protocols import EnvironmentManager as EnvironmentManager
    from operant.core.protocols import Explorer as Explorer
    from operant.core.protocols import Memory as Memory
    from operant.core.protocols import Network as Network
    from operant.core.protocols import Parts as Parts
    from operant.core.protocols import ReplayMemory as ReplayMemory
    from operant.core.protocols import RolloutMemory as RolloutMemory
    from operant.core.protocols import Rows as Rows
    from operant.core.protocols import Sampler as Sampler
    from operant.core.schedule import Schedule as Schedule
    from operant.core.spaces import Shape as Shape
    from operant.core.spaces import Space as Space
    from operant.core.spaces import Spaces as Spaces

__getattr__ = lazy_names(__name__)
