"""Tasks with known answers."""


def register() -> None:
    """Register."""
