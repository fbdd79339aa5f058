"""What results of calls link to, so that a client can follow it to where it came from."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from aggregator.basics.json import is_object, items
from aggregator.names import ServerName

MAX_LINKS = 1024
"""Links of one server that are remembered for a client; the oldest are forgotten first."""
MAX_CHARACTERS = 256 * 1024
"""Characters that they may have together."""
MAX_BLOCKS = 16 * MAX_LINKS
"""Blocks at the end of a result among which its links are looked for."""


class _Recent:
    """The links of one server, which leave nothing but their own server's without room."""

    def __init__(self) -> None:
        self._uris = OrderedDict[str, None]()
        self._characters = 0

    def put(self, uri: str) -> list[str]:
        """Keep a link as the newest, and return those that have to go."""
        if uri not in self._uris:
            self._characters += len(uri)
        self._uris[uri] = None
        self._uris.move_to_end(uri)
        gone: list[str] = []
        while len(self._uris) > MAX_LINKS or self._characters > MAX_CHARACTERS:
            oldest, _ = self._uris.popitem(last=False)
            self._characters -= len(oldest)
            gone.append(oldest)
        return gone


class Links(Mapping[str, ServerName | None]):
    """The server that each link in a client's results belongs to.

    In one session the first server to link to a URI keeps it. Where clients cannot be told apart,
    nobody can say whose result a client has before it: what several servers link to is nobody's.
    """

    def __init__(self, *, is_shared: bool = False) -> None:
        self._is_shared = is_shared
        self._servers: dict[str, tuple[ServerName, ...]] = {}
        self._recent: dict[ServerName, _Recent] = {}

    def __getitem__(self, uri: str) -> ServerName | None:
        servers = self._servers[uri]
        return servers[0] if len(servers) == 1 else None

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def __len__(self) -> int:
        return len(self._servers)

    def learn(
        self,
        server: ServerName,
        result: Mapping[str, Any],
        lister: Callable[[str], ServerName | None] = lambda _uri: None,
    ) -> None:
        """Remember what a result of a server links to, but for what another server lists.

        Of very many links only the last are looked at: the others would be forgotten at once.
        """
        for uri in reversed(list(islice(_latest(result), MAX_LINKS))):
            if lister(uri) in (None, server):
                self._learn(server, uri)

    def _learn(self, server: ServerName, uri: str) -> None:
        known = self._servers.get(uri, ())
        if server not in known:
            if known and not self._is_shared:
                return
            self._servers[uri] = (*known, server)
        if (recent := self._recent.get(server)) is None:
            recent = self._recent[server] = _Recent()
        for each in recent.put(uri):
            self._forget(server, each)

    def _forget(self, server: ServerName, uri: str) -> None:
        left = tuple(each for each in self._servers[uri] if each != server)
        if left:
            self._servers[uri] = left
        else:
            del self._servers[uri]


def _latest(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a result links to, the last first."""
    for block in islice(reversed(items(result.get("content"))), MAX_BLOCKS):
        if is_object(block) and block.get("type") == "resource_link":
            uri = block.get("uri")
            if isinstance(uri, str):
                yield uri
