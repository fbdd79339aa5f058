"""One address and the requests to it: bounded, uncompressed, and never led to another origin."""

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple, TypeVar

import anyio.lowlevel
import anyio.to_thread
import httpx2

from aggregator import __version__
from aggregator.downstream.http.address import Address, tls_context
from aggregator.downstream.http.connection import PIECES_AT_ONCE, SMALL_BYTES, Connection
from aggregator.downstream.http.cookies import FewCookies
from aggregator.downstream.http.fault import (
    FAILURES,
    StrayError,
    broken,
    of_error,
    of_status,
    turned_away,
)
from aggregator.downstream.http.form import Form
from aggregator.downstream.http.redirects import MAX_REDIRECTS, followed, is_same_origin
from aggregator.downstream.http.response import Response
from aggregator.downstream.http.sse import END, Event, Reader
from aggregator.downstream.http.wire import PORTS, Answer, Wire, open_wire
from aggregator.downstream.login.challenge import is_refusal
from aggregator.downstream.login.credentials import RenewalError, Shown
from aggregator.downstream.transport import UndeliveredError

CONNECT_PATIENCE = 10.0
"""Seconds a connection may take to be made, and one write to be taken."""
KEEP_ALIVE = 4.0
"""Seconds an idle connection is kept: less than the five after which many servers close theirs."""
ERROR_BYTES = 64 * 1024
"""Bytes read of the body of a refusal."""

AUTHORIZATION = "authorization"
OURS = frozenset(
    (
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "transfer-encoding",
    )
)
"""Headers that belong to the transport, whatever the configuration says."""
KEPT = frozenset(("accept-encoding", "connection"))
"""Those of them that are the same with each message."""


R = TypeVar("R", bound=Response)


class Asked(NamedTuple):
    """A message that was written, and that nobody waits for yet."""

    connection: Connection
    token: str | None
    """What was shown with it."""


