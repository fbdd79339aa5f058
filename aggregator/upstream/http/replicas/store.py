"""A Redis or Valkey that replicas have in common: what they remember together, and tell each other.

Nothing waits for it but who opens a session here that was opened elsewhere, and that not for long.
Where it cannot be reached, or answers what is no answer, everything is as without it; what was to
be written is written once it is there again.
"""

import json
import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import coredis
from coredis.exceptions import RedisError
from coredis.retry import NoRetryPolicy
from coredis.tokens import PureToken

from aggregator.basics.files import in_words
from aggregator.basics.json import JsonObject, is_array, is_object
from aggregator.basics.signals import Signal
from aggregator.upstream.seal import Cipher, ForeignStateError

logger = logging.getLogger(__name__)

ANSWER_TIME = 0.5
"""Seconds that a question to the store may take: whoever waits for it has a client that waits."""
CLAIM_TIME = 2.0
"""Seconds that it may take to have what only one may have, or to learn what must not be missed: it
takes as long to begin with it."""
CONNECT_TIME = 2.0
PORT = 6379
"""Where a store is if its address does not say."""
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
"""Seconds between two attempts to reach it."""
MAX_WAITING = 16 << 20
"""Bytes that are to be written when it is there again; of more, the oldest is forgotten."""
MAX_VALUE = 1 << 20
"""Bytes that are read of what is kept or told: whoever has the store may write any number there."""
SCOPE = "mcp-tool-aggregator:1"
"""What all keys begin with. Sessions and tokens are digests there, and what is kept of them and
told is sealed: whoever has another key may use the same database."""
KEPT = "what replicas keep"
"""What is kept is sealed for this, with the key that it is kept under."""
MAIL = "mail between replicas"
"""What is told to other replicas is sealed for this: whoever only has the store cannot make it."""

_FAILURES = (
    RedisError,
    OSError,
    TimeoutError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    # What comes of an address that is none, or of an answer that is of another kind.
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    # What comes of one that holds another, and so on.
    RecursionError,
)


class Item(NamedTuple):
    """What is to be told, or to be kept under a key for so many seconds."""

    body: bytes
    key: str = ""
    seconds: int = 0


Hear = Callable[[JsonObject], Awaitable[None]]
"""Told what another replica says."""


