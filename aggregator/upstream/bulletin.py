"""What servers log while nobody calls them, for every session that has asked for log messages."""

from collections import defaultdict
from collections.abc import Callable, Iterable

import anyio

from aggregator.fleet.fleet import Fleet
from aggregator.json import JsonObject
from aggregator.names import ServerName
from aggregator.rate import Rate
from aggregator.upstream.caller import reaches
from aggregator.upstream.conversation import Conversation

LOGGED_AT_ONCE = 50
"""Log messages of one server that are passed on in any second; more are dropped."""
LOGGED_WITHIN = 1.0


class Bulletin:
    """Passes log messages on to all who want them.

    A server is shared by all clients, and a message outside of any call is meant for none of
    them in particular.
    """

    def __init__(self, fleet: Fleet, audience: Callable[[], Iterable[Conversation]]) -> None:
        self._audience = audience
        self._rates = defaultdict[ServerName, Rate](
            lambda: Rate(LOGGED_AT_ONCE, within=LOGGED_WITHIN)
        )
        fleet.on_logged = self._take

    def _take(self, server: ServerName, params: JsonObject) -> None:
        if not self._rates[server].admits(anyio.current_time()):
            return
        logger = params.get("logger")
        named = {**params, "logger": f"{server}/{logger}" if logger else server}
        for conversation in self._audience():
            least = conversation.log_level
            if least is not None and reaches(params.get("level"), least):
                conversation.notices.put("notifications/message", named)
