"""Configuration: one tree of frozen dataclasses, read from the command line, a YAML file or Python.

The dataclasses stand beside the code they configure and are the only source of settings.
`from_tree` makes them from nested plain values and checks every value, `parse_flags` reads a
command line, `load_yaml` a file, and `describe` writes the help from the fields' comments. An
unknown name is an error that suggests the right one, also for names that other libraries use.
"""

from operant.config.flags import parse_flags
from operant.config.help import Row, describe, rows
from operant.config.schema import from_tree, to_tree
from operant.config.yaml_file import dump_yaml, load_yaml

__all__ = [
    "Row",
    "describe",
    "dump_yaml",
    "from_tree",
    "load_yaml",
    "parse_flags",
    "rows",
    "to_tree",
]
