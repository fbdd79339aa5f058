"""What names are made of, and the forms in which they are compared."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import NewType, TypeVar

ServerName = NewType("ServerName", str)
"""A key under `servers:` in servers.yaml."""

ToolName = NewType("ToolName", str)
"""A tool's name as clients see it."""

T = TypeVar("T")

MAX_TEXT = 300
"""Characters a text may have and still be meant as a name."""
CLIENT_MARK = "mcp"
"""What clients put before everything else, if they put anything there."""

PUNCTUATION = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
BOUNDARY = re.compile(r"(?<=[-_./:])(?=[^-_./:])")
"""Where something that a client has put before a name may end."""


def unaccented(text: str) -> str:
    """Return a text without the marks on its letters."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part))


def extent(name: str) -> int:
    """Return how many characters a name has once it is spelt out: one sign may be eighteen."""
    return len(name) if name.isascii() else len(unicodedata.normalize("NFKD", name))


def folded(text: str) -> str:
    """Return a name without what models get wrong: letter case and punctuation."""
    return flattened(text).strip("_")


def flattened(text: str) -> str:
    """Return the same of a part of a name, with the signs that it begins and ends with."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return PUNCTUATION.sub("_", plain.casefold())


def worded(text: str) -> str:
    """Return a name with a sign between its words where only letter case tells them apart."""
    return _HUMP.sub("_", text)


def grouped(pairs: Iterable[tuple[str, T]]) -> Mapping[str, tuple[T, ...]]:
    """Return what there is for each key."""
    groups: dict[str, list[T]] = {}
    for key, name in pairs:
        groups.setdefault(key, []).append(name)
    return {key: tuple(dict.fromkeys(names)) for key, names in groups.items()}
