"""The architecture: which package imports which, which names exist, and which know of files."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import operant

PACKAGE = Path(operant.__file__).parent
LEVEL = {
    "core": 0,
    **dict.fromkeys(("config", "processes"), 1),
    **dict.fromkeys(("ops", "networks", "envs", "memory"), 2),
    **dict.fromkeys(("agents", "samplers"), 3),
    **dict.fromkeys(("frameworks", "containers"), 4),
    "session": 5,
    **dict.fromkeys(("report", "recipes", "callbacks"), 6),
    "run": 7,
    "cli": 8,
    "__main__": 9,
}
FILES = {"pathlib", "shutil", "glob", "fileinput", "sqlite3", "csv"}
OPENING = {"open", "fdopen", "mkdir", "makedirs", "rename", "unlink", "mkdtemp", "mkstemp"} | {
    "NamedTemporaryFile",
    "TemporaryDirectory",
}
# Of networks and memories, agents see what core.protocols says; settings of the replay buffer are
# fields of their own.
SEEN_BY_AGENTS = ("core", "ops", "agents", "memory.replay_settings")
# Where hasattr asks for something else than an ability that a protocol could state.
HASATTR = {
    "core/tree.py": "named tuples have no class of their own",
    "envs/managers/choose.py": "os.sched_getaffinity exists only on Linux",
    "envs/snapshot.py": "attributes of foreign environments are walked",
    "networks/submodule.py": "names that nn.ModuleDict reserves",
    "processes/shared_memory.py": "os.memfd_create exists only on Linux",
    "processes/worker.py": "fcntl.F_SETSIG exists only on Linux",
    "session/checkpoint/encoding.py": "named tuples have no class of their own",
}
# Modules below the session that are about files, or about the terminal.
WITH_FILES = {
    *("core/durable.py", "config/yaml_file.py", "config/help.py", "frameworks/files.py"),
    "processes/server_exit.py",  # removes the directory of a socket
}
SOURCES = sorted(PACKAGE.rglob("*.py"))


def home(file: Path) -> str:
    """The package, or the module at the top, that a file belongs to."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def nodes(file: Path) -> list[ast.AST]:
    """The syntax tree of a file, in any order."""
    return list(ast.walk(ast.parse(file.read_text())))


def imports(file: Path) -> Iterator[str]:
    """Dotted names of what a file imports, wherever in it."""
    for node in nodes(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(file: Path) -> Iterator[str]:
    """Our own packages that a file imports from."""
    for name in imports(file):
        top, _, rest = name.partition(".")
        if top == "operant" and rest.split(".")[0] in LEVEL:
            yield rest.split(".")[0]


def test_every_package_has_its_level() -> None:
    found = {home(file) for file in SOURCES} - {"__init__"}
    assert found <= set(LEVEL)
    assert len(found) >= 11


@pytest.mark.parametrize("name", LEVEL)
def test_every_import_points_to_a_lower_layer(name: str) -> None:
    upward = [
        f"{file.relative_to(PACKAGE)} imports {other}"
        for file in SOURCES
        if home(file) == name
        for other in ours(file)
        if other != name and LEVEL[other] >= LEVEL[name]
    ]
    assert upward == []


def test_the_test_sees_imports_at_all() -> None:
    assert set(ours(PACKAGE / "session" / "build.py")) >= {"agents", "containers", "core", "envs"}
    assert "pathlib.Path" in set(imports(PACKAGE / "session" / "run_directory.py"))


def test_no_two_modules_have_one_name() -> None:
    names = Counter(file.stem for file in SOURCES if not file.stem.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


def test_agents_see_neither_networks_nor_memories() -> None:
    allowed = tuple(f"operant.{name}." for name in SEEN_BY_AGENTS)
    others = [
        f"{file.relative_to(PACKAGE)} imports {name}"
        for file in SOURCES
        if home(file) == "agents"
        for name in imports(file)
        if name.startswith("operant.") and not f"{name}.".startswith(allowed)
    ]
    assert others == []


def test_abilities_are_stated_by_protocols_not_found_by_hasattr() -> None:
    asking = {str(file.relative_to(PACKAGE)) for file in SOURCES if "hasattr" in called(file)}
    assert asking - HASATTR.keys() == set()
    assert HASATTR.keys() - asking == set()  # the list does not outlive its reasons


def test_every_package_says_what_it_is_for() -> None:
    silent = [
        str(file.relative_to(PACKAGE))
        for file in SOURCES
        if file.stem == "__init__" and not ast.get_docstring(ast.parse(file.read_text()))
    ]
    assert silent == []


def called(file: Path) -> Iterator[str]:
    """Last names of what a file calls."""
    for node in nodes(file):
        if isinstance(node, ast.Call):
            function = node.func
            yield function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def test_only_the_session_and_what_is_above_it_know_of_files() -> None:
    below = [
        file
        for file in SOURCES
        if LEVEL.get(home(file), 0) < LEVEL["session"]
        and str(file.relative_to(PACKAGE)) not in WITH_FILES
    ]
    knowing = [
        f"{file.relative_to(PACKAGE)}: {name}"
        for file in below
        for name in [*imports(file), *called(file)]
        if name in OPENING or name.partition(".")[0] in FILES or name.startswith("os.path")
    ]
    assert knowing == []


def test_the_command_line_starts_without_torch() -> None:
    slow = ("torch", "gymnasium", "matplotlib", "tensorboard", "imageio")
    code = f"import operant.cli.main, sys; print([m for m in {slow!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
