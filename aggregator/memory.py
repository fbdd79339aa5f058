"""The small file in which facts outlive a run.

Losing a fact costs a little time, so nothing here ever raises for the sake of one: what cannot be
kept on disk is kept for as long as the process lives.
"""

import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from aggregator.files import replace_file
from aggregator.json import is_plain_object

DIRECTORY = "mcp-tool-aggregator"
MAX_FACTS = 256
"""Facts kept in a section; the oldest leave first."""
MAX_FACT_BYTES = 32 * 1024
"""Bytes of JSON one fact may have, key and value."""
MAX_FILE_BYTES = 1024 * 1024
"""Bytes the whole file may have."""

Section = dict[str, Any]
Fact = tuple[str, str]
"""A section and a key in it."""


class Memory(Protocol):
    """Facts by section and key; values are plain JSON."""

    def get(self, section: str, key: str, /) -> object:
        """Return a remembered value, or `None`."""
        ...

    def put(self, section: str, key: str, value: object, /) -> None:
        """Remember a value until the process ends, and beyond once saved; `None` forgets."""
        ...

    def save(self) -> bool:
        """Write what is new to disk; return whether nothing is left to write."""
        ...


class NoMemory:
    """The memory of an aggregator that was told to remember nothing."""

    def get(self, _section: str, _key: str, /) -> object:
        """Return `None`."""
        return None

    def put(self, _section: str, _key: str, _value: object, /) -> None:
        """Do nothing."""

    def save(self) -> bool:
        """Do nothing, successfully."""
        return True


class Notebook:
    """A memory kept in one file, which other processes may write too."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._sections = {} if path is None else _read(path) or {}
        self._unsaved: dict[Fact, object] = {}

    def get(self, section: str, key: str, /) -> object:
        """Return a remembered value, or `None`."""
        return self._sections.get(section, {}).get(key)

    def put(self, section: str, key: str, value: object, /) -> None:
        """Remember a value; one that is out of all proportion is let go."""
        text = json.dumps(value)
        # What is given back must not depend on whether it has been on disk.
        plain: object = json.loads(text)
        if len(key) + len(text) <= MAX_FACT_BYTES and plain != self.get(section, key):
            self._unsaved[section, key] = plain
            _note(self._sections, section, key, plain)

    def save(self) -> bool:
        """Write what is new to disk, keeping what other processes wrote meanwhile."""
        if not self._unsaved or self._path is None:
            return not self._unsaved

        batch = dict(self._unsaved)
        current = _read(self._path)
        # Not to be read is no reason to write over it.
        if current is None:
            return False
        for (section, key), value in batch.items():
            _note(current, section, key, value)
        return self._replace(self._path, current) and self._settle(current, batch)

    def _replace(self, path: Path, sections: dict[str, Section]) -> bool:
        try:
            _write(path, _fitting(sections))
        except OSError:
            return False
        return True

    def _settle(self, written: dict[str, Section], batch: Mapping[Fact, object]) -> bool:
        """Go on with what is on disk and with what was noted while it was written."""
        later = {fact: value for fact, value in self._unsaved.items() if batch.get(fact) != value}
        for (section, key), value in later.items():
            _note(written, section, key, value)
        self._sections, self._unsaved = written, later
        return not later


def open_memory(
    environment: Mapping[str, str], *, enabled: bool = True, platform: str = sys.platform
) -> Memory:
    """Return the memory of this user on this machine."""
    return Notebook(state_path(environment, platform)) if enabled else NoMemory()


def state_path(environment: Mapping[str, str], platform: str = sys.platform) -> Path | None:
    """Return where a user's state belongs, or `None` where the environment does not say."""
    home = environment.get("HOME", "")
    if platform == "win32":
        base = environment.get("LOCALAPPDATA", "")
    elif platform == "darwin":
        base = home and f"{home}/Library/Application Support"
    else:
        base = _absolute(environment.get("XDG_STATE_HOME", "")) or (home and f"{home}/.local/state")
    return Path(base, DIRECTORY, "state.json") if base else None


def joined(*parts: str) -> str:
    """Return one key for several words, such as a file and a client."""
    return json.dumps(parts, ensure_ascii=False)


def _absolute(path: str) -> str:
    """Return a path only if it is absolute: the XDG rules say to ignore any other."""
    return path if path.startswith("/") else ""


def _note(sections: dict[str, Section], section: str, key: str, value: object) -> None:
    """Put a fact behind all others of its section, so that the first is the oldest."""
    facts = sections.setdefault(section, {})
    facts.pop(key, None)
    if value is not None:
        facts[key] = value
    while len(facts) > MAX_FACTS:
        del facts[next(iter(facts))]


def _fitting(sections: dict[str, Section]) -> str:
    """Return the text of the file, without the oldest facts if they do not fit."""
    text = json.dumps(sections, indent=1)
    while len(text) > MAX_FILE_BYTES:
        largest = max(sections.values(), key=lambda facts: len(json.dumps(facts)))
        for key in list(largest)[: len(largest) // 2 + 1]:
            del largest[key]
        text = json.dumps(sections, indent=1)
    return text


def _read(path: Path) -> dict[str, Section] | None:
    """Return what a file holds; `None` if there is one that cannot be read or moved aside."""
    try:
        return _parsed(_content(path))
    except FileNotFoundError:
        return {}
    except OSError:
        return None
    except (ValueError, RecursionError):
        return _moved_aside(path)


def _content(path: Path) -> str:
    """Read a file, unless it is none or too large to be ours."""
    status = path.stat()
    # Opening a pipe would wait for its other end.
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
        raise ValueError(path)
    return path.read_text(encoding="utf-8")


def _parsed(text: str) -> dict[str, Section]:
    data: object = json.loads(text)
    if not is_plain_object(data):
        raise ValueError(text)
    return {name: facts for name, facts in data.items() if is_plain_object(facts)}


def _moved_aside(path: Path) -> dict[str, Section] | None:
    try:
        path.replace(path.with_suffix(".corrupt"))
    except OSError:
        return None
    return {}


def _write(path: Path, text: str) -> None:
    """Replace a file whole, so that no crash leaves half of one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, text.encode())
