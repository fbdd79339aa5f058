"""What one replica does about what the others tell it."""

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio import to_thread
from mcp_types import JSONRPCError, JSONRPCResponse
from pydantic import ValidationError

from aggregator.basics.json import JsonObject, as_object, items
from aggregator.records.segments import Segments
from aggregator.records.stats import adopted
from aggregator.upstream.http.endpoint import Endpoint
from aggregator.upstream.http.keys import Keys
from aggregator.upstream.http.replicas.counting import Counting
from aggregator.upstream.http.replicas.mail import Mail
from aggregator.upstream.server import Upstream

logger = logging.getLogger(__name__)

AT_ONCE = 500
"""Sessions that are asked for at a time, once the store is there again."""


class MessageHandling:
    """Acts on messages; whatever is no longer here is none of its business."""

    def __init__(
        self,
        mail: Mail,
        endpoint: Endpoint,
        upstream: Upstream,
        keys: Keys,
        stats: Path | None = None,
    ) -> None:
        self._mail = mail
        self._stats = stats
        """Where it is kept what was counted, if it is."""
        self._counting = Counting(mail, upstream.allowances)
        self._endpoint = endpoint
        self._upstream = upstream
        self._keys = keys
        self._acts: Mapping[str, Callable[[JsonObject], Awaitable[None]]] = {
            "revoked": self._revoked,
            "spent": self._spent,
            "counted": self._counted,
            "changed": self._changed,
            "listens": self._changed,
        }
        """What concerns all; what is of a later version concerns nobody."""
        self._of_sessions: Mapping[str, Callable[[str, JsonObject], Awaitable[None]]] = {
            "ended": self._ended,
            "loaded": self._loaded,
            "told": self._told,
            "cancelled": self._cancelled,
            "answered": self._answered,
        }
        """What concerns a session."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None, None]:
        """Hear, and tell, for the length of the block."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._mail.run, self._hear, self._catch_up)
            group.start_soon(self._counting.run)
            group.start_soon(self._mail.leases.run)
            try:
                yield
            finally:
                await self._mail.leases.let_go()
                group.cancel_scope.cancel()

    async def _hear(self, message: JsonObject) -> None:
        try:
            await self._act(message)
        except (ArithmeticError, KeyError, TypeError, ValueError):
            # Whoever is of another version may say it otherwise: that is no reason to end.
            logger.warning("what another replica says is not understood: `%s`", message.get("kind"))

    async def _act(self, message: JsonObject) -> None:
        kind, session = message["kind"], message.get("session")
        if (act := self._acts.get(kind)) is not None:
            await act(message)
        elif kind in self._of_sessions and isinstance(session, str):
            await self._of_sessions[kind](session, message)

    async def _catch_up(self) -> None:
        """Learn what was told while nobody could be heard.

        Raises:
            TimeoutError: The store does not say.
        """
        self._counting.introduce()
        self._keys.refuse(await self._mail.were_revoked(self._keys.valid))
        known = self._endpoint.sessions.known()
        for start in range(0, len(known), AT_ONCE):
            sessions = known[start : start + AT_ONCE]
            found = await self._mail.catch_up(*(each.key for each in sessions))
            for session, recalled in zip(sessions, found, strict=True):
                if recalled.has_ended:
                    self._endpoint.end(session.key)
                else:
                    self._upstream.change_listeners.load(session.key, recalled.loaded)

    async def _revoked(self, message: JsonObject) -> None:
        self._keys.refuse(each for each in items(message["digests"]) if isinstance(each, str))

    async def _spent(self, message: JsonObject) -> None:
        self._counting.hear(message)

    async def _changed(self, message: JsonObject) -> None:
        profile = message.get("profile")
        if isinstance(profile, str | None):
            await self._upstream.change_listeners.hear_of(profile, message.get("what"))

    async def _counted(self, message: JsonObject) -> None:
        """Keep what others have counted beside our own, so that each has the sum of all."""
        if self._stats is not None:
            config = self._upstream.fleet.now.config.path
            place, lines = message["place"], message["lines"]
            # Where no thread can be started, it is missing from our sum.
            with suppress(RuntimeError):
                await to_thread.run_sync(_keep, self._stats, config, place, lines)

    async def _ended(self, session: str, _message: JsonObject) -> None:
        self._endpoint.end(session)

    async def _loaded(self, session: str, message: JsonObject) -> None:
        names = (each for each in items(message["names"]) if isinstance(each, str))
        self._upstream.change_listeners.load(session, names)

    async def _told(self, session: str, message: JsonObject) -> None:
        known = self._endpoint.sessions.get(session)
        if known is not None and known.has_stream:
            params = message.get("params")
            await known.notify(message["method"], None if params is None else as_object(params))

    async def _cancelled(self, session: str, message: JsonObject) -> None:
        if (known := self._endpoint.sessions.get(session)) is not None:
            known.cancel(message["request"])

    async def _answered(self, session: str, message: JsonObject) -> None:
        known = self._endpoint.sessions.get(session)
        if known is None or message["to"] != self._mail.name:
            return
        kind = JSONRPCError if "error" in message["message"] else JSONRPCResponse
        try:
            known.questions.answer(kind.model_validate(message["message"]))
        except ValidationError:
            return


def _keep(directory: Path, config: Path, place: str, lines: object) -> None:
    segments = Segments(directory)
    # Who cannot write there has been told so by what it counts itself.
    with suppress(OSError):
        if place != segments.place():
            segments.append(adopted(items(lines), config), time.time())
