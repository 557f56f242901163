"""What a person sees of a run: progress while it trains, then curves, profiles and videos.

`progress` shows a running training, `plot` draws learning curves, `comparison` prints a table of
them (both by `groups` of runs that differ only in the seed, with the `statistics` over seeds),
`profile` tells where the time went, and `play` and `video` show or record a trained agent.
"""

from operant.report.plot import plot_runs
from operant.report.progress import ProgressView
from operant.report.video import write_video

__all__ = ["ProgressView", "plot_runs", "write_video"]
