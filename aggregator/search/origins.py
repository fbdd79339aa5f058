"""Which of the tools that say the same is the original, as far as that can be told."""

from collections import Counter
from collections.abc import Iterable, Mapping

from aggregator.names import ServerName
from aggregator.search.analysis import Document, numberless

Suspicion = tuple[int, int]
"""How often a server has a tool, and with how many servers it has names of tools in common."""


class Origins:
    """Compares servers by what they have in common with others.

    A server has each of its tools once, and few others have tools of the same names. Who copies
    has the tools of many servers, or one of them many times.
    """

    def __init__(self, documents: Mapping[ServerName, Iterable[Document]]) -> None:
        self._copies: dict[ServerName, Counter[int]] = {}
        bearers: dict[frozenset[str], set[ServerName]] = {}
        for server, its in documents.items():
            self._copies[server] = Counter(each.signature for each in its)
            for document in its:
                bearers.setdefault(numberless(document.named), set()).add(server)
        self._kin = {server: {server} for server in documents}
        for servers in bearers.values():
            if len(servers) > 1:
                for server in servers:
                    self._kin[server] |= servers

    def suspicion(self, document: Document) -> Suspicion:
        """Return what speaks against a tool being the original."""
        server = document.host.name
        return self._copies[server][document.signature], self.kin(server)

    def kin(self, server: ServerName) -> int:
        """Return how many servers have names of tools in common with one."""
        return len(self._kin.get(server, ()))