class Store:
    """One store, and the way to whoever else has the same keys."""

    def __init__(self, url: str, cipher: Cipher) -> None:
        self._url = url
        self._cipher = cipher
        self._client: coredis.Redis[bytes] | None = None
        self._waiting = deque[Item]()
        self._size = 0
        self._news = Signal()
        self._is_told = False

    @property
    def is_up(self) -> bool:
        """Whether it can be asked now."""
        return self._client is not None

    @property
    def waiting(self) -> int:
        """Bytes that are to be written and told."""
        return self._size

    def keep(self, key: str, value: str, seconds: float) -> None:
        """Have something kept as soon as that can be."""
        self._put(Item(json.dumps([key, value]).encode(), key, int(seconds)))

    async def put(self, key: str, value: str, seconds: float) -> None:
        """Have something kept now; where that cannot be, as soon as it can."""
        item = Item(json.dumps([key, value]).encode(), key, int(seconds))
        try:
            await self._hand_over(item)
        except _FAILURES:
            self._put(item)

    def tell(self, **message: Any) -> bool:  # noqa: ANN401 - what JSON takes
        """Tell all other replicas something that they may miss; say whether it is not too much."""
        body = json.dumps(message, separators=(",", ":")).encode()
        # What is to be kept matters longer than what is only told.
        if len(body) > MAX_VALUE // 2 or self._size + len(body) > MAX_WAITING // 2:
            return False
        self._put(Item(body))
        return True

    async def look(self, *keys: str) -> Sequence[str | None]:
        """Return what is kept; nothing of it where the store does not answer in time.

        Of what is there and was not written by whoever has our keys, no more is said than that.
        """
        try:
            return await self._looked_up(keys, ANSWER_TIME)
        except _FAILURES:
            return [None] * len(keys)

    async def learn(self, *keys: str) -> Sequence[str | None]:
        """Return what is kept; nothing of it where the store cannot be asked now.

        Raises:
            TimeoutError: It can be, and does not say.
        """
        try:
            return await self._looked_up(keys, CLAIM_TIME)
        except _FAILURES as error:
            raise TimeoutError(type(error).__name__) from error

    async def _looked_up(self, keys: Sequence[str], patience: float) -> Sequence[str | None]:
        client = self._client
        if client is None or not keys:
            return [None] * len(keys)
        with anyio.fail_after(patience):
            found = await client.mget([self._named(key) for key in keys])
        return [self._read(*each) for each in zip(keys, found, strict=True)]

    async def claim(self, key: str, holder: str, seconds: float) -> str | None:
        """Have something for a while if nobody else has; return who has it, if that is known."""
        client, named = self._client, self._named(key)
        if client is None:
            return None
        mine = self._cipher.close(KEPT, json.dumps([key, holder]).encode())
        found = None
        with suppress(*_FAILURES), anyio.fail_after(CLAIM_TIME):
            # Whose it was may have lost it between the two questions.
            while found is None:
                if await client.set(named, mine, condition=PureToken.NX, ex=int(seconds)):
                    return holder
                found = self._read(key, await client.get(named))
            if found == holder:
                await client.set(named, mine, condition=PureToken.XX, ex=int(seconds))
        return found or None

    async def release(self, key: str, holder: str) -> None:
        """Let others have what is this one's."""
        client, named = self._client, self._named(key)
        if client is None:
            return
        with suppress(*_FAILURES), anyio.fail_after(ANSWER_TIME):
            if self._read(key, await client.get(named)) == holder:
                await client.delete([named])

    def _read(self, key: str, found: object) -> str | None:
        said = None if found is None else self._opened(KEPT, found)
        if is_array(said) and len(said) == len(("key", "value")) and said[0] == key:
            return str(said[1])
        return None if found is None else ""

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
        client = _client(self._url)
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
            message = self._opened(MAIL, each["data"])
            if is_object(message):
                await hear(message)

    def _opened(self, purpose: str, data: object) -> object:
        if not isinstance(data, bytes) or len(data) > MAX_VALUE:
            return None
        try:
            return json.loads(self._cipher.open(purpose, data))
        except (ForeignStateError, ValueError):
            return None

    async def _deliver(self) -> None:
        """Write and tell what there is, in its order."""
        while True:
            while not self._waiting:
                await self._news.wait()
            each = self._waiting[0]
            await self._hand_over(each)
            # It may have had to make room meanwhile.
            if self._waiting and self._waiting[0] is each:
                self._drop()

    async def _hand_over(self, each: Item) -> None:
        client = self._client
        if client is None:
            raise TimeoutError
        with anyio.fail_after(CONNECT_TIME):
            if each.key:
                closed = self._cipher.close(KEPT, each.body)
                await client.set(self._named(each.key), closed, ex=each.seconds)
            else:
                await client.publish(self._named("mail"), self._cipher.close(MAIL, each.body))

    def _put(self, each: Item) -> None:
        self._waiting.append(each)
        self._size += len(each.body)
        while self._size > MAX_WAITING:
            self._drop()
        self._news.send()

    def _drop(self) -> None:
        self._size -= len(self._waiting.popleft().body)

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


async def trouble_with(url: str) -> str | None:
    """Say what keeps us from a store, in few words."""
    place = urlsplit(url)
    try:
        with anyio.fail_after(CONNECT_TIME):
            stream = await anyio.connect_tcp(place.hostname or "localhost", place.port or PORT)
    except OSError as error:
        cause = error.__cause__
        number = cause.errno if isinstance(cause, OSError) else None
        return os.strerror(number).lower() if number else in_words(error) or "no answer"
    await stream.aclose()
    lost: BaseException | None = None
    try:
        async with _client(url) as client:
            await client.ping()
    except* _FAILURES as group:
        lost = _first(group)
    return None if lost is None else type(lost).__name__


def _client(url: str) -> coredis.Redis[bytes]:
    return coredis.Redis.from_url(
        url.replace("valkey", "redis", 1) if url.startswith("valkey") else url,
        retry_policy=NoRetryPolicy(),
        connect_timeout=CONNECT_TIME,
        stream_timeout=CONNECT_TIME,
    )


def _first(error: BaseException) -> BaseException:
    """Return what went wrong first, of all that went wrong because of it."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    return _first(error.exceptions[0])  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
