"""The buffer of frameworks that learn from each episode once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from operant.core.errors import UsageError
from operant.core.experience import Experience
from operant.frameworks.episode import Episode, Step, episode_of, joined


class EpisodeBuffer:
    """Whole episodes in the order in which they were stored, until `clear`."""

    def __init__(self) -> None:
        self.episodes: list[Episode] = []

    def store_episode(self, episode: Sequence[Step]) -> None:
        """Check a whole episode, and keep it."""
        found = episode_of(episode)
        if self.episodes:
            _check_alike(found.chunk, self.episodes[0].chunk)
        self.episodes.append(found)

    def size(self) -> int:
        """Steps held."""
        return sum(len(episode.chunk.reward) for episode in self.episodes)

    def clear(self) -> None:
        """Forget all episodes."""
        self.episodes = []

    def read(self) -> Experience:
        """All episodes as one chunk `[T, 1]`."""
        return joined([episode.chunk for episode in self.episodes])

    def state_dict(self) -> dict[str, Any]:
        """The episodes."""
        return {str(i): tuple(episode) for i, episode in enumerate(self.episodes)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self.episodes = [Episode(*state[str(i)]) for i in range(len(state))]


def _check_alike(chunk: Experience, like: Experience) -> None:
    """Refuse an episode whose states, actions or attributes are not those of the one before."""
    for field in ("observation", "action", "memo"):
        one, other = getattr(chunk, field), getattr(like, field)
        shapes = [{k: (x.shape[1:], x.dtype) for k, x in part.items()} for part in (one, other)]
        if shapes[0] != shapes[1]:
            what = {"observation": "state", "memo": "other attributes"}.get(field, field)
            raise UsageError(f"{what} of the episode: {shapes[0]}; those before had {shapes[1]}")
