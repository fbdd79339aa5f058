"""How a client begins, and what it is answered."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse, RequestId

from aggregator.basics.signals import Signal

LIST = "tools/list"
FIRST = ("initialize", "server/discover", LIST)
"""What a client may begin with to be answered ahead the next time."""


class Exchange(NamedTuple):
    """A request, and the answer to it once there is one."""

    request: JSONRPCRequest
    result: dict[str, Any] | None = None


class Opening:
    """The first requests of a client that can be answered ahead, and the answers to them."""

    def __init__(self) -> None:
        self._exchanges: dict[RequestId, Exchange] = {}
        self._is_over = False
        self.news = Signal()
        """Sent when there is an answer."""

    def came(self, message: JSONRPCMessage) -> None:
        """Note a message from the client."""
        if not isinstance(message, JSONRPCRequest):
            return
        if message.id in self._exchanges:
            # Of two requests with one id nobody can say which of them is answered.
            self._give_up()
        if self._is_over:
            return
        awaited = (LIST,) if self._exchanges else FIRST
        is_next = message.method in awaited and "cursor" not in (message.params or {})
        if is_next:
            self._exchanges[message.id] = Exchange(message)
        self._is_over = not is_next or message.method == LIST

    def went(self, message: JSONRPCMessage) -> None:
        """Note a message to the client."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return
        exchange = self._exchanges.get(message.id)
        if exchange is None or exchange.result is not None:
            return
        if isinstance(message, JSONRPCError):
            self._give_up()
        else:
            self._exchanges[message.id] = Exchange(exchange.request, message.result)
            self.news.send()

    @property
    def answered(self) -> Sequence[Exchange]:
        """What has been asked and answered, up to the first request that has not."""
        exchanges = list(self._exchanges.values())
        waiting = [at for at, each in enumerate(exchanges) if each.result is None]
        return exchanges[: waiting[0]] if waiting else exchanges

    def _give_up(self) -> None:
        self._exchanges.clear()
        self._is_over = True
