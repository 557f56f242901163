"""One typed tree is the command line, the YAML file and Python at once.

Frozen dataclasses are the only source. `from_tree` reads plain values into them strictly,
`parse_flags` reads a command line, `load_yaml` a file, and `describe` writes the help.
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
