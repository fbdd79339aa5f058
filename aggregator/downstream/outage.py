"""A server that is not there: when it is tried again, and what it counts for meanwhile."""

import logging
from collections.abc import Callable
from math import inf

import anyio

from aggregator.config import ServerConfig
from aggregator.downstream.attempt import until_remedied
from aggregator.downstream.failure import Failure
from aggregator.downstream.need import Need
from aggregator.downstream.status import ServerStatus
from aggregator.downstream.subscribing import Subscribing
from aggregator.downstream.supervision import Supervision

logger = logging.getLogger(__name__)

AWAY = 20.0
"""Seconds for which a server that has gone away still counts as having what it offered."""
REST = 0.5
"""Seconds between two attempts after a failure at the least, however many ask for the server."""


class Outage:
    """Decides whether a server that is not there is waited for, tried again, or rests."""

    def __init__(
        self,
        configured: Callable[[], ServerConfig],
        status: ServerStatus,
        need: Need,
        subscribing: Subscribing,
        jitter: Callable[[], float],
    ) -> None:
        self._configured = configured
        self._status = status
        self._need = need
        self._subscribing = subscribing
        self._supervision = Supervision(jitter)
        self._last_words: tuple[str, ...] = ()

    @property
    def vain_attempts(self) -> int:
        """How often in a row it has failed to become ready."""
        return self._supervision.vain

    @property
    def until(self) -> float:
        """Until when what it offered counts if it is not there: it may as well rest."""
        return inf if self._may_rest else anyio.current_time() + AWAY

    @property
    def _may_rest(self) -> bool:
        """Whether a server that is not there is tried again only when somebody needs it."""
        is_known = self._status.ready is not None and not self._subscribing.is_needed
        return is_known and self._need.is_lazy(self._configured())

    def wait(self) -> None:
        """Have it be known that the server is about to be there, and what it said last."""
        self._status.wait(last_words=self._last_words)

    def rest(self, reason: str | None = None, last_words: tuple[str, ...] = ()) -> None:
        """Wait from here on until somebody needs the server."""
        self._need.rest()
        self._status.rest(reason, last_words)

    async def recover(self, failure: Failure) -> None:
        """Wait as long as is reasonable before the next attempt."""
        reason, about = failure.reason, {"server": self._configured().name}
        self._status.stay_away(reason, self.until)
        if failure.ready_for is None:
            self._need.forget_calls()
        if failure.is_hopeless:
            waits_for = "the configuration to change" if failure.remedy is None else "a login"
            logger.warning("%s; waiting for %s", reason, waits_for, extra=about)
            self._status.fail(failure)
            await until_remedied(failure.remedy, self._need.until_woken)
            return
        retry = self._supervision.failed(ready_for=failure.ready_for)
        delay = max(retry.delay, failure.retry_after)
        logger.warning("%s; retrying in %.1f s", reason, delay, extra=about)
        self._last_words = failure.last_words
        if not delay:
            return
        phase = "cooling down" if retry.cooling else "retrying"
        self._status.wait(phase, failure.last_words)
        with anyio.move_on_after(delay):
            await anyio.sleep(min(delay, REST))
            if not self._may_rest:
                await self._need.until_woken()
            elif not await self._need.until_called_or_left():
                # Nobody waits for it, and the next call is soon enough for another attempt.
                self.rest(reason, failure.last_words)
