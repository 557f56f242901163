"""The mathematics of reinforcement learning as pure functions of tensors.

Returns and advantages, losses of policies and values, distributions over actions, exploration. Each
function says its equation and where it is from; none keeps state or knows of an agent.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.ops.categorical import Categorical as Categorical
    from operant.ops.categorical import MultiCategorical as MultiCategorical
    from operant.ops.distribution import ActionDistribution as ActionDistribution
    from operant.ops.distribution import distribution_for as distribution_for
    from operant.ops.distribution import masks_of as masks_of
    from operant.ops.explore import epsilon_greedy as epsilon_greedy
    from operant.ops.gaussian import Gaussian as Gaussian
    from operant.ops.policy import clipped_surrogate as clipped_surrogate
    from operant.ops.policy import explained_variance as explained_variance
    from operant.ops.policy import policy_gradient as policy_gradient
    from operant.ops.reparameterized import SquashedGaussian as SquashedGaussian
    from operant.ops.returns import discounted as discounted
    from operant.ops.returns import gae as gae
    from operant.ops.returns import n_step as n_step
    from operant.ops.returns import retrace as retrace
    from operant.ops.returns import vtrace as vtrace
    from operant.ops.value import dueling as dueling
    from operant.ops.value import expected_q as expected_q
    from operant.ops.value import greedy as greedy
    from operant.ops.value import huber as huber
    from operant.ops.value import hysteretic as hysteretic
    from operant.ops.value import q_of as q_of

__getattr__ = lazy_names(__name__)
