"""Networks, from named observations to named outputs.

`ModularNetwork` is assembled from submodules, typed by the rank of what they take; `CustomNetwork`
is a module of your own; `build_network` makes one from settings. Losses are unknown here.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.networks.assemble import NetworkConfig as NetworkConfig
    from operant.networks.assemble import build_network as build_network
    from operant.networks.custom import CustomNetwork as CustomNetwork
    from operant.networks.ensemble import Ensemble as Ensemble
    from operant.networks.ensemble import build_ensemble as build_ensemble
    from operant.networks.image import ConvNet as ConvNet
    from operant.networks.image import NatureCNN as NatureCNN
    from operant.networks.image import SmallCNN as SmallCNN
    from operant.networks.modular import ModularNetwork as ModularNetwork
    from operant.networks.noisy import NoisyLinear as NoisyLinear
    from operant.networks.normalize import Normalizer as Normalizer
    from operant.networks.normalize import RunningStatistics as RunningStatistics
    from operant.networks.recurrent import LSTM as LSTM
    from operant.networks.split import SplitNetwork as SplitNetwork
    from operant.networks.submodule import Chain as Chain
    from operant.networks.submodule import Identity1D as Identity1D
    from operant.networks.submodule import Identity2D as Identity2D
    from operant.networks.submodule import Identity3D as Identity3D
    from operant.networks.submodule import Identity4D as Identity4D
    from operant.networks.submodule import SubModule as SubModule
    from operant.networks.submodule import SubModule1D as SubModule1D
    from operant.networks.submodule import SubModule2D as SubModule2D
    from operant.networks.submodule import SubModule3D as SubModule3D
    from operant.networks.submodule import SubModule4D as SubModule4D
    from operant.networks.vector import MLP as MLP

__getattr__ = lazy_names(__name__)
