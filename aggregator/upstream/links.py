"""What results of calls link to, so that a client can follow it."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from aggregator.json import as_object, items
from aggregator.names import ServerName

MAX_LINKS = 4096
"""Links in results that are remembered."""


class Links(Mapping[str, ServerName]):
    """The server that last linked to each resource."""

    def __init__(self) -> None:
        self._servers = OrderedDict[str, ServerName]()

    def __getitem__(self, uri: str) -> ServerName:
        return self._servers[uri]

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def __len__(self) -> int:
        return len(self._servers)

    def learn(self, server: ServerName, result: Mapping[str, Any]) -> None:
        """Remember what a result of a server links to."""
        for block in items(result.get("content")):
            item = as_object(block)
            uri = item.get("uri") if item.get("type") == "resource_link" else None
            if isinstance(uri, str):
                self._servers[uri] = server
                self._servers.move_to_end(uri)
        while len(self._servers) > MAX_LINKS:
            self._servers.popitem(last=False)
