"""What is imported is declared, and what is declared is imported."""

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = {"aggregator"}
EXTRA = {"coredis", "opentelemetry"}
"""What is imported only where an extra is installed; several packages share its name."""

UNNAMED = {"httptools"}
"""What uvicorn imports for us, where it is there."""


def test_every_import_is_of_a_declared_package_and_the_other_way_round() -> None:
    distributions = packages_distributions()
    imported = {
        _plain(distributions[module][0])
        for path in (ROOT / "aggregator").rglob("*.py")
        for module in _imports(path)
        if module not in sys.stdlib_module_names | OURS | EXTRA
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {_plain(re.split(r"[^\w.-]", each)[0]) for each in project["dependencies"]}

    # The semantic extra is looked for by name at run time, and so not among the imports.
    assert imported | UNNAMED == declared


def _imports(path: Path) -> Iterator[str]:
    """Yield the top-level modules that a file imports, at its top or inside."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py")))
def test_every_benchmark_finds_what_it_measures(name: str) -> None:
    assert importlib.import_module(f"benchmarks.{name}").__doc__
