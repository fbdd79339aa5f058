"""The map of rooms: what may import what, and that every room is on it."""

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import aggregator

ROOT = Path(__file__).parent.parent


def test_imports_point_down_and_the_core_does_no_io() -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)

    assert status == EXIT_STATUS_SUCCESS


def test_the_map_names_every_room() -> None:
    rooms = {module.name for module in pkgutil.iter_modules(aggregator.__path__)}
    on_the_map = set((aggregator.__doc__ or "").split())

    assert rooms - {"__main__"} - on_the_map == set()


def test_serving_over_stdio_imports_nothing_it_does_not_need() -> None:
    """Start-up is what every client waits for."""
    program = (
        "import sys, aggregator.cli.serve\n"
        "heavy = {'rapidfuzz', 'jsonschema', 'ruamel', 'tomlkit', 'rich', 'uvloop', 'trio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )

    assert done.stdout.strip() == "[]"
