"""The map of rooms: what may import what, that every room is on it, and what none of them does."""

import ast
import logging
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import aggregator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "aggregator"
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef

SCREEN = 40
"""Lines that are seen at once."""

WITHOUT_TWO_IMPORTERS = {
    "cli": "it is what a person starts",
    "host": "it is a library for those who write their own agent",
    "app": "it is where all the others meet",
}
"""Rooms at the top level that are not shared, and why they stand there all the same."""

WAITING = {"basics", "basics.clock", "basics.signals", "basics.turns"}
"""What stands below the line of the map and may wait, as the map says, beside all of `entry`."""

BOUNDARIES = {
    "downstream.server": "between one server and all others",
}
"""Where any exception may be caught that is not logged there and then."""

OF_LIBRARIES = {
    "deadline": "how anyio has a scope moved",
    "should_exit": "how uvicorn is told to stop",
}
"""Attributes that are set on what is not ours, because that is how it is used."""

CHANGED_IN_PLACE = {
    "cli.environment: sys": "where Python itself writes tracebacks and warnings",
    "cli.logs: record": "how a filter of Python 3.11 has less of it written",
    "config.yaml_document: mapping": "what a branch weighs is summed up as it is read",
    "downstream.http.post: message": "one just decoded, that gets the number of its request",
    "downstream.http.post: self._place": "where a stream was left",
    "downstream.http.round_trips: answer": "one just decoded, that gets the number of its request",
    "downstream.login.interview: client": "how the SDK is told what a client that it has can prove",
    "downstream.login.interview: response": "one just made, that gets the request it answers",
    "downstream.listening: stream": "how a stream ended",
    "downstream.stdio.tail: self._parts[-1]": "what was kept of the newest lines",
    "search.scoring: score": "a tally, summed up in place",
}
"""Objects that are changed by the module that has or makes them, and by no other."""


ACROSS_ROOMS = {
    "cli/files": "samples of files of other programs",
    "conformance": "the official suite, on both sides of us",
    "examples": "the servers of the examples",
    "foreign": "clients and servers that are not ours",
    "loopback": "what tests set up on this machine's own address",
    "processes": "the program as it is started",
    "profiles": "what one client sees of everything",
    "release": "what is to be published, as it is installed",
    "reliability": "faults of every kind",
    "replicas": "several of us behind a gateway",
    "soak": "what takes minutes",
    "stories": "what a person would tell of",
}
"""Folders of tests that are not named like a folder of rooms, and what is in them."""


@cache
def modules() -> Mapping[str, str]:
    """Return the text of every module by its name inside the package."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found[name] = path.read_text(encoding="utf-8")
    return found


def rooms() -> set[str]:
    """Return what stands at the top level."""
    return {name.partition(".")[0] for name in modules()} - {"", "__main__"}


def contract(kind: str) -> Mapping[str, Any]:
    """Return what is agreed on imports."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (found,) = (each for each in contracts if each["type"] == kind)
    return found


def layers() -> list[set[str]]:
    """Return the rooms as the contract orders them, from the outside in."""
    return [set(layer.split(" | ")) for layer in contract("layers")["layers"]]


