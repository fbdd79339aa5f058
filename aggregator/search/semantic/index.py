"""What tools mean, asked of a process that knows: the catalog goes in, nearness comes out."""

import json
import logging
from array import array
from base64 import b64decode
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Any

import anyio
import anyio.abc

from aggregator.basics.frozen import frozen
from aggregator.basics.signals import Signal
from aggregator.catalog import Catalog, ToolEntry
from aggregator.names import ServerName
from aggregator.search.nearness import Nearness, Roster
from aggregator.search.semantic.gist import gist
from aggregator.search.semantic.vectors import SCALE

logger = logging.getLogger(__name__)

ANSWER_WAIT = 0.3
"""Seconds a search waits for what it means; then it is answered by its words alone."""


class SemanticIndex:
    """Follows the catalog; everything slow happens in the process it starts."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._entries: dict[ServerName, tuple[ToolEntry, ...]] = {}
        self._version = 0
        """Counts the changes of the catalog."""
        self._ready = 0
        """The change up to which the process knows everything."""
        self._roster = Roster()
        self._outbox: deque[_Change | _Question] = deque()
        self._posted = Signal()
        """Sent when there is something in the outbox."""
        self._numbers = count(1)
        """For questions: an answer that comes late is nobody else's."""
        self._questions: dict[int, _Question] = {}
        self._heard = Signal()
        """Sent when the process says that it is ready, or ends."""
        self._gone = False

    @property
    def ready(self) -> bool:
        """Whether the meaning of every tool is known."""
        return self._ready == self._version and not self._gone

    def follow(self, catalog: Catalog, /) -> None:
        """Replace what any server had that has something else now."""
        for server in self._entries.keys() - catalog.servers.keys():
            self.remove(server)
        for server, state in catalog.servers.items():
            entries = state.known.entries if state.known else ()
            if entries is not self._entries.get(server, ()):
                self.update(server, entries)

    def update(self, server: ServerName, entries: Sequence[ToolEntry], /) -> None:
        """Replace what one server had."""
        # Behind all others, as in the process: vectors come in this order.
        self._entries.pop(server, None)
        self._entries[server] = tuple(entries)
        self._version += 1
        self._post(_Change(self._version, server, self._entries[server]))

    def remove(self, server: ServerName, /) -> None:
        """Forget the tools of one server."""
        self.update(server, ())
        del self._entries[server]

    async def nearness(self, text: str, /, *also: str) -> Nearness | None:
        """Return how near each tool is to a query, unless that is not known in time.

        It may be read in other ways, too: the nearest counts.
        """
        if not self.ready or not self._roster.entries:
            return None
        roster, question = self._roster, _Question(next(self._numbers), text, also)
        self._questions[question.number] = question
        self._post(question)
        try:
            with anyio.move_on_after(ANSWER_WAIT):
                await question.answered.wait()
        finally:
            del self._questions[question.number]
        current = self.ready and roster is self._roster
        if not current or len(question.likeness) != len(roster.entries):
            return None
        return Nearness(roster, question.likeness, SCALE)

    async def until_ready(self) -> None:
        """Wait until the meaning of every tool is known, or never will be."""
        while not self.ready and not self._gone:
            await self._heard.wait()

    async def run(self) -> None:
        """Start the process with the first tools, and keep it in step until cancelled."""
        await self._until_posted()
        try:
            end = f"it ended with status {await self._run()}"
        except OSError as error:
            end = str(error)
        self._gone = True
        self._outbox.clear()
        self._heard.send()
        logger.warning("The model cannot be used: %s; searching by words alone", end)

    async def _run(self) -> int:
        async with await anyio.open_process(self._command, stderr=None) as process:
            async with anyio.create_task_group() as group:
                group.start_soon(self._deliver, process.stdin)
                await self._listen(process.stdout)
                group.cancel_scope.cancel()
            return await process.wait()

    def _post(self, letter: "_Change | _Question") -> None:
        if not self._gone:
            self._outbox.append(letter)
            self._posted.send()

    async def _until_posted(self) -> None:
        while not self._outbox:
            await self._posted.wait()

    async def _deliver(self, stdin: anyio.abc.ByteSendStream | None) -> None:
        """Write what is in the outbox, in order."""
        while stdin is not None:
            await self._until_posted()
            while self._outbox:
                letter = self._outbox.popleft()
                try:
                    line = await anyio.to_thread.run_sync(letter.line, abandon_on_cancel=True)
                except RuntimeError:
                    # No thread can be started: better to take a moment than to end.
                    line = letter.line()
                try:
                    await stdin.send(line)
                except anyio.BrokenResourceError:
                    # The process has ended: whoever listens to it will know.
                    return

    async def _listen(self, stdout: anyio.abc.ByteReceiveStream | None) -> None:
        rest = b""
        async for chunk in stdout or ():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._heed(json.loads(line))

    def _heed(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"ready": int(version)}:
                self._ready = version
                self._heard.send()
                if self.ready:
                    self._roster = Roster(tuple(chain.from_iterable(self._entries.values())))
            case {"answer": int(number), "near": str(near)} if number in self._questions:
                self._questions[number].answer(near)
            case _:
                pass


@frozen
class _Change:
    """One server's tools are these from now on."""

    version: int
    server: ServerName
    entries: tuple[ToolEntry, ...]

    def line(self) -> bytes:
        """Return the message; made text by text, so that other threads get their turn."""
        texts = b",".join(json.dumps(gist(entry)).encode() for entry in self.entries)
        server = json.dumps(self.server).encode()
        return b'{"version":%d,"server":%b,"texts":[%b]}\n' % (self.version, server, texts)


class _Question:
    """One question that waits for its answer."""

    def __init__(self, number: int, text: str, also: Sequence[str] = ()) -> None:
        self.number = number
        self._text = text
        self._also = also
        self.answered = anyio.Event()
        self.likeness = array("h")

    def line(self) -> bytes:
        """Return the message."""
        asked = {"ask": self.number, "text": self._text, "also": self._also}
        return json.dumps(asked).encode() + b"\n"

    def answer(self, near: str) -> None:
        """Note what was answered."""
        self.likeness = array("h", b64decode(near))
        self.answered.set()
