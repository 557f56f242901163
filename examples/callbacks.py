"""Callbacks: metrics and evaluations of one's own, and a run that ends when it is good enough.

    python examples/callbacks.py

The same from the command line, in this directory:

    operant train ppo --env.id CartPole-v1 --callback callbacks:weight_norm \\
        --callback callbacks:Shorter --callback "operant.callbacks:StopAtReturn(150)"
"""

import operant
from operant.callbacks import Event, StopAtReturn


def weight_norm(event: Event) -> None:
    """A metric of one's own: what `on_log` adds is written to the log."""
    squares = [float(p.detach().square().sum()) for p in event.agent.network.parameters()]
    event.metrics["mine/weight_norm"] = sum(squares) ** 0.5


class Shorter:
    """An evaluation of one's own, with shorter episodes; its best result is kept."""

    def __init__(self) -> None:
        self.best = -float("inf")

    def on_evaluation(self, event: Event) -> None:
        other = event.evaluate(episodes=3, env={"time_limit": 100})
        if not other:  # Ctrl-C
            return
        event.metrics["eval/other_reward"] = other["eval/mean_reward"]
        self.best = max(self.best, other["eval/mean_reward"])

    def on_stop(self, event: Event) -> None:
        print(f"{event.reason} at step {event.step}; best of 100 steps: {self.best:.0f}")

    def state_dict(self) -> dict[str, float]:  # saved with every checkpoint
        return {"best": self.best}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.best = state["best"]


if __name__ == "__main__":
    run = operant.train(
        "ppo",
        "CartPole-v1",
        steps=30_000,
        eval={"every": 5_000, "episodes": 5},
        callbacks=[weight_norm, Shorter(), StopAtReturn(150)],
        quiet=True,
    )
    best = operant.load(run.path, best=True)
    print(f"best weights: {best.eval(episodes=5)['eval/mean_reward']:.0f}")
