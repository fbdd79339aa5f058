"""The small file in which facts outlive a run.

Losing a fact costs a little time, so nothing here ever raises for the sake of one: what cannot be
kept on disk is kept for as long as the process lives. Facts are noted by one thread; another may
take them to disk meanwhile, and all that it touches is its batch of them and the file.
"""

import json
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from aggregator.basics.files import replace_file
from aggregator.basics.frozen import frozen
from aggregator.basics.json import is_plain_object
from aggregator.entry.place import state_directory

MAX_FACTS = 256
"""Facts kept in a section; the oldest leave first."""
MAX_FACT_BYTES = 32 * 1024
"""Bytes of JSON one fact may have, key and value."""
MAX_FILE_BYTES = 1024 * 1024
"""Bytes the whole file may have."""

Section = dict[str, Any]
Sections = dict[str, Section]
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


@frozen
class Batch:
    """Facts on their way to disk."""

    path: Path | None
    facts: Mapping[Fact, object]

    def write(self) -> Sections | None:
        """Add the facts to the file; return what it holds then, or `None` if they stay unwritten.

        What other processes wrote meanwhile is kept.
        """
        current = _read(self.path) if self.path is not None and self.facts else None
        # Not to be read is no reason to write over it.
        if self.path is None or current is None:
            return None
        for (section, key), value in self.facts.items():
            _note(current, section, key, value)
        try:
            _write(self.path, _fitting(current))
        except OSError:
            return None
        return current


class Notebook:
    """A memory kept in one file, which other processes may write too."""

    def __init__(self, path: Path | None, on_news: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._on_news = on_news
        self._sections = {} if path is None else _read(path) or {}
        self._unsaved: dict[Fact, object] = {}
        self.has_news = False
        """Whether something was noted since facts were last taken to disk."""

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
            self.has_news = True
            self._on_news()

    def take(self) -> Batch:
        """Return what is not on disk yet, to be written and then settled."""
        self.has_news = False
        return Batch(self._path, dict(self._unsaved))

    def settle(self, batch: Batch, written: Sections | None) -> None:
        """Go on with what is on disk and with what was noted while it was written."""
        if written is None:
            return
        self._unsaved = {
            fact: value
            for fact, value in self._unsaved.items()
            if fact not in batch.facts or batch.facts[fact] != value
        }
        self._sections = written
        for (section, key), value in self._unsaved.items():
            _note(written, section, key, value)

    def save(self) -> bool:
        """Write what is new to disk; return whether nothing is left to write."""
        batch = self.take()
        self.settle(batch, batch.write())
        return not self._unsaved


class NoMemory(Notebook):
    """The memory of an aggregator that was told to remember nothing."""

    def __init__(self) -> None:
        super().__init__(None)

    def put(self, _section: str, _key: str, _value: object, /) -> None:
        """Do nothing."""


def open_memory(
    environment: Mapping[str, str],
    *,
    enabled: bool = True,
    platform: str = sys.platform,
    on_news: Callable[[], None] = lambda: None,
) -> Notebook:
    """Return the memory of this user on this machine."""
    return Notebook(state_path(environment, platform), on_news) if enabled else NoMemory()


def state_path(environment: Mapping[str, str], platform: str = sys.platform) -> Path | None:
    """Return where a user's state belongs, or `None` where the environment does not say."""
    directory = state_directory(environment, platform)
    return Path(directory, "state.json") if directory else None


def joined(*parts: str) -> str:
    """Return one key for several words, such as a file and a client."""
    return json.dumps(parts, ensure_ascii=False)


def _note(sections: Sections, section: str, key: str, value: object) -> None:
    """Put a fact behind all others of its section, so that the first is the oldest."""
    facts = sections.setdefault(section, {})
    facts.pop(key, None)
    if value is not None:
        facts[key] = value
    while len(facts) > MAX_FACTS:
        del facts[next(iter(facts))]


def _fitting(sections: Sections) -> str:
    """Return the text of the file, without the oldest facts if they do not fit."""
    text = json.dumps(sections, indent=1)
    while len(text) > MAX_FILE_BYTES:
        largest = max(sections.values(), key=lambda facts: len(json.dumps(facts)))
        for key in list(largest)[: len(largest) // 2 + 1]:
            del largest[key]
        text = json.dumps(sections, indent=1)
    return text


def _read(path: Path) -> Sections | None:
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


def _parsed(text: str) -> Sections:
    data: object = json.loads(text)
    if not is_plain_object(data):
        raise ValueError(text)
    return {name: facts for name, facts in data.items() if is_plain_object(facts)}


def _moved_aside(path: Path) -> Sections | None:
    try:
        path.replace(path.with_suffix(".corrupt"))
    except OSError:
        return None
    return {}


def _write(path: Path, text: str) -> None:
    """Replace a file whole, so that no crash leaves half of one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, text.encode())
