"""What is found wrong with an environment: faults, and advice."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Findings:
    """Sentences on one environment by what they are about; the first on a subject is kept."""

    env_id: str
    steps: int = 0  # that were taken to find them
    faults: dict[str, str] = field(default_factory=dict)
    advice: dict[str, str] = field(default_factory=dict)

    def fault(self, about: str, sentence: str) -> None:
        """Add what must be mended, with the remedy."""
        self.faults.setdefault(about, sentence)

    def advise(self, about: str, sentence: str) -> None:
        """Add what could be better, if it is no fault already."""
        if about not in self.faults:
            self.advice.setdefault(about, sentence)

    def __bool__(self) -> bool:
        """Whether there are faults."""
        return bool(self.faults)

    def __str__(self) -> str:
        """One line a finding; one line in all if there is none."""
        lines = [f"fault: {sentence}" for sentence in self.faults.values()]
        lines += [f"advice: {sentence}" for sentence in self.advice.values()]
        fine = f"{self.env_id}: no fault in {self.steps} steps"
        return "\n".join(lines if self.faults else [*lines, fine])
