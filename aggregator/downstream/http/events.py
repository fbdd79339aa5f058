"""The deprecated SSE transport towards a server: one stream for all that it says, and a mailbox."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import anyio
import anyio.abc
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from aggregator.downstream.http.endpoint import Endpoint
from aggregator.downstream.http.exchange import EVENTS, JSON, encoded, kind
from aggregator.downstream.http.fault import UndoneError, broken, of_status
from aggregator.downstream.http.session import TELLING
from aggregator.downstream.http.traffic import Traffic
from aggregator.downstream.link import Undone, Wire
from aggregator.jsonrpc.decoding import Noise, decode


class Events:
    """Carries messages to one server and back."""

    def __init__(self, endpoint: Endpoint, traffic: Traffic) -> None:
        self._endpoint = endpoint
        self._traffic = traffic
        self._mailbox = endpoint.url

    async def listen(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Hand on what the server says until it falls silent; started once it has a mailbox."""
        async with self._endpoint.send("GET", {"accept": EVENTS}) as response:
            if not response.is_success or kind(response) != EVENTS:
                raise of_status(response.status_code, response.headers)
            try:
                await self._hear(response, task_status)
            except UndoneError as error:
                self._traffic.end(error.undone)
            else:
                self._traffic.end(Undone("it closed its stream"))

    async def run(
        self, outbox: MemoryObjectReceiveStream[SessionMessage], group: anyio.abc.TaskGroup
    ) -> None:
        """Send what is to be sent until there is no more."""
        async for item in outbox:
            if isinstance(item.message, JSONRPCRequest):
                group.start_soon(self._ask, item.message)
            else:
                await self._tell(item)

    async def _hear(
        self, response: httpx2.Response, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        async with aclosing(self._endpoint.events(response)) as events:
            async for event in events:
                if event.event == "endpoint":
                    self._mailbox = self._endpoint.within(event.data)
                    task_status.started()
                elif event.data:
                    await self._hand_on(event.data.encode())

    async def _hand_on(self, data: bytes) -> None:
        for message in decode(data, self._endpoint.max_message_bytes):
            if not isinstance(message, Noise):
                self._traffic.worked()
                await self._traffic.deliver(message)

    async def _ask(self, request: JSONRPCRequest) -> None:
        """Post a request; its answer comes on the stream."""
        try:
            await self._post(SessionMessage(request))
        except UndoneError as error:
            await self._traffic.fail(request, error)
            self._traffic.failed(error)

    async def _tell(self, item: SessionMessage) -> None:
        with anyio.move_on_after(TELLING):
            try:
                await self._post(item)
            except UndoneError:
                return

    async def _post(self, item: SessionMessage) -> None:
        headers = {"accept": "*/*", "content-type": JSON}
        content = encoded(item.message)
        async with self._endpoint.send("POST", headers, content, url=self._mailbox) as response:
            if not response.is_success:
                raise of_status(response.status_code, response.headers)


@asynccontextmanager
async def open_events(endpoint: Endpoint) -> AsyncGenerator[Wire, None]:
    """Carry messages to and from an endpoint for the length of the block.

    Raises:
        UndoneError: It gives no stream, or one without a mailbox.
    """
    inbox, inward = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outward, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    traffic = Traffic(inbox)
    with inbox, inward, outward, outbox:
        async with anyio.create_task_group() as group:
            events = Events(endpoint, traffic)
            try:
                await group.start(events.listen)
            except RuntimeError as error:
                # Its stream ended before it had said where to send messages.
                raise broken(traffic.describe_end()) from error
            group.start_soon(events.run, outbox, group)
            yield Wire(
                (inward, outward),
                describe_end=traffic.describe_end,
                is_barred=traffic.is_barred,
            )
            group.cancel_scope.cancel()