def on_the_map(page: str = aggregator.__doc__ or "") -> list[str]:
    """Return the rooms of the map, from the top of the page."""
    return re.findall(r"^ {4}(\w+) {2,}\w", page, re.MULTILINE)


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the rooms of ours that a module imports from."""
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{each.name}" for each in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("aggregator."))


def test_imports_point_down_and_the_core_does_no_io() -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    # It sets up logging of its own, and with that switches every other logger off.
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.disabled = False

    assert status == EXIT_STATUS_SUCCESS


def test_the_map_names_every_room_once() -> None:
    assert sorted(on_the_map()) == sorted(rooms())


def test_no_room_stands_on_the_map_above_one_that_may_import_it() -> None:
    depth = {room: number for number, layer in enumerate(layers()) for room in layer}

    depths = [depth[room] for room in on_the_map()]

    assert depths == sorted(depths)


def test_what_the_map_draws_below_the_line_waits_for_nobody() -> None:
    below = set(on_the_map((aggregator.__doc__ or "").partition("──")[2])) - {"entry"}
    agreed = {name.removeprefix("aggregator.") for name in contract("forbidden")["source_modules"]}

    left = {
        name
        for name in modules()
        if name.partition(".")[0] in below and not _is_within(name, agreed)
    }

    assert left == WAITING


def _is_within(name: str, rooms: Collection[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def test_the_map_fits_on_one_screen() -> None:
    assert len((aggregator.__doc__ or "").splitlines()) <= SCREEN


def test_a_room_with_a_single_importer_lives_in_its_folder() -> None:
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for name, text in modules().items():
        own = name.partition(".")[0]
        for room in set(imported(ast.parse(text))) - {own}:
            importers[room].add(own)

    lonely = {room for room in rooms() if len(importers[room] - {"__main__"}) < 2}

    assert lonely == WITHOUT_TWO_IMPORTERS.keys()


def test_tests_are_in_the_folder_of_what_they_test() -> None:
    tests = ROOT / "tests"
    folders = {
        path.parent.relative_to(tests).as_posix()
        for path in tests.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    elsewhere = {each for each in folders if not (PACKAGE / each).is_dir()}

    assert elsewhere == ACROSS_ROOMS.keys()


def test_nothing_is_imported_for_types_alone() -> None:
    found = {name for name, text in modules().items() if "TYPE_CHECKING" in text}

    assert found == set()


def test_frozen_values_are_made_the_short_way() -> None:
    """Each takes three times as long by `dataclasses`, and a start waits for all of them."""
    found = {
        name
        for name, text in modules().items()
        for options in re.findall(r"@dataclass\((.*)\)", text)
        if "frozen=True" in options and "eq=False" not in options
    }

    assert found == set()


def test_any_exception_is_caught_in_silence_only_at_one_boundary() -> None:
    found = [name for name, text in modules().items() for _ in re.findall("noqa:.*BLE001", text)]

    assert sorted(found) == sorted(BOUNDARIES)


def test_no_attribute_is_set_on_an_object_of_another_room() -> None:
    """What is made is complete, and changed by nobody but the module that knows its class."""
    found = {
        f"{name}: {target.rpartition('.')[0]}"
        for name, text in modules().items()
        for target in set_from_outside(ast.parse(text))
    }

    assert found == CHANGED_IN_PLACE.keys()


def test_an_attribute_set_from_outside_is_noticed() -> None:
    text = (
        "class Own:\n"
        "    def change(self):\n"
        "        self.mine = 1\n"
        "        self.other.theirs = 1\n"
        "def work(link):\n"
        "    fresh = Made()\n"
        "    fresh.colour = 1\n"
        "    link.peer += 1\n"
        "    link.on_end = lambda: None\n"
        "    scope.deadline = 3\n"
    )

    found = set_from_outside(ast.parse(text))

    assert found == {"self.other.theirs", "link.peer", "link.on_end"}


def set_from_outside(tree: ast.Module) -> set[str]:
    """Return the attributes that a module sets on other objects than those it has just made."""
    functions = [each for each in ast.walk(tree) if isinstance(each, FUNCTIONS)]
    return {
        ast.unparse(node)
        for scope in functions
        for made in [{*just_made(scope), "self", "cls"}]
        for node in ast.walk(scope)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr not in OF_LIBRARIES
        and not (isinstance(node.value, ast.Name) and node.value.id in made)
    }


def just_made(scope: ast.AST) -> Iterator[str]:
    """Yield the names of variables that are made by calling a class."""
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func)):
                if ast.unparse(func).rpartition(".")[2][:1].isupper():
                    yield name
            case _:
                pass


def test_serving_over_stdio_imports_nothing_it_does_not_need() -> None:
    """Start-up is what every client waits for."""
    program = (
        "import sys, aggregator.cli.serve\n"
        "heavy = {'rapidfuzz', 'jsonschema', 'ruamel', 'tomlkit', 'rich', 'uvloop', 'trio'}\n"
        "heavy |= {'difflib', 'statistics', 'yaml', 'aggregator.upstream.searching'}\n"
        "heavy |= {'aggregator.toolsearch.answer', 'aggregator.search.index'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )

    assert done.stdout.strip() == "[]"


def test_the_entry_takes_the_standard_library_alone() -> None:
    """Whoever hands a client on, or answers it at once, has no time for anything else."""
    found = {
        f"{name}: {module}"
        for name, text in modules().items()
        if name.partition(".")[0] == "entry"
        for module in packages(ast.parse(text))
        if module not in sys.stdlib_module_names
    }

    assert found <= {f"{name}: aggregator" for name in modules()}


def packages(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a module imports from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
