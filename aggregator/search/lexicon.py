"""The tables of words as lookups by stem."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from aggregator.search import tables
from aggregator.search.words import stem

STOP_WORDS = frozenset(tables.STOP_WORDS.split())
"""Compared with words as they are written, before stemming."""


@cache
def faint() -> frozenset[str]:
    """Return the words people wrap a request in."""
    return frozenset(stem(word) for word in tables.FAINT.split())


@cache
def shares() -> Mapping[str, float]:
    """Return the share of tools that have a word in any catalog, for the most common words."""
    return {stem(word): share for share, listed in tables.COMMON.items() for word in listed.split()}


@cache
def equivalents() -> Mapping[str, tuple[str, ...]]:
    """Return the words that each word may stand for."""
    lines = (line.split() for line in tables.SAME.strip().splitlines())
    return _grouped(
        (word, other) for line in lines for word in line for other in line if other != word
    )


@cache
def topics() -> Mapping[str, tuple[str, ...]]:
    """Return the topics that each word may be about."""
    return _grouped(
        (word, topic)
        for heads, members in _entries(tables.TOPICS)
        for word in members.split()
        for topic in heads.split()
    )


def _entries(table: str) -> Iterator[tuple[str, str]]:
    """Yield the two sides of each entry; indented lines go on with the one before."""
    for line in table.strip().replace("\n  ", " ").splitlines():
        heads, _, members = line.partition(":")
        yield heads, members


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Collect what each stem leads to, once each, in the order of the table."""
    found: dict[str, dict[str, None]] = {}
    for word, other in pairs:
        found.setdefault(stem(word), {})[stem(other)] = None
    return {
        word: tuple(other for other in others if other != word) for word, others in found.items()
    }
