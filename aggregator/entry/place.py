"""Where files are, by what was typed and by the environment: said once, for whoever comes first.

Paths are texts here: `pathlib` takes longer to load than an answer may take.
"""

import os
import sys
from collections.abc import Mapping

CONFIG_VARIABLE = "AGGREGATOR_CONFIG"
DEFAULT_CONFIG = "servers.yaml"
DIRECTORY = "mcp-tool-aggregator"
"""What the directories are called that are ours alone."""


def config_path(
    given: str | None, variables: Mapping[str, str], directory: str, platform: str = sys.platform
) -> str:
    """Say which file to use: the one named, the nearest from here upwards, or the person's own."""
    chosen = given or variables.get(CONFIG_VARIABLE)
    if chosen:
        return _plain(os.path.join(directory, os.path.expanduser(chosen)))
    own = user_config(variables, platform) or _inside(directory, DEFAULT_CONFIG)
    return _nearest(directory) or own


def _plain(path: str) -> str:
    """Leave `..` out of a path, unless it would be another: what is kept of it goes by its name."""
    plain = os.path.normpath(path)
    is_same = plain == path or os.path.realpath(plain) == os.path.realpath(path)
    return plain if is_same else path


def user_config(variables: Mapping[str, str], platform: str = sys.platform) -> str | None:
    """Return the file that holds wherever there is no other; `None` if no home is known."""
    home = variables.get("USERPROFILE" if platform == "win32" else "HOME", "")
    if platform == "win32":
        base = variables.get("APPDATA") or (home and _inside(home, "AppData", "Roaming"))
    elif absolute := _absolute(variables.get("XDG_CONFIG_HOME", "")):
        base = absolute
    elif platform == "darwin":
        base = home and _inside(home, "Library", "Application Support")
    else:
        base = home and _inside(home, ".config")
    return _inside(base, DIRECTORY, DEFAULT_CONFIG) if base else None


def state_directory(variables: Mapping[str, str], platform: str = sys.platform) -> str | None:
    """Return where a user's state belongs, or `None` where the environment does not say."""
    home = variables.get("HOME", "")
    if platform == "win32":
        base = variables.get("LOCALAPPDATA", "")
    elif platform == "darwin":
        base = home and f"{home}/Library/Application Support"
    else:
        base = _absolute(variables.get("XDG_STATE_HOME", "")) or (home and f"{home}/.local/state")
    return _inside(base, DIRECTORY) if base else None


def lock_path(config: str) -> str:
    """Return where what was approved of the servers in a file is written down."""
    stem, suffix = os.path.splitext(config)
    # A file of that name would be written over.
    return f"{config}.lock" if suffix == ".lock" else f"{stem}.lock"


def example_path() -> str:
    """Return the file of the example servers: inside the package, or beside it in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packed = _inside(package, "example", DEFAULT_CONFIG)
    beside = _inside(os.path.dirname(package), DEFAULT_CONFIG)
    return packed if os.path.exists(packed) else beside


def _nearest(directory: str) -> str | None:
    folder = directory
    while True:
        path = _inside(folder, DEFAULT_CONFIG)
        # What others put above us would say which programs we start.
        if os.path.exists(path) and (folder == directory or _is_trusted(path)):
            return path
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _is_trusted(path: str) -> bool:
    return os.name != "posix" or os.stat(path).st_uid in (os.geteuid(), 0)


def _absolute(path: str) -> str:
    """Return a path only if it is absolute: the XDG rules say to ignore any other."""
    return path if path.startswith("/") else ""


def _inside(*parts: str) -> str:
    return os.path.join(*parts)
