"""What replicas that have a store in common remember of a session, and tell each other."""

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from secrets import token_hex
from typing import Any, NamedTuple, Protocol

from mcp_types import JSONRPCError, JSONRPCResponse

from aggregator.basics.json import JsonObject, items
from aggregator.fleet.client_processes import Tenure
from aggregator.upstream.http.replicas.leases import Leases

logger = logging.getLogger(__name__)

KEPT = 7 * 86_400.0
"""Seconds that it is remembered of a session: no longer than its id opens it."""
REVOKED = 90 * 86_400.0
"""Seconds that it is remembered of a token that it was revoked."""
LINES = 1000
"""Lines of stats that are told in one message."""
PASSED_ON = frozenset(
    (
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    )
)
"""What is told to a client by whichever replica it listens to."""


class Box(Protocol):
    """A store, as far as it matters here."""

    @property
    def is_up(self) -> bool:
        """Whether it can be asked now."""
        ...

    def keep(self, key: str, value: str, seconds: float, /) -> None:
        """Have something kept as soon as that can be."""
        ...

    async def put(self, key: str, value: str, seconds: float, /) -> None:
        """Have something kept now, or as soon as that can be."""
        ...

    def tell(self, **message: Any) -> bool:  # noqa: ANN401 - what JSON takes
        """Tell all other replicas something, unless it is too much; say whether it is not."""
        ...

    async def look(self, *keys: str) -> Sequence[str | None]:
        """Return what is kept; an empty text for what is there and cannot be read."""
        ...

    async def learn(self, *keys: str) -> Sequence[str | None]:
        """Return the same of what must not be missed; nothing if the store cannot be asked.

        Raises:
            TimeoutError: It can be, and does not say.
        """
        ...

    async def claim(self, key: str, holder: str, seconds: float, /) -> str | None:
        """Have something if nobody else has; return who has it, if that can be known."""
        ...

    async def release(self, key: str, holder: str, /) -> None:
        """Let others have what is ours."""
        ...

    async def run(
        self, hear: Callable[[JsonObject], Awaitable[None]], catch_up: Callable[[], Awaitable[None]]
    ) -> None:
        """Be in touch with it whenever it can be reached."""
        ...


class Recalled(NamedTuple):
    """What is remembered of a session."""

    has_ended: bool = False
    loaded: tuple[str, ...] = ()


class Mail:
    """One replica's part of it."""

    def __init__(self, box: Box, name: str) -> None:
        self._box = box
        self.name = name
        self._run = token_hex(8)
        """Tells what this process says from what one says that has the same name."""
        self._has_warned = False
        self.leases = Leases(box, name)
        """What only this replica has."""

    @property
    def is_up(self) -> bool:
        """Whether others can be reached."""
        return self._box.is_up

    async def run(
        self, hear: Callable[[JsonObject], Awaitable[None]], catch_up: Callable[[], Awaitable[None]]
    ) -> None:
        """Hear what others tell."""

        async def heard(message: JsonObject) -> None:
            is_namesake = message.get("from") == self.name
            if is_namesake and message.get("run") in (None, self._run):
                return
            if is_namesake and not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "another replica is called `%s`, too: give each a host name of its own, or "
                    "both have what only one may have",
                    self.name,
                )
            await hear(message)

        await self._box.run(heard, catch_up)

    async def recall(self, *sessions: str) -> list[Recalled]:
        """Return what is remembered of sessions."""
        return _recalled(await self._box.look(*_keys_of(sessions)))

    async def catch_up(self, *sessions: str) -> list[Recalled]:
        """Return the same, of what may have been told while nobody could be heard.

        Raises:
            TimeoutError: It is not known.
        """
        return _recalled(await self._box.learn(*_keys_of(sessions)))

    async def were_revoked(self, digests: Iterable[str]) -> frozenset[str]:
        """Return which of these tokens another replica knows to be revoked.

        Raises:
            TimeoutError: It is not known.
        """
        asked = tuple(digests)
        found = await self._box.learn(*(_key("revoked", each) for each in asked))
        return frozenset(each for each, mark in zip(asked, found, strict=True) if mark is not None)

    def ended(self, session: str) -> None:
        """Say that a session was ended by its client."""
        self._box.keep(_key("ended", session), "1", KEPT)
        self._tell("ended", session=session)

    def revoked(self, digests: Iterable[str]) -> None:
        """Say that tokens open nothing any more."""
        gone = sorted(digests)
        for each in gone:
            self._box.keep(_key("revoked", each), "1", REVOKED)
        self._tell("revoked", digests=gone)

    def loaded(self, session: str, names: Sequence[str]) -> None:
        """Say what the searches of a session have loaded."""
        self._box.keep(_key("loaded", session), json.dumps([*names]), KEPT)
        self._tell("loaded", session=session, names=[*names])

    def told(self, session: str, method: str, params: Mapping[str, Any] | None) -> None:
        """Have a client told something by whoever it listens to."""
        if method in PASSED_ON:
            self._tell("told", session=session, method=method, params=params and {**params})

    def cancelled(self, session: str, request: object) -> None:
        """Say that a client has taken a request back."""
        self._tell("cancelled", session=session, request=request)

    def answered(self, session: str, asker: str, message: JSONRPCResponse | JSONRPCError) -> bool:
        """Pass an answer on to who has asked; say whether that can be done."""
        if not self.is_up:
            return False
        body = message.model_dump(by_alias=True, mode="json", exclude_none=True)
        return self._tell("answered", session=session, to=asker, message=body)

    def spent(self, holders: Mapping[str, Any], *, wants: bool = False) -> bool:
        """Say what was let through here for each identity; others answer who wants to know."""
        return self.is_up and self._tell("spent", holders={**holders}, wants=wants)

    async def lease(self, what: str, tenure: Tenure, home: str | None) -> str | None:
        """Have what only one replica may have; return which has it, if that can be known."""
        return await self.leases.lease(what, tenure, home)

    def counted(self, place: str, lines: Sequence[bytes]) -> None:
        """Say what was counted here, and in which place it is written."""
        texts = [line.decode() for line in lines]
        # While nobody hears it, it is in our own files only.
        for start in range(0, len(texts) if self.is_up else 0, LINES):
            self._tell("counted", place=place, lines=texts[start : start + LINES])

    def changed(self, profile: str | None, what: str) -> None:
        """Say that clients of a profile that listen elsewhere would get another list here."""
        self._tell("changed", profile=profile, what=what)

    def listens(self, profile: str | None) -> None:
        """Say that a client of a profile listens here."""
        self._tell("listens", profile=profile)

    def _tell(self, kind: str, **facts: Any) -> bool:  # noqa: ANN401 - what JSON takes
        return self._box.tell(kind=kind, **{"from": self.name}, run=self._run, **facts)


def _key(kind: str, what: str) -> str:
    return f"{kind}:{sha256(what.encode()).hexdigest()}"


def _keys_of(sessions: Iterable[str]) -> list[str]:
    return [_key(kind, each) for each in sessions for kind in ("ended", "loaded")]


def _recalled(found: Sequence[str | None]) -> list[Recalled]:
    return [
        Recalled(ended is not None, _names(loaded))
        for ended, loaded in zip(found[::2], found[1::2], strict=True)
    ]


def _names(kept: str | None) -> tuple[str, ...]:
    try:
        return tuple(each for each in items(json.loads(kept or "[]")) if isinstance(each, str))
    except ValueError:
        return ()
