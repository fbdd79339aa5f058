"""How much each identity may ask: calls in a minute, and calls at a time.

Whoever asks too much is told so at once, in an answer to the call that a model can read: most
clients take a refusal of HTTP for a connection that is lost, connect again, which is five requests
more, and lose on the way how long to wait. Who goes on regardless reads nothing, so that answers
are wasted on it: it is turned away at the door, before anything of its requests is looked at.

Of several replicas each counts what it lets through itself, and tells the others of it afterwards:
no call waits for anybody else. What they have not been told yet is how far a limit may be exceeded.
"""

from collections import Counter, deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from itertools import accumulate

import anyio

from aggregator.basics.signals import Signal
from aggregator.config.http import CallLimits
from aggregator.errors import OverLimitError
from aggregator.upstream.other_replicas import MINUTE, OtherReplicas, Report

INSISTING = 20
"""Refusals in a row after which somebody is turned away at the door."""
SOON = 1.0
"""Seconds after which it is worth trying again, if that depends on calls that are under way."""
MAX_ACCOUNTS = 10_000
"""Identities that are remembered; for one more, those go who have not called lately."""
PERIOD = 1.0
"""Seconds after which other replicas are told of what was let through here."""
PARTS = 8
"""Of how many parts of a limit one may be used before the others are told of it at once."""

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
        self.others = OtherReplicas()
        """What it has asked of other replicas."""
        self._untold = 0
        """Calls that were let through since they were last told of any."""
        self._told_in_flight = 0

    def begin(self, limits: CallLimits, now: float) -> None:
        """Let one more call through, or say why not.

        Raises:
            OverLimitError: There are too many.
        """
        wait = self._wait(limits.per_minute, now)
        if wait:
            self._refuse(now + wait)
            raise OverLimitError(wait, per_minute=limits.per_minute)
        most = limits.in_flight
        if most is not None and self._in_flight + self.others.in_flight(now) >= most:
            self._refuse(now + SOON)
            raise OverLimitError(SOON, in_flight=most)
        self._refused = 0
        self._passed.append(now)
        self._in_flight += 1
        self._untold += 1

    def end(self) -> None:
        """Take note that a call which was let through is over."""
        self._in_flight -= 1

    def is_idle(self, now: float) -> bool:
        """Whether nothing of it need be remembered."""
        is_done = not self._passed or now - self._passed[-1] >= MINUTE
        return is_done and not self._in_flight and not self.others.are_busy(now)

    def is_pressing(self, limits: CallLimits) -> bool:
        """Whether others know so little of it that a limit may be exceeded by much."""
        grown = self._in_flight - self._told_in_flight
        return _is_part(self._untold, limits.per_minute) or _is_part(grown, limits.in_flight)

    @property
    def is_busy(self) -> bool:
        """Whether calls are under way, of which others have to hear again."""
        return self._in_flight > 0

    def report(self, now: float, *, is_whole: bool) -> Report:
        """Return what others are to know: all of the last minute, or what they were not told."""
        untold, self._untold = self._untold, 0
        self._told_in_flight = self._in_flight
        if not is_whole:
            return Report(self._in_flight, ((0.0, untold),) if untold else ())
        self._expire(now)
        ages = Counter(float(int(now - each)) for each in self._passed)
        return Report(self._in_flight, tuple(sorted(ages.items(), reverse=True)), is_whole=True)

    def _wait(self, most: int | None, now: float) -> float:
        """Return in how many seconds one more may pass, as far as the minute goes."""
        self._expire(now)
        elsewhere = [*self.others.passed(now)]
        if most is None or len(self._passed) + sum(number for _, number in elsewhere) < most:
            return 0.0
        passed = sorted([*((each, 1) for each in self._passed), *elsewhere], reverse=True)
        numbers = accumulate(number for _, number in passed)
        # Once this one and all before it are a minute ago, there is room again.
        last = next(when for (when, _), sum_ in zip(passed, numbers, strict=True) if sum_ >= most)
        return last + MINUTE - now

    def _expire(self, now: float) -> None:
        while self._passed and now - self._passed[0] >= MINUTE:
            self._passed.popleft()

    def _refuse(self, until: float) -> None:
        self._refused += 1
        if self._refused > INSISTING:
            self.barred_until = until


class Allowances:
    """Counts what each identity asks."""

    def __init__(self, *, is_shared: bool = False) -> None:
        self._accounts: dict[str, Account] = {}
        self._is_shared = is_shared
        """Whether others count for the same identities, who are told of what is counted here."""
        self._changed: dict[str, Account] = {}
        """Those of which there is something to tell."""
        self._is_pressing = False
        self._pressing = Signal()

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
        if self._is_shared:
            self._changed[holder] = account
            if account.is_pressing(limits):
                self._is_pressing = True
                self._pressing.send()
        try:
            yield
        finally:
            account.end()

    async def until_due(self) -> None:
        """Wait until others are to be told."""
        with anyio.move_on_after(PERIOD):
            while not self._is_pressing:
                await self._pressing.wait()

    def reports(self, *, is_whole: bool = False) -> dict[str, Report]:
        """Return what others are to be told of each identity: all that is known, or what is new."""
        now = anyio.current_time()
        told = self._accounts if is_whole else self._changed
        # Of what is under way they hear until it is over, and then once more.
        self._changed = {holder: each for holder, each in self._changed.items() if each.is_busy}
        self._is_pressing = False
        return {holder: each.report(now, is_whole=is_whole) for holder, each in told.items()}

    def hear(self, replica: str, reports: Mapping[str, Report]) -> None:
        """Take note of what another replica has let through."""
        now = anyio.current_time()
        for holder, report in reports.items():
            self._account(holder, now).others.hear(replica, report, now)

    def _account(self, holder: str, now: float) -> Account:
        account = self._accounts.get(holder)
        if account is None:
            if len(self._accounts) >= MAX_ACCOUNTS:
                known = self._accounts.items()
                self._accounts = {each: one for each, one in known if not one.is_idle(now)}
            account = self._accounts[holder] = Account()
        return account


def _is_part(number: int, most: int | None) -> bool:
    """Whether a number is so much of a limit that others should know of it now."""
    return most is not None and number >= max(2, most // PARTS)
