"""The deprecated SSE transport towards a server: one stream for all that it says, and a mailbox."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from functools import partial

import anyio
import anyio.abc
import httpx2
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from aggregator.basics.turns import in_turns
from aggregator.downstream.http.background import Background
from aggregator.downstream.http.endpoint import Endpoint, Response
from aggregator.downstream.http.fault import broken
from aggregator.downstream.http.post import EVENTS, JSON, encode, kind
from aggregator.downstream.http.session import TELLING
from aggregator.downstream.http.traffic import Traffic
from aggregator.downstream.transport import (
    NO_HEADERS,
    Headers,
    Take,
    Transport,
    Undelivered,
    UndeliveredError,
)
from aggregator.jsonrpc.decoding import Noise, decoding


class Events(Traffic):
    """Carries messages to one server and back."""

    def __init__(self, endpoint: Endpoint, group: anyio.abc.TaskGroup) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._group = group
        self._background = Background(group)
        self._mailbox: httpx2.URL | None = None
        self._settled = anyio.Event()
        """Set once the server has named its mailbox, or will not any more."""

    async def open(self) -> None:
        """Listen to the server, and wait until it has named its mailbox.

        Raises:
            UndeliveredError: Its stream ended before that.
        """
        self._group.start_soon(self._listen)
        await self._settled.wait()
        if self._mailbox is None:
            raise broken(self.describe_end())

    def put(self, request: JSONRPCRequest, _headers: Headers, _take: Take) -> bool:
        """Begin to send a request; its answer is received."""
        self.check_open()
        self._group.start_soon(self._ask, request)
        return True

    async def send(self, message: JSONRPCMessage, _headers: Headers = NO_HEADERS) -> None:
        """Send what has no answer; only what the next one must not overtake is waited for."""
        match message:
            case JSONRPCNotification(method="notifications/initialized"):
                await self._tell(message)
            case _:
                self._background.run(partial(self._tell, message))

    async def _listen(self) -> None:
        """Hand on what the server says until it falls silent."""
        async with self._endpoint.send("GET", {"accept": EVENTS}) as response:
            if not response.is_success or kind(response) != EVENTS:
                raise self._endpoint.refusal(response)
            try:
                await self._hear(response)
            except UndeliveredError as error:
                self.end(error.undelivered)
            else:
                self.end(Undelivered("it closed its stream"))
            self._settled.set()

    async def _hear(self, response: Response) -> None:
        async with aclosing(self._endpoint.events(response)) as events:
            async for event in events:
                if event.kind == "endpoint":
                    self._mailbox = self._endpoint.within(event.data.decode(errors="replace"))
                    self._settled.set()
                elif event.data:
                    await self._take(event.data)

    async def _take(self, data: bytes) -> None:
        for message in await in_turns(decoding(data, self._endpoint.max_message_bytes)):
            if not isinstance(message, Noise):
                self.note_answer()
                await self.deliver(message)

    async def _ask(self, request: JSONRPCRequest) -> None:
        """Post a request; its answer comes on the stream."""
        try:
            await self._post(request)
        except UndeliveredError as error:
            await self.deliver(error.undelivered._replace(request=request.id))
            self.note_failure(error)

    async def _tell(self, message: JSONRPCMessage) -> None:
        with anyio.move_on_after(TELLING):
            try:
                await self._post(message)
            except UndeliveredError:
                return

    async def _post(self, message: JSONRPCMessage) -> None:
        headers = {"accept": "*/*", "content-type": JSON}
        content = encode(message)
        async with self._endpoint.send("POST", headers, content, url=self._mailbox) as response:
            if not response.is_success:
                raise self._endpoint.refusal(response)


@asynccontextmanager
async def open_events(endpoint: Endpoint) -> AsyncGenerator[Transport, None]:
    """Carry messages to and from an endpoint for the length of the block.

    Raises:
        UndeliveredError: It gives no stream, or one without a mailbox.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(endpoint.tend)
        with Events(endpoint, group) as events:
            await events.open()
            yield events
            group.cancel_scope.cancel()
