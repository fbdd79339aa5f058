"""What servers tell of that is no state of theirs, and who hears it."""

from typing import Any, Protocol

from aggregator.basics.json import JsonObject
from aggregator.downstream.questions import EVERYTHING, refuse
from aggregator.names import ServerName


class FleetEvents(Protocol):
    """What servers tell of that is no state of theirs, which may not block, and what they ask."""

    @property
    def expected(self) -> JsonObject:
        """What a client can be asked that has not come yet."""
        ...

    def updated(self, server: ServerName, uri: str, /) -> None:
        """Take note that a server says a resource has changed."""
        ...

    def logged(self, server: ServerName, params: JsonObject, /) -> None:
        """Take note of a log message that belongs to no call."""
        ...

    async def asked(self, server: ServerName, method: str, params: JsonObject, /) -> dict[str, Any]:
        """Answer what a server asks outside of any call."""
        ...


class NoEvents:
    """Nobody is interested."""

    expected = EVERYTHING
    asked = staticmethod(refuse)

    def updated(self, _server: ServerName, _uri: str, /) -> None:
        """Forget it."""

    def logged(self, _server: ServerName, _params: JsonObject, /) -> None:
        """Forget it."""
