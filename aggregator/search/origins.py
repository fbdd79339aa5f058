"""Which of the tools that say the same is the original, as far as that can be told."""

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from aggregator.names import ServerName
from aggregator.search.analysis import Document

Suspicion = tuple[int, int, bool]
"""How often a server has a tool, of how many servers it has the names of tools, and whether its
tools do not speak of what it is called."""

Key = TypeVar("Key")
Item = TypeVar("Item")


class Origins:
    """Compares servers by what they have in common with others.

    A server has each of its tools once, and few others have tools of the same names. Who copies
    has the tools of many servers, or one of them many times. What a server is called was chosen
    by the user: tools that speak of it are more likely its own.
    """

    def __init__(self) -> None:
        self._copies: dict[ServerName, Counter[int]] = {}
        self._bearers: dict[frozenset[str], Counter[ServerName]] = {}
        """The servers that have tools of each name."""
        self._named: dict[ServerName, Counter[frozenset[str]]] = {}
        """The names of the tools that each server has."""
        self._speaking = Counter[ServerName]()
        """The tools of each server that speak of what it is called."""
        self._kin: dict[ServerName, int] = {}
        """What was asked for since the last change."""

    def add(self, document: Document) -> None:
        """Count a tool in."""
        server, name = document.host.name, document.bare
        self._kin.clear()
        self._copies.setdefault(server, Counter())[document.signature] += 1
        self._bearers.setdefault(name, Counter())[server] += 1
        self._named.setdefault(server, Counter())[name] += 1
        self._speaking[server] += _speaks_of_its_server(document)

    def discard(self, document: Document) -> None:
        """Count a tool out."""
        server, name = document.host.name, document.bare
        self._kin.clear()
        _take(self._copies, server, document.signature)
        _take(self._bearers, name, server)
        _take(self._named, server, name)
        self._speaking[server] -= _speaks_of_its_server(document)
        if not self._speaking[server]:
            del self._speaking[server]

    def suspicion(self, document: Document) -> Suspicion:
        """Return what speaks against a tool being the original."""
        server = document.host.name
        copies = self._copies[server]
        is_strange = 2 * self._speaking[server] < copies.total()
        return copies[document.signature], self.kin(server), is_strange

    def kin(self, server: ServerName) -> int:
        """Return of how many servers one has the names of tools, with one word more or without."""
        if server not in self._kin:
            found: set[ServerName] = set()
            for name in self._named.get(server, ()):
                for meant in _meant(name):
                    found.update(self._bearers.get(meant, ()))
            self._kin[server] = len(found)
        return self._kin[server]


def _speaks_of_its_server(document: Document) -> bool:
    """Tell whether a tool has a word of the name of its server in what it says itself."""
    terms, sequence = document.host.terms, document.sequence
    return any(sequence.count(f" {stem} ") > terms.count(stem) for stem in document.host.stems)


def _meant(name: frozenset[str]) -> Iterator[frozenset[str]]:
    """Yield a name, and what is left of it without each of its words."""
    yield name
    for word in name if len(name) > 1 else ():
        yield name - {word}


def _take(counts: dict[Key, Counter[Item]], key: Key, item: Item) -> None:
    """Count one down, and leave nothing behind that has come to nothing."""
    counts[key][item] -= 1
    if not counts[key][item]:
        del counts[key][item]
    if not counts[key]:
        del counts[key]
