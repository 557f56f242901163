"""Operant: deep reinforcement learning for PyTorch. Write the agent once, run it anywhere.

`train` trains an agent, `resume` continues a run, `load` opens one, `sweep` compares settings; the
packages below hold the parts.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.cli.sweep import sweep as sweep
    from operant.envs.env_checks import check_env as check_env
    from operant.run import Run as Run
    from operant.run import build_and_train as build_and_train
    from operant.run import load as load
    from operant.run import resume as resume
    from operant.run import train as train
    from operant.session.trained_policy import Policy as Policy

__version__ = "0.1.0"
__getattr__ = lazy_names(__name__)
