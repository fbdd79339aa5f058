"""Edit a file that belongs to a person: change what is meant and leave every other byte alone.

Each kind of file is spliced as text and read again: an edit that does not read as it was meant
is refused, and nothing is written.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aggregator.basics.frozen import frozen
from aggregator.cli.clients.documents import jsonc, toml, yaml
from aggregator.cli.clients.documents.trees import (
    Tree,
    dropped,
    found,
    placed,
    pruned,
)

__all__ = [
    "YAML",
    "Format",
    "Tree",
    "UneditableError",
    "format_of",
    "found",
]

Edit = Callable[[str, Sequence[str], Any, bool], str]
Cut = Callable[[str, Sequence[str]], str]


class UneditableError(Exception):
    """A file whose form leaves no safe way to make an edit."""


@frozen(slots=False)
class Format:
    """A way to write nested values down."""

    read: Callable[[str], Tree]
    _put: Edit
    _drop: Cut

    def put(self, text: str, path: Sequence[str], value: object, *, listed: bool = False) -> str:
        """Return the text in which a value stands at a path, or last in a new list there.

        Raises:
            UneditableError: That cannot be done without changing more.
        """
        try:
            meant = placed(self.read(text), path, value, listed=listed)
            return self._checked(self._put(text, path, value, listed), meant)
        except (ValueError, LookupError, RecursionError):
            raise UneditableError from None

    def drop(self, text: str, path: Sequence[str]) -> str:
        """Return the text in which nothing stands at a path.

        Raises:
            UneditableError: That cannot be done without changing more.
        """
        try:
            meant = dropped(self.read(text), path)
            return self._checked(self._drop(text, path), meant)
        except (ValueError, LookupError, RecursionError):
            raise UneditableError from None

    def _checked(self, changed: str, meant: Tree) -> str:
        if pruned(self.read(changed)) != pruned(meant):
            raise UneditableError
        return changed


JSON = Format(jsonc.read, jsonc.put, jsonc.drop)
YAML = Format(yaml.read, yaml.put, yaml.drop)
TOML = Format(toml.read, toml.put, toml.drop)


def format_of(path: Path) -> Format:
    """Return the format of a file, by its name."""
    return {".toml": TOML, ".yaml": YAML, ".yml": YAML}.get(path.suffix.lower(), JSON)
