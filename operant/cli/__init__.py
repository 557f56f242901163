"""The command line: a function for each command that `operant` has, and what reports errors.

`main` finds the command; `commands` has `train`, `resume`, `eval`, `play`, `plot` and `list`;
`compare`, `sweep`, `doctor` and `check_env` are modules of their own.
"""
