"""A Redis or Valkey that replicas have in common: what they remember together, and tell each other.

Nothing waits for it but who opens a session here that was opened elsewhere, and that not for long.
Where it cannot be reached, everything is as without it; what was to be written is written once it
is there again.
"""

import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
import coredis
from coredis.exceptions import RedisError
from coredis.retry import NoRetryPolicy

from aggregator.json import JsonObject, is_object
from aggregator.signals import Signal
from aggregator.upstream.seal import ForeignStateError, Wax

logger = logging.getLogger(__name__)

ANSWER_TIME = 0.5
"""Seconds that a question to the store may take: whoever waits for it has a client that waits."""
CONNECT_TIME = 2.0
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
"""Seconds between two attempts to reach it."""
MAX_WAITING = 10_000
"""What is to be written when it is there again; of more, the oldest is forgotten."""
SCOPE = "mcp-tool-aggregator:1"
"""What all keys begin with. Sessions and tokens are digests there, and mail is sealed: whoever has
another key may use the same database."""
MAIL = "mail between replicas"
"""What is told to other replicas is sealed for this: whoever only has the store cannot make it."""

_FAILURES = (
    RedisError,
    OSError,
    TimeoutError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
)


class Item(NamedTuple):
    """What is to be kept for so many seconds."""

    key: str
    value: str
    seconds: int


Hear = Callable[[JsonObject], Awaitable[None]]
"""Told what another replica says."""


class Store:
    """One store, and the way to whoever else has the same keys."""

    def __init__(self, url: str, wax: Wax) -> None:
        self._url = url
        self._wax = wax
        self._client: coredis.Redis[bytes] | None = None
        self._waiting = deque[Item | JsonObject](maxlen=MAX_WAITING)
        self._news = Signal()
        self._is_told = False
        self.operations = 0
        """How often the store was asked or told something."""

    @property
    def is_up(self) -> bool:
        """Whether it can be asked now."""
        return self._client is not None

    def keep(self, key: str, value: str, seconds: float) -> None:
        """Have something kept as soon as that can be."""
        self._put(Item(key, value, int(seconds)))

    def tell(self, **message: Any) -> None:  # noqa: ANN401 - what JSON takes
        """Tell all other replicas something that they may miss."""
        self._put(message)

    async def look(self, *keys: str) -> Sequence[str | None]:
        """Return what is kept; nothing of it where the store does not answer in time."""
        client, nothing = self._client, [None] * len(keys)
        if client is None or not keys:
            return nothing
        self.operations += 1
        try:
            with anyio.fail_after(ANSWER_TIME):
                found = await client.mget([self._named(key) for key in keys])
        except _FAILURES:
            return nothing
        return [None if each is None else each.decode("utf-8", "replace") for each in found]

    async def run(self, hear: Hear, catch_up: Callable[[], Awaitable[None]]) -> None:
        """Be in touch with it whenever it can be reached; `catch_up` is run each time it is."""
        pause = FIRST_PAUSE
        while True:
            lost: BaseException | None = None
            try:
                async with self._connected(hear):
                    pause = FIRST_PAUSE
                    self._tell_of_return()
                    await catch_up()
                    await self._deliver()
            except* _FAILURES as group:
                lost = _first(group)
            finally:
                self._client = None
            # Who is cancelled is told here: it has lost nothing.
            await anyio.lowlevel.checkpoint()
            if lost is not None:
                self._tell_of_loss(lost)
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    @asynccontextmanager
    async def _connected(self, hear: Hear) -> AsyncGenerator[None, None]:
        """Hear what others tell, and be able to ask, for the length of the block."""
        client: coredis.Redis[bytes] = coredis.Redis.from_url(
            self._url,
            retry_policy=NoRetryPolicy(),
            connect_timeout=CONNECT_TIME,
            stream_timeout=CONNECT_TIME,
        )
        channel = self._named("mail")
        async with (
            client,
            client.pubsub(
                channels=[channel], ignore_subscribe_messages=True, retry_policy=NoRetryPolicy()
            ) as mail,
            anyio.create_task_group() as group,
        ):
            self._client = client
            group.start_soon(self._receive, mail, hear)
            yield
            group.cancel_scope.cancel()

    async def _receive(self, mail: Any, hear: Hear) -> None:  # noqa: ANN401 - not named for others
        async for each in mail:
            message = self._opened(each["data"])
            if message is not None:
                await hear(message)

    def _opened(self, data: object) -> JsonObject | None:
        try:
            message = json.loads(self._wax.open(MAIL, data)) if isinstance(data, bytes) else None
        except (ForeignStateError, ValueError):
            return None
        return message if is_object(message) else None

    async def _deliver(self) -> None:
        """Write and tell what there is, in its order."""
        while True:
            while not self._waiting:
                await self._news.wait()
            await self._hand_over(self._waiting[0])
            if self._waiting:
                self._waiting.popleft()

    async def _hand_over(self, each: Item | JsonObject) -> None:
        client = self._client
        if client is None:
            raise TimeoutError
        self.operations += 1
        with anyio.fail_after(CONNECT_TIME):
            if isinstance(each, Item):
                await client.set(self._named(each.key), each.value, ex=each.seconds)
            else:
                body = json.dumps(each, separators=(",", ":")).encode()
                await client.publish(self._named("mail"), self._wax.close(MAIL, body))

    def _put(self, each: Item | JsonObject) -> None:
        self._waiting.append(each)
        self._news.send()

    def _named(self, key: str) -> str:
        return f"{SCOPE}:{key}"

    def _tell_of_return(self) -> None:
        if self._is_told:
            logger.warning("the store is there again")
        self._is_told = False

    def _tell_of_loss(self, error: BaseException) -> None:
        if not self._is_told:
            reason = type(error).__name__
            logger.warning("the store cannot be reached (%s): going on as without it", reason)
        self._is_told = True


def _first(error: BaseException) -> BaseException:
    """Return what went wrong first, of all that went wrong because of it."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    return _first(error.exceptions[0])  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
