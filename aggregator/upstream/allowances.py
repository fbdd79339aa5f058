"""How much each identity may ask: calls in a minute, and calls at a time.

Whoever asks too much is told so at once, in an answer to the call that a model can read: most
clients take a refusal of HTTP for a connection that is lost, connect again, which is five requests
more, and lose on the way how long to wait. Who goes on regardless reads nothing, so that answers
are wasted on it: it is turned away at the door, before anything of its requests is looked at.
"""

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

import anyio

from aggregator.config.http import CallLimits
from aggregator.errors import OverLimitError

MINUTE = 60.0
INSISTING = 20
"""Refusals in a row after which somebody is turned away at the door."""
SOON = 1.0
"""Seconds after which it is worth trying again, if that depends on calls that are under way."""
MAX_ACCOUNTS = 10_000
"""Identities that are remembered; for one more, those go who have not called lately."""

UNLIMITED = CallLimits()


class Account:
    """What one identity has asked lately."""

    def __init__(self) -> None:
        self._passed = deque[float]()
        """When calls were let through, in the last minute."""
        self._in_flight = 0
        self._refused = 0
        """Calls that were refused since one was last let through."""
        self.barred_until = float("-inf")
        """When it may come to the door again."""

    def begin(self, limits: CallLimits, now: float) -> None:
        """Let one more call through, or say why not.

        Raises:
            OverLimitError: There are too many.
        """
        wait = self._wait(limits.per_minute, now)
        if wait:
            self._refuse(now + wait)
            raise OverLimitError(wait, per_minute=limits.per_minute)
        if limits.in_flight is not None and self._in_flight >= limits.in_flight:
            self._refuse(now + SOON)
            raise OverLimitError(SOON, in_flight=limits.in_flight)
        self._refused = 0
        self._passed.append(now)
        self._in_flight += 1

    def end(self) -> None:
        """Take note that a call which was let through is over."""
        self._in_flight -= 1

    def is_idle(self, now: float) -> bool:
        """Whether nothing of it need be remembered."""
        return not self._in_flight and (not self._passed or now - self._passed[-1] >= MINUTE)

    def _wait(self, most: int | None, now: float) -> float:
        """Return in how many seconds one more may pass, as far as the minute goes."""
        passed = self._passed
        while passed and now - passed[0] >= MINUTE:
            passed.popleft()
        if most is None or len(passed) < most:
            return 0.0
        return passed[len(passed) - most] + MINUTE - now

    def _refuse(self, until: float) -> None:
        self._refused += 1
        if self._refused > INSISTING:
            self.barred_until = until


class Allowances:
    """Counts what each identity asks."""

    def __init__(self) -> None:
        self._accounts: dict[str, Account] = {}

    def barred(self, holder: str) -> float:
        """Return for how many seconds somebody is turned away at the door."""
        account = self._accounts.get(holder)
        return 0.0 if account is None else max(0.0, account.barred_until - anyio.current_time())

    @contextmanager
    def spent(self, holder: str, limits: CallLimits) -> Generator[None, None, None]:
        """Count a call for the length of the block.

        Raises:
            OverLimitError: There are too many.
        """
        now = anyio.current_time()
        account = self._account(holder, now)
        account.begin(limits, now)
        try:
            yield
        finally:
            account.end()

    def _account(self, holder: str, now: float) -> Account:
        account = self._accounts.get(holder)
        if account is None:
            if len(self._accounts) >= MAX_ACCOUNTS:
                known = self._accounts.items()
                self._accounts = {each: one for each, one in known if not one.is_idle(now)}
            account = self._accounts[holder] = Account()
        return account
