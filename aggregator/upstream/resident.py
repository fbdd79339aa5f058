"""A client as the processes that it has to itself know it: outside of any of its calls."""

from collections.abc import Hashable
from typing import Any

from aggregator.basics.json import JsonObject
from aggregator.downstream.call_slots import Party
from aggregator.downstream.questions import refuse, telling_of_roots
from aggregator.fleet.client_processes import Tenure
from aggregator.names import ServerName
from aggregator.upstream.caller import ContextCaller
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.conversation import Conversation


class ClientResident:
    """The client of one request, and of all others that come from the same.

    A session is a client. Who has none is taken for the same as whoever comes from the same
    address, with the same credentials, under the same name.
    """

    def __init__(
        self, caller: ContextCaller, conversation: Conversation, connected: ConnectedClients
    ) -> None:
        self._conversation = conversation
        self._connected = connected
        self._declared = caller.capabilities
        self.party: Party = caller.party
        self._whose = caller.whose
        self.key: Hashable = conversation.watcher if conversation.has_memory else self.party

    @property
    def capabilities(self) -> JsonObject:
        """What it can be asked."""
        # Its process can ask for its roots at any time: there is nobody else's.
        has_roots = self._conversation.has_memory and "roots" in self._declared
        return telling_of_roots(self._declared) if has_roots else self._declared

    @property
    def is_seen_off(self) -> bool:
        """Whether we are told when it leaves."""
        return self._conversation.is_attended

    @property
    def has_left(self) -> bool:
        """Whether it has left."""
        return self._conversation.has_left

    async def claim(self, server: ServerName, tenure: Tenure, /) -> None:
        """See to it that a process of its own may be begun here.

        Raises:
            ElsewhereError: Its processes are in another replica.
            ServerUnavailableError: It can have none.
        """
        await self._conversation.claim(server, self._whose, tenure)

    def watched(self, server: ServerName) -> frozenset[str]:
        """Return which resources of a server it watches."""
        return self._connected.watches.uris(server, self._conversation.watcher)

    def updated(self, server: ServerName, uri: str, /) -> None:
        """Tell it that a resource has changed."""
        self._connected.watches.touch(server, uri, self._conversation.watcher)

    def logged(self, server: ServerName, params: JsonObject, /) -> None:
        """Pass on a log message that belongs to no call."""
        self._connected.logged(server, params, self._conversation)

    async def asked(self, server: ServerName, method: str, params: JsonObject, /) -> dict[str, Any]:
        """Have it answer what a server asks outside of any call."""
        if not self._conversation.has_memory:
            return await refuse(server, method, params)
        return await self._connected.askable.answer(server, method, params, self._conversation)
