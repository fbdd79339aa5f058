"""Whether somebody needs a server: what starts one that rests, and ends one that nobody uses."""

from collections.abc import Callable
from math import inf

import anyio

from aggregator.basics.clock import running_clock
from aggregator.basics.signals import Signal
from aggregator.catalog import Ready
from aggregator.config import IDLE_TIMEOUT, ServerConfig


class Need:
    """The requests that a server works on, when it was last of use, and who waits for it."""

    def __init__(self) -> None:
        self.requests = 0
        """How many are under way."""
        self.is_resting = False
        """Whether it waits until it is needed."""
        self._is_current = False
        """Whether what it is known to offer is all that another run would ask it for."""
        self._is_visited = False
        self._is_woken = False
        """Whether somebody has asked for it since that was last forgotten."""
        self._woken = Signal()
        self._clock = running_clock()
        self._last = self._clock()
        self._held: dict[str, float] = {}
        """What it works on although no request is under way, and until when that counts."""
        self._changed = Signal()
        self._freed = Signal()
        """Sent when no request is under way any more, or somebody calls anew."""

    @property
    def is_visited(self) -> bool:
        """Whether it is started only to see what it offers."""
        return self._is_visited

    @property
    def last_use(self) -> float:
        """When it was last of use to somebody."""
        return self._clock() if self.requests else min(self._clock(), self._kept_until)

    @property
    def _kept_until(self) -> float:
        """When it was last of use, or will have been: what it is held for is forgotten then."""
        return max((self._last, *self._held.values()))

    def is_lazy(self, server: ServerConfig) -> bool:
        """Whether a server starts when it is needed."""
        return server.start == "lazy" or (server.start == "auto" and self._is_current)

    def recall(self, server: ServerConfig, *, is_current: bool) -> bool:
        """Take note of whether what is known holds; say whether it may rest because of that."""
        self._is_current = is_current
        return is_current and self.is_lazy(server) and not self._is_woken

    def rest(self) -> None:
        """Have it wait until it is needed."""
        self.is_resting, self._is_visited = True, False
        self.forget_calls()
        self.look()

    def wake(self) -> None:
        """Take note that somebody waits for it."""
        self._is_visited = False
        self.stir()
        self._call()

    def visit(self) -> None:
        """Have it start to see what it offers, if it rests."""
        if self.is_resting:
            self._is_visited = True
            self._call()

    def _call(self) -> None:
        self._is_woken = True
        self._woken.send()
        self._freed.send()

    def end_visit(self) -> None:
        """Have nobody wait for what it offers."""
        self._is_visited = False
        self.look()

    def forget_calls(self) -> None:
        """Have the next wait be a new one, whoever has called before."""
        self._is_woken = False

    async def until_woken(self) -> None:
        """Wait until somebody waits for it."""
        while not self._is_woken:
            await self._woken.wait()

    async def until_visited(self) -> None:
        """Wait until it rests again, or is of use to somebody else."""
        while self._is_visited:
            await self._changed.wait()

    async def until_needed(self) -> None:
        """Wait, if it rests, until it is to start."""
        if self.is_resting:
            await self.until_woken()
            self.is_resting = False
            self.forget_calls()

    def enter(self) -> None:
        """Count one request more."""
        self.requests += 1
        if self._is_visited:
            self.end_visit()

    def leave(self) -> None:
        """Count one request less."""
        self.requests -= 1
        self._last = self._clock()
        if not self.requests:
            self._freed.send()

    def stir(self) -> None:
        """Take note that it is of use now."""
        self._last = self._clock()
        self.look()

    def hold(self, what: str, seconds: float) -> None:
        """Have it be of use for so long, though nobody waits for it."""
        self._held[what] = self._clock() + seconds

    def held_until(self, what: str) -> float:
        """Return until when it is of use for this."""
        return self._held.get(what, self._last)

    def let_go(self, what: str) -> None:
        """Have it be of use for this no longer."""
        if self._held.pop(what, None) is not None:
            self.stir()

    def look(self) -> None:
        """Have whoever waits for its end look again how long that is."""
        self._changed.send()

    async def until_free(self) -> None:
        """Wait until no request is under way."""
        while self.requests:
            await self._freed.wait()

    async def until_called_or_left(self) -> bool:
        """Wait until somebody calls anew or nobody waits any more; say whether somebody calls."""
        while self.requests and not self._is_woken:
            await self._freed.wait()
        return self._is_woken

    async def until_unused(self, patience: Callable[[], float]) -> None:
        """Wait until it has not been of use for so long."""
        while True:
            await self.until_free()
            left = self._kept_until + patience() - anyio.current_time()
            if left <= 0:
                return
            # Requests wake nobody here: when the time is over, it is seen whether there were any.
            with anyio.move_on_after(left):
                await self._changed.wait()

    def patience(self, server: ServerConfig, ready: Ready) -> float:
        """Return how long a server is kept without being used, as things are now."""
        if ready.offers.unlisted:
            return inf
        if self._is_visited:
            return 0
        return server.idle_timeout or (IDLE_TIMEOUT if self.is_lazy(server) else inf)