class Endpoint:
    """Sends requests to one address."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        address: Address,
        cookies: FewCookies,
        wire: Wire | None = None,
    ) -> None:
        self._client = client
        self._cookies = cookies
        """Those that the client has."""
        self._wire = wire
        self._form: Form | None = None
        self._proxy = None if address.proxy is None else httpx2.URL(address.proxy)
        self.url = httpx2.URL(address.url)
        self.max_message_bytes = address.max_message_bytes
        self._credentials = address.credentials
        self._given = tuple(name for name in address.headers if name.lower() not in OURS)

    async def tend(self) -> None:
        """Close connections that nobody has used for as long as they are kept."""
        if self._wire is not None:
            await self._wire.tend()

    def refusal(self, response: Response) -> UndeliveredError:
        """Put into words why the server did not take a request."""
        if self._credentials is not None:
            told = self._credentials.explain(response.status_code, response.headers)
            if told is not None:
                return UndeliveredError(told)
        return of_status(response.status_code, response.headers, self._given)

    @asynccontextmanager
    async def send(
        self,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        *,
        url: httpx2.URL | None = None,
        asked: Asked | None = None,
    ) -> AsyncGenerator[Response, None]:
        """Send a request and give its response, unread, for the length of the block.

        What was written to a connection already is not sent again.

        Raises:
            UndeliveredError: It cannot be reached, or the connection broke while the block read.
        """
        try:
            form = self._form if asked is not None else self._form_of(method, headers, url)
            if form is None or content is None or self._wire is None:
                request = self._request(method, headers, content, url)
                response = await self._follow(request)
            else:
                send = partial(_post, self._wire, form, headers, content)
                first = None if asked is None else self._wire.answer(asked.connection, form)
                response = await self._admitted(send, asked and asked.token, first)
                if "location" in response.headers or "set-cookie" in response.headers:
                    response = await self._heed(response, headers, content)
            try:
                _refuse_encoding(response)
                yield response
            except StrayError:
                if isinstance(response, Answer):
                    response.spoil()
                raise
            finally:
                await response.aclose()
        except RenewalError as error:
            raise turned_away(str(error)) from error
        except FAILURES as error:
            raise of_error(error, self.url, self._proxy) from error

    def put(self, headers: Mapping[str, str], content: bytes) -> Asked | None:
        """Write a message to a kept connection, if nothing has to be waited for."""
        shown = Shown(None) if self._credentials is None else self._credentials.at_hand()
        form = self._form_of("POST", headers, None)
        if self._wire is None or shown is None or form is None or len(content) > SMALL_BYTES:
            return None
        try:
            data = form.written(_bearing(headers, shown.token), content)
        except httpx2.LocalProtocolError:
            # Who sends it in the usual way says so.
            return None
        connection = self._wire.put(data)
        return connection and Asked(connection, shown.token)

    def keep(self, connection: Connection) -> bool:
        """Keep a connection whose response has been read to the end; say whether that is so."""
        return self._wire is not None and self._wire.keep(connection)

    async def let_go(self, connection: Connection) -> None:
        """Keep a connection that was written to, or close it."""
        if self._wire is not None:
            await self._wire.let_go(connection)

    async def read(self, response: Response) -> bytes:
        """Read a body, as long as it is within bounds.

        Raises:
            UndeliveredError: It is too long.
        """
        limit = self.max_message_bytes if response.is_success else ERROR_BYTES
        pieces: list[bytes] = []
        size = 0
        async for piece in _pieces(response):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise broken(
                    f"its answer is longer than the {limit:,} bytes that `maxMessageBytes` allows"
                )
        return b"".join(pieces)

    async def events(self, response: Response) -> AsyncGenerator[Event, None]:
        """Give the events of a stream, each within bounds; close it when done.

        Raises:
            UndeliveredError: The stream broke, or an event is too long.
        """
        try:
            reader = Reader(self.max_message_bytes)
            async for piece in _pieces(response):
                for event in reader.feed(piece):
                    if event is None:
                        await anyio.lowlevel.checkpoint()
                    else:
                        yield event
            for event in reader.feed(END):
                if event is not None:
                    yield event
        except FAILURES as error:
            raise of_error(error, self.url, self._proxy) from error

    def within(self, location: str) -> httpx2.URL:
        """Return a place on this origin.

        Raises:
            UndeliveredError: It is on another.
        """
        url = self.url.join(location)
        if not is_same_origin(self.url, url):
            raise turned_away("it names an address on another origin, which is not followed")
        return url

    def _form_of(
        self, method: str, headers: Mapping[str, str], url: httpx2.URL | None
    ) -> Form | None:
        """Return the form that a message can be sent in, if nothing but its own headers varies."""
        is_plain = method == "POST" and url is None
        if self._wire is None or not is_plain or (self._cookies.were_set and len(self._cookies)):
            return None
        if self._form is None:
            self._form = Form(self._client.build_request("POST", self.url), OURS - KEPT)
        shown = headers if self._credentials is None else (*headers, AUTHORIZATION)
        return self._form if self._form.fits(shown) else None

    def _request(
        self,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None,
        url: httpx2.URL | None = None,
    ) -> httpx2.Request:
        """Make a request of the HTTP client's.

        Raises:
            LocalProtocolError: A header cannot be sent: some are what the server itself has said.
        """
        try:
            return self._client.build_request(
                method, url or self.url, headers=dict(headers), content=content
            )
        except UnicodeEncodeError as error:
            raise httpx2.LocalProtocolError("a header cannot be sent as it is") from error

    async def _heed(
        self, answer: Answer, headers: Mapping[str, str], content: bytes
    ) -> httpx2.Response:
        """Keep the cookies that come with a response, and go where it leads."""
        request = self._request("POST", headers, content)
        response = answer.modelled(request)
        self._keep_cookies(response)
        return await self._follow(request, response)

    async def _follow(
        self, request: httpx2.Request, response: httpx2.Response | None = None
    ) -> httpx2.Response:
        """Send a request, and again where a redirect keeps its method and its origin."""
        response = response or await self._send(request)
        for _ in range(MAX_REDIRECTS):
            if (following := followed(request, response)) is None:
                break
            await response.aclose()
            request = following
            response = await self._send(request)
        return response

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        return await self._admitted(lambda token: self._once(_shown(request, token)))

    async def _admitted(
        self,
        send: Callable[[str | None], Awaitable[R]],
        token: str | None = None,
        first: Awaitable[R] | None = None,
    ) -> R:
        """Send a request with the login that there is, and with another if that is refused.

        Who refuses a login has not acted on the request. Of one that is sent already, `first` is
        the response, and the login was `token`.
        """
        if first is None:
            token = None if self._credentials is None else await self._credentials.token()
        response = await (send(token) if first is None else first)
        if self._credentials is None:
            return response
        if not is_refusal(response.status_code):
            return response
        try:
            another = await self._credentials.instead_of(
                token, response.status_code, response.headers
            )
        except BaseException:
            await response.aclose()
            raise
        if another not in (None, token):
            await response.aclose()
            response = await send(another)
        return response

    async def _once(self, request: httpx2.Request) -> httpx2.Response:
        if self._wire is None or request.method != "POST" or not self._is_ours(request.url):
            return await self._client.send(request, stream=True, follow_redirects=False)
        answer = await self._wire.send(request, request.content)
        response = answer.modelled(request)
        self._keep_cookies(response)
        return response

    def _keep_cookies(self, response: httpx2.Response) -> None:
        """Send back from now on what a gateway may route by."""
        if "set-cookie" in response.headers:
            self._client.cookies.extract_cookies(response)

    def _is_ours(self, url: httpx2.URL) -> bool:
        return url is self.url or is_same_origin(self.url, url)


@asynccontextmanager
async def open_endpoint(address: Address) -> AsyncGenerator[Endpoint, None]:
    """Keep connections to an address for the length of the block.

    Raises:
        OSError: A certificate cannot be read.
    """
    # Reading certificates takes long enough to be felt by everybody else.
    context = await anyio.to_thread.run_sync(tls_context, address)
    transport = httpx2.AsyncHTTPTransport(
        verify=context,
        trust_env=False,
        proxy=address.proxy,
        limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE),
        socket_options=_keep_alive_options(),
    )
    cookies = FewCookies()
    async with httpx2.AsyncClient(
        transport=transport,
        trust_env=False,
        headers=_headers(address.headers),
        cookies=cookies,
        # How long an answer may take is for the caller to say.
        timeout=httpx2.Timeout(CONNECT_PATIENCE, read=None),
    ) as client:
        url = httpx2.URL(address.url)
        if address.proxy is not None or url.userinfo or url.scheme not in PORTS:
            yield Endpoint(client, address, cookies)
            return
        wire = Wire(
            url,
            context,
            options=_keep_alive_options(),
            patience=CONNECT_PATIENCE,
            keep=KEEP_ALIVE,
        )
        async with open_wire(wire):
            yield Endpoint(client, address, cookies, wire)


async def _post(
    wire: Wire, form: Form, headers: Mapping[str, str], content: bytes, token: str | None
) -> Answer:
    """Send a message with a login, if there is one."""
    return await wire.post(form, _bearing(headers, token), content)


def _bearing(headers: Mapping[str, str], token: str | None) -> Mapping[str, str]:
    return headers if token is None else {**headers, AUTHORIZATION: f"Bearer {token}"}


def _shown(request: httpx2.Request, token: str | None) -> httpx2.Request:
    if token is not None:
        request.headers[AUTHORIZATION] = f"Bearer {token}"
    return request


def _headers(configured: Mapping[str, str]) -> dict[str, str]:
    theirs = {name: value for name, value in configured.items() if name.lower() not in OURS}
    return {
        "user-agent": f"mcp-tool-aggregator/{__version__}",
        **theirs,
        # A few compressed bytes can unfold to more than there is memory.
        "accept-encoding": "identity",
    }


def _keep_alive_options() -> list[tuple[int, int, int]]:
    """Have the system notice a peer that vanished while nothing was to be read."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if (number := getattr(socket, name, None)) is not None:
            options.append((socket.IPPROTO_TCP, number, value))
    return options


def _refuse_encoding(response: Response) -> None:
    if not response.is_success:
        return
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise broken("its answer is compressed, although that was not asked for")


async def _pieces(response: Response) -> AsyncGenerator[bytes, None]:
    """Give the body in pieces; others have their turn also where very many came at once.

    The HTTP client that asks for streams reads what has come to its last chunk before it waits.
    """
    number = 0
    async for piece in response.aiter_raw():
        yield piece
        number += 1
        if not number % PIECES_AT_ONCE:
            await anyio.lowlevel.checkpoint()
