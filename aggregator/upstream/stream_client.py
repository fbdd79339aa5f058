"""The client of the modern era on a stream of its own: asked only by answers to its requests.

A server that wants its roots outside of any call waits until the client's next request, which is
answered with the question; the request comes again with the roots. They are kept, because a
client of this era does not tell that they changed.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import anyio

from aggregator.basics.json import JsonObject, as_object
from aggregator.basics.signals import Signal
from aggregator.downstream.questions import ROOTS
from aggregator.names import ServerName
from aggregator.upstream.rounds import ROUND_PARAMS

STATE = "aggregator/roots"
"""What marks the request that brings the roots; there is nothing in it to be protected."""
QUESTION: JsonObject = {
    "resultType": "input_required",
    "inputRequests": {"roots": {"method": ROOTS}},
    "requestState": STATE,
}
ASKABLE = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The requests that may be answered with a question."""
SETTLING = 0.25
"""Seconds that servers have to make use of the roots, before the request that brought them."""

Tell = Callable[[Collection[ServerName]], Awaitable[None]]
"""Tells servers that the roots have changed."""


class StreamClient:
    """What a client of the modern era can be asked, and has answered."""

    def __init__(self) -> None:
        self.is_there = False
        self.is_alone = True
        self.sees: Callable[[ServerName], bool] = lambda _server: True
        self.capabilities: JsonObject = {}
        """What it can be asked outside of a call, which is not more than its roots."""
        self._roots: dict[str, Any] | None = None
        self._learnt = Signal()
        self._waiting = 0
        self._missed = set[ServerName]()
        """Servers that have given up waiting."""

    def introduce(
        self, capabilities: JsonObject, sees: Callable[[ServerName], bool] = lambda _server: True
    ) -> None:
        """Take note of the client."""
        self.sees = sees
        self.is_there = True
        self.capabilities = {"roots": {}} if "roots" in capabilities else {}

    async def ask(self, server: ServerName, _method: str, _params: JsonObject) -> dict[str, Any]:
        """Wait until the roots are known, and return them."""
        self._waiting += 1
        try:
            while self._roots is None:
                await self._learnt.wait()
        except anyio.get_cancelled_exc_class():
            self._missed.add(server)
            raise
        finally:
            self._waiting -= 1
        return self._roots

    async def admit(self, params: Mapping[str, Any], tell: Tell) -> Mapping[str, Any] | None:
        """Return the params of a request as its client meant them; nothing if it is asked first."""
        if params.get("requestState") == STATE:
            await self._learn(as_object(params.get("inputResponses")).get("roots"), tell)
            return {key: value for key, value in params.items() if key not in ROUND_PARAMS}
        return None if self._is_owed and "requestState" not in params else params

    def owes(self, params: Mapping[str, Any]) -> bool:
        """Whether a request brings what its client was asked, or is not to be answered before."""
        return self._is_owed or "requestState" in params

    @property
    def _is_owed(self) -> bool:
        is_owed = self._roots is None and bool(self._waiting or self._missed)
        return is_owed and bool(self.capabilities)

    async def _learn(self, answer: object, tell: Tell) -> None:
        """Give the roots to everybody who has asked for them."""
        self._roots = {"roots": [], **as_object(answer)}
        self._learnt.send()
        missed, self._missed = self._missed, set[ServerName]()
        await tell(missed)
        await anyio.sleep(SETTLING)
