"""Everybody who is connected, and what servers tell them by themselves.

A server is shared by all clients, and what it says outside of any call is meant for none of them
in particular.
"""

from collections import defaultdict

import anyio

from aggregator.json import JsonObject
from aggregator.names import ServerName
from aggregator.rate import Rate
from aggregator.upstream.caller import reaches
from aggregator.upstream.conversation import Conversations
from aggregator.upstream.watches import Watches

LOGGED_AT_ONCE = 50
"""Log messages of one server that are passed on in any second; more are dropped."""
LOGGED_WITHIN = 1.0


class Audience:
    """The clients that there are, and what each of them watches."""

    def __init__(self) -> None:
        self.conversations = Conversations()
        self.watches = Watches()
        self._rates = defaultdict[ServerName, Rate](
            lambda: Rate(LOGGED_AT_ONCE, within=LOGGED_WITHIN)
        )

    def updated(self, server: ServerName, uri: str) -> None:
        """Tell whoever watches a resource that its server says it has changed."""
        self.watches.touch(server, uri)

    def logged(self, server: ServerName, params: JsonObject) -> None:
        """Pass a log message on to every session that has asked for such."""
        if not self._rates[server].admits(anyio.current_time()):
            return
        logger = params.get("logger")
        named = {**params, "logger": f"{server}/{logger}" if logger else server}
        for conversation in self.conversations:
            least = conversation.log_level
            if least is not None and reaches(params.get("level"), least):
                conversation.notices.put("notifications/message", named)
