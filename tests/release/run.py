"""Build what is published, twice, and use it as somebody would who has nothing but Python.

    python -m tests.release.run [PYTHON ...]

The wheel is made from the sdist, as `python -m build` does it, so that neither lacks anything. Each
Python named, or this one, gets an empty environment with the wheel in it, and shows the example
servers from a directory that has nothing to do with us.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from aggregator import __version__

ROOT = Path(__file__).parents[2]
FOLDERS = ("aggregator", "benchmarks", "deploy", "docs", "examples", "tests")
FILES = (
    ".gitignore",
    "pyproject.toml",
    "servers.yaml",
    "Containerfile",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
)
GENERATED = shutil.ignore_patterns("__pycache__", "*.pyc", ".DS_Store")
EXAMPLES = {"notes", "files", "board", "text", "units"}
TOOLS = 64
STRANGERS = re.compile(r"^(tests|benchmarks|docs|\.ci)/|\.pyc$|/home/|/tmp/")


BESIDES = ("tests/conftest.py", "docs/teams.md", "deploy/compose.yaml", "Containerfile")
"""Files that stand for what an sdist has besides the package."""


def main(pythons: Sequence[str]) -> int:
    """Build and try; return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        builds = [build(place / name, umask) for name, umask in (("one", 0o022), ("two", 0o077))]
        for first, second in zip(*builds, strict=True):
            _check(
                first.read_bytes() == second.read_bytes(), f"{first.name} is built the same twice"
            )
        sdist, wheel = builds[0]
        look(sdist, wheel)
        for python in pythons or [sys.executable]:
            try_out(python, wheel, place)
    return 0


def build(place: Path, umask: int) -> tuple[Path, Path]:
    """Build from a copy in a directory of its own; return the sdist and the wheel."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, place / name, ignore=GENERATED, copy_function=shutil.copyfile)
    for name in FILES:
        shutil.copyfile(ROOT / name, place / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist"],
        cwd=place,
        check=True,
        capture_output=True,
        umask=umask,
    )
    (sdist,) = (place / "dist").glob("*.tar.gz")
    (wheel,) = (place / "dist").glob("*.whl")
    return sdist, wheel


def look(sdist: Path, wheel: Path) -> None:
    """Check what is in them, and what they say of themselves."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(f"mcp_tool_aggregator-{__version__}.dist-info/METADATA").decode()
    with tarfile.open(sdist) as archive:
        sources = archive.getnames()
    strange = [name for name in names if STRANGERS.search(name)]
    _check(not strange, f"the wheel has nothing but the package{strange or ''}")
    _check("aggregator/py.typed" in names, "the wheel says that it is typed")
    _check("aggregator/example/servers.yaml" in names, "the wheel has the example servers")
    static = ROOT / "aggregator" / "upstream" / "http" / "page" / "static"
    page = [path.relative_to(ROOT).as_posix() for path in static.rglob("*") if path.is_file()]
    _check(len(page) > 1 and set(page) <= set(names), "the wheel has every file of the page")
    _check(any(name.endswith("licenses/LICENSE") for name in names), "the wheel has its licence")
    _check(f"\nVersion: {__version__}\n" in metadata, "the version is that of the package")
    for path in BESIDES:
        _check(any(name.endswith(f"/{path}") for name in sources), f"the sdist has `{path}`")


def try_out(python: str, wheel: Path, place: Path) -> None:
    """Install the wheel into an empty environment and look at the example servers."""
    version = _run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
    venv, elsewhere = place / f"venv{version}", place / f"elsewhere{version}"
    elsewhere.mkdir()
    _run([python, "-m", "venv", str(venv)])
    _run([str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)])
    home = {"HOME": str(elsewhere), "PATH": os.environ["PATH"]}
    for command in ("aggregator", "mcp-tool-aggregator"):
        said = _run([str(venv / "bin" / command), "--version"], cwd=elsewhere, env=home)
        _check(said == f"aggregator {__version__}\n", f"Python {version}: `{command}` is there")
    inspect = [str(venv / "bin" / "aggregator"), "inspect", "--example", "--json", "--wait", "60"]
    catalog = json.loads(_run(inspect, cwd=elsewhere, env=home))
    ready = {each["name"] for each in catalog["servers"] if each["state"] == "ready"}
    _check(ready == EXAMPLES, f"Python {version}: the example servers are ready")
    _check(len(catalog["tools"]) == TOOLS, f"Python {version}: with {TOOLS} tools")


def _run(command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    return subprocess.run(
        command, cwd=cwd, env=env, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def _check(holds: bool, what: str) -> None:
    sys.stdout.write(f"{'passed' if holds else 'failed'}: {what}\n")
    sys.stdout.flush()
    if not holds:
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
