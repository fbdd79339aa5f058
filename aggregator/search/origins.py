"""Which of the tools that say the same is the original, as far as that can be told."""

from collections import Counter
from collections.abc import Iterable, Mapping

from aggregator.names import ServerName
from aggregator.search.analysis import Document

Suspicion = tuple[int, int]
"""How many copies of a tool its server has, and of how many servers it has copies at all."""


class Origins:
    """Compares servers by what they have in common with others.

    A server has its tools once, and has them in common with few others. Who copies has the tools
    of several servers, or one of them many times; who puts other servers behind one name does so
    for good, but there the tool itself is nearer, too.
    """

    def __init__(self, documents: Mapping[ServerName, Iterable[Document]]) -> None:
        self._bearers: dict[int, Counter[ServerName]] = {}
        for server, its in documents.items():
            for document in its:
                self._bearers.setdefault(document.signature, Counter())[server] += 1
        kin: dict[ServerName, set[ServerName]] = {}
        for bearers in self._bearers.values():
            if len(bearers) > 1:
                for server in bearers:
                    kin.setdefault(server, set()).update(bearers)
        self._kin = {server: len(others) for server, others in kin.items()}

    def suspicion(self, document: Document) -> Suspicion:
        """Return what speaks against a tool being the original."""
        server = document.host.name
        return self._bearers[document.signature][server], self._kin.get(server, 0)
