"""The command line: `operant train`, `resume`, `eval`, `play`, `plot` and `list`."""
