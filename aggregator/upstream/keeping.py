"""Keeps how a client begins and what it is answered, so that the next start can answer ahead.

What is kept is what the client would be given if it came again: the list as it is now, and not as
it was when it was asked for. Losing it costs a little time, so nothing here ever raises for it.
"""

import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio import to_thread

from aggregator.basics.files import replace_file
from aggregator.basics.json import JsonObject, as_object, items
from aggregator.basics.signals import Signal
from aggregator.catalog.lock import veiled
from aggregator.config import Config
from aggregator.config.keychain import PREFIX
from aggregator.entry.basis import Basis, digest_of_params, stamp_of
from aggregator.entry.record import Answer, Record, read, written
from aggregator.fleet.now import Now
from aggregator.fleet.pinning import secrets
from aggregator.upstream.client_memory import RESTORED_WITHIN, ClientMemory
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.listing import tools_for
from aggregator.upstream.opening import LIST, Exchange, Opening

PAUSE = 1.0
"""Seconds to wait for more changes before what is kept is written."""
KEPT = 64
"""Records of one user that are kept, of all clients and configurations."""

MAX_ANSWER_BYTES = 512 * 1024
"""Bytes of an answer that is kept."""

Wait = Callable[[], Awaitable[None]]


class Again(NamedTuple):
    """What a client would be given if it came again."""

    tools: Sequence[JsonObject]
    after: float = 0.0
    """Until when it would be given more than that, on the clock of `time.time`."""


def again(now: Now, conversation: Conversation, client_memory: ClientMemory) -> Again:
    """Return what a client would be given if it came again.

    Of a server that has not been heard of yet, that is nothing then as well.
    """
    client = conversation.client
    relists = client_memory.relists(client)
    # For a while it would find what it has loaded.
    after = client_memory.restored_until if conversation.loaded else 0.0
    return Again(
        tools_for(now, Conversation(conversation.era, client, known_relist=relists)), after
    )


class Keeping:
    """Writes down how a client began, for as long as what that rests on is the same."""

    def __init__(
        self, opening: Opening, basis: Basis | None, config: Config, variables: Mapping[str, str]
    ) -> None:
        self._opening = opening
        self._variables = variables
        self._names = sorted(config.names)
        self._files = [str(path) for path in config.files]
        self._salt = os.urandom(8).hex()
        self._stamp = self._stamped()
        # What a keyring holds cannot be looked up as quickly as it would have to be.
        is_held = any(name.startswith(PREFIX) for name in self._names)
        is_wanted = config.settings.state and self._stamp is not None and not is_held
        self._basis = basis if is_wanted else None
        self._config = config
        self._news = Signal()
        # What comes before anybody waits for it is news, too.
        self._has_news = True

    @asynccontextmanager
    async def kept(self, changed: Wait, look: Callable[[], Again | None]) -> AsyncGenerator[None]:
        """Keep what the client would be given, for the length of the block."""
        if self._basis is None:
            yield
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow, changed)
            group.start_soon(self._follow, self._opening.news.wait)
            group.start_soon(self._keep, self._basis, look)
            yield
            group.cancel_scope.cancel()
        # Whatever came last may not have been noticed yet.
        self._write(self._basis, self._record(look()))

    async def _follow(self, changed: Wait) -> None:
        while True:
            await changed()
            self._has_news = True
            self._news.send()

    async def _keep(self, basis: Basis, look: Callable[[], Again | None]) -> None:
        while True:
            while not self._has_news:
                await self._news.wait()
            await anyio.sleep(PAUSE)
            self._has_news = False
            # Where no thread can be started, the next run is answered as the last one was.
            with suppress(RuntimeError):
                await to_thread.run_sync(self._write, basis, self._record(look()))

    def _record(self, again: Again | None) -> Record | None:
        """Return what there is to be kept."""
        answered = self._opening.answered
        if not answered or again is None:
            return None
        return Record(
            [
                Answer(each.request.method, _digest(each), renewed(each, again.tools))
                for each in answered
            ],
            names=self._names,
            files=self._files,
            salt=self._salt,
            stamp=self._stamp or "",
            after=again.after,
        )

    def _write(self, basis: Basis, record: Record | None) -> None:
        """Write a record, unless what it rests on is not what it was, or it is written already."""
        if record is None or self._stamped() != self._stamp or not basis.is_firm(self._variables):
            return
        first = self._opening.answered[0].request
        path = Path(basis.path(first.method, first.params))
        known = read(str(path))
        if known is not None and known.holds(self._variables):
            if not _lists(record):
                # Who has not asked for the list says nothing against it.
                return
            # The same client may have left more behind in another directory.
            record = record.put_off(min(known.after, time.time() + RESTORED_WITHIN))
        content = written(self._presentable(record))
        with suppress(OSError):
            if content is None:
                path.unlink(missing_ok=True)
            elif known is None or content != written(known.sealed(self._salt, self._stamp or "")):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                replace_file(path, content)
                _tidy(path.parent)
            else:
                os.utime(path)

    def _presentable(self, record: Record) -> Record:
        """Return a record without a list that is too long, or tells what nobody may write down."""
        parts = [part for each in record.answers for part in _parts(each.result)]
        is_modest = all(_is_modest(each.result) for each in record.answers)
        if is_modest and all(veiled(part, self._secrets) == part for part in parts):
            return record
        return record.without_lists()

    @cached_property
    def _secrets(self) -> Sequence[str]:
        """What nobody may write down: looked for once something is written, after the start."""
        return [form for each in self._config.servers.values() for form in secrets(each)]

    def _stamped(self) -> str | None:
        return stamp_of(self._salt, self._names, self._files, self._variables)


def renewed(exchange: Exchange, tools: Sequence[JsonObject]) -> dict[str, object]:
    """Return an answer as it would be now, before any server has been heard of."""
    result: dict[str, object] = dict(exchange.result or {})
    if exchange.request.method == LIST:
        result["tools"] = list(tools)
        if "ttlMs" in result:
            result["ttlMs"] = 0
    return result


def _is_modest(result: JsonObject) -> bool:
    """Whether an answer is short enough to be kept, found out without writing all of it."""
    size = 0
    for part in _parts(result):
        size += len(json.dumps(part, default=dict))
        if size > MAX_ANSWER_BYTES:
            return False
    return True


def _parts(result: JsonObject) -> list[JsonObject]:
    """Return the tools of an answer, or all of one that has none."""
    return [as_object(each) for each in items(result["tools"])] if "tools" in result else [result]


def _digest(exchange: Exchange) -> str:
    return digest_of_params(exchange.request.params).hex()


def _lists(record: Record) -> bool:
    return any(each.method == LIST for each in record.answers)


def _tidy(directory: Path) -> None:
    """Remove the oldest records, and what was half written when somebody ended us."""
    files = sorted(directory.iterdir(), key=lambda path: path.lstat().st_mtime)
    for path in files[:-KEPT]:
        path.unlink(missing_ok=True)
