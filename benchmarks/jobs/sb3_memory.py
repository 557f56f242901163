"""GiB that 50k Atari transitions take in Stable-Baselines3's replay; collects them at random."""

# mypy: ignore-errors
# Typed by a library that is not installed where the types are checked.
import time

from stable_baselines3.common.callbacks import BaseCallback

from benchmarks.jobs.definitions import TRAINING
from benchmarks.jobs.probe import arguments, resident, tell
from benchmarks.jobs.sb3_train import dqn, environment


class Start(BaseCallback):
    """Notes the process's size and the time before the first transition."""

    def _on_rollout_start(self) -> None:
        if self.num_timesteps == 0:
            self.before, self.begun = resident(), time.perf_counter()

    def _on_step(self) -> bool:
        return True


def main() -> None:
    asked = arguments()
    _, settings = TRAINING["dqn-pong"]
    agent = {**settings["agent"], "learning_starts": asked.held + 1}
    model, start = dqn(environment(settings["env"]), agent), Start()
    model.learn(asked.held, callback=start)
    seconds, gib = time.perf_counter() - start.begun, (resident() - start.before) / 2**30
    tell(asked, gib, gib=gib, sps=asked.held / seconds, held=asked.held)


if __name__ == "__main__":
    main()
