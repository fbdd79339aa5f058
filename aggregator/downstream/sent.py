"""A request that a server was sent, until it is answered or nobody wants the answer any more.

No task has to wait for it: somebody is told.
"""

import math
from collections.abc import Callable
from typing import Any

from aggregator.downstream.deadlines import Ending, Patience
from aggregator.downstream.exchange import Outcome, result_of
from aggregator.downstream.inflight import Caller, ClientCall
from aggregator.downstream.link import Link
from aggregator.downstream.questions import without_questions


class Sent:
    """One request of a client, on its way."""

    def __init__(
        self,
        link: Link,
        caller: Caller,
        patience: Callable[[Ending], Patience],
        free: "Settled",
        settled: "Settled",
    ) -> None:
        self.link = link
        self.caller = caller
        self.number = link.next_number()
        """What its server knows it by."""
        self.deadline = math.inf
        """It never ends by itself: somebody looks for as long as there is a link."""
        self.is_settled = False
        self.is_overdue = False
        """Whether it was given up because its time was over."""
        self._free = free
        self._settled = settled
        self._outcome: Outcome = None
        self.patience = patience(self)
        self.call = ClientCall(caller, self.patience)

    def settle(self, outcome: Outcome) -> None:
        """Take the outcome."""
        self._outcome = outcome
        self._end()
        self._settled(self)

    def cancel(self) -> None:
        """Give it up, because its time is over."""
        self.is_overdue = True
        self._end(is_given_up=True)
        self._settled(self)

    def give_up(self) -> None:
        """Tell nobody any more, and its server that nobody wants the answer."""
        self._end(is_given_up=True)

    @property
    def plain(self) -> dict[str, Any] | None:
        """Its result, if it has one and its server has said nothing else."""
        outcome = self._outcome
        return outcome if isinstance(outcome, dict) and self.call.is_quiet else None

    async def result(self) -> dict[str, Any]:
        """Return its result, once all that its server has said before has been passed on.

        Raises:
            MCPError: The answer is an error.
            UndeliveredError: The transport could not get an answer.
            ConnectionClosedError: The connection closed before there was an answer.
        """
        await self.call.deliver()
        await self.call.until_withdrawn()
        result = result_of(self._outcome)
        return result if self.link.peer.era == "modern" else without_questions(result)

    def _end(self, *, is_given_up: bool = False) -> None:
        self.is_settled = True
        self.call.end()
        self.link.leave(self.number, is_given_up=is_given_up)
        self._free(self)
        self.patience.release()

    def __repr__(self) -> str:
        return f"<Sent {self.number} {'settled' if self.is_settled else 'under way'}>"


Settled = Callable[[Sent], None]
"""Told that there is an outcome, or that the time for it is over."""
