"""Operant: deep reinforcement learning for PyTorch. Write the agent once, run it anywhere."""

__version__ = "0.1.0"
