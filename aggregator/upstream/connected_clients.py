"""Everybody who is connected, and what servers tell them by themselves.

A server is shared by all clients, and what it says outside of any call is meant for none of them
in particular.
"""

from collections import defaultdict
from typing import Any

import anyio

from aggregator.basics.json import JsonObject
from aggregator.basics.rate import Rate
from aggregator.downstream.questions import EVERYTHING, telling_of_roots
from aggregator.names import ServerName
from aggregator.upstream.askable import AskableClients
from aggregator.upstream.caller import reaches
from aggregator.upstream.conversation import Conversation, Conversations
from aggregator.upstream.watches import Watches

LOGGED_AT_ONCE = 50
"""Log messages of one server that are passed on in any second; more are dropped."""
LOGGED_WITHIN = 1.0


class ConnectedClients:
    """The clients that there are, and what each of them watches."""

    def __init__(self, *, is_shared: bool = False) -> None:
        self.conversations = Conversations()
        self.askable = AskableClients(is_shared=is_shared)
        self.watches = Watches()
        self._rates = defaultdict[ServerName, Rate](
            lambda: Rate(LOGGED_AT_ONCE, within=LOGGED_WITHIN)
        )

    @property
    def expected(self) -> JsonObject:
        """What a client can be asked that has not come yet."""
        return EVERYTHING if self.askable.is_shared else telling_of_roots(EVERYTHING)

    async def asked(self, server: ServerName, method: str, params: JsonObject, /) -> dict[str, Any]:
        """Answer what a server asks outside of any call."""
        return await self.askable.answer(server, method, params)

    def updated(self, server: ServerName, uri: str) -> None:
        """Tell whoever watches a resource that its server says it has changed."""
        self.watches.touch(server, uri)

    def logged(
        self, server: ServerName, params: JsonObject, only: Conversation | None = None
    ) -> None:
        """Pass a log message on to every session that has asked for such, or to one of them."""
        if not self._rates[server].admits(anyio.current_time()):
            return
        logger = params.get("logger")
        named = {**params, "logger": f"{server}/{logger}" if logger else server}
        for conversation in self.conversations if only is None else (only,):
            least = conversation.log_level
            if (
                least is not None
                and conversation.sees(server)
                and reaches(params.get("level"), least)
            ):
                conversation.notices.put("notifications/message", named)
