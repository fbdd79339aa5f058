"""Where a browser comes back to after a login: a page on this machine, or a pasted address."""

import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import anyio
import anyio.abc
import h11

from aggregator.downstream.login.page import HEADERS, INVITING, Answer, Invitation, page
from aggregator.downstream.login.renewal import quoted

HOST = "127.0.0.1"
PATH = "/callback"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_ADDRESS = 16 * 1024
"""Characters of an address that are read."""
READING = 10.0
"""Seconds that a browser has to say what it wants."""

Listener = anyio.abc.Listener[anyio.abc.SocketStream]


class LoginError(Exception):
    """A login that did not come about, in words that fit behind a colon."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


class Returned(NamedTuple):
    """What an authorisation server sends a browser back with."""

    code: str
    state: str
    iss: str | None
    error: str
    words: str

    def __repr__(self) -> str:
        return "<Returned>"


class Callback:
    """Takes the one answer that belongs to a login, from wherever it comes."""

    def __init__(self, uri: str, server: str, place: str | None = None) -> None:
        self.uri = uri
        self._server = server
        self._place = place
        """Where this machine listens, as a browser on it writes that; nothing if it does not."""
        self._state = ""
        self._invitation: Invitation | None = None
        self._outbox, self._inbox = anyio.create_memory_object_stream[Returned](1)

    def expect(self, address: str) -> None:
        """Take note of which login is begun: what belongs to another is not listened to."""
        self._state = dict(parse_qsl(urlsplit(address).query)).get("state", "")

    def invite(self, invitation: Invitation) -> str | None:
        """Have a page that leads to the login; return where it is, if there can be one."""
        if self._place is None:
            return None
        self._invitation = invitation
        return f"{self._place}{invitation.path}"

    async def returned(self) -> Returned:
        """Wait for the answer."""
        return await self._inbox.receive()

    def paste(self, text: str) -> str | None:
        """Take an address that a person has copied; say what is wrong with it, if anything is."""
        address = text.strip().strip("'\"<>")
        if not address:
            return "Nothing was pasted."
        parts = urlsplit(address[:MAX_ADDRESS])
        query = dict(parse_qsl(parts.query or parts.fragment))
        if "code" not in query and "error" not in query:
            return (
                f"That is not where you ended up: it begins with {self.uri} and has a code in it."
            )
        return self._take(query)

    def answer(self, method: str, target: str) -> Answer:
        """Take what a browser asks for; return what it is shown."""
        parts = urlsplit(target[:MAX_ADDRESS])
        invited = self._invitation
        if invited is not None and secrets.compare_digest(
            parts.path.encode(), invited.path.encode()
        ):
            return self._led_on(method, invited)
        if parts.path.startswith(INVITING):
            return Answer(410, page("This page has been used", "Begin again where you began."))
        if method != "GET" or parts.path != urlsplit(self.uri).path:
            return Answer(404, page("Nothing is here", "This is where a login comes back to."))
        return self._brought_back(dict(parse_qsl(parts.query)))

    def _brought_back(self, query: Mapping[str, str]) -> Answer:
        if (wrong := self._take(query)) is not None:
            return Answer(400, page("This is not the login that was begun", wrong))
        if "error" in query:
            return Answer(200, page("You are not logged in", "Where you began, it is said why."))
        done = f"{self._server} can be used now. You can close this page."
        return Answer(200, page("You are logged in", done))

    def _led_on(self, method: str, invited: Invitation) -> Answer:
        if method == "GET":
            return Answer(200, invited.page())
        # Looking at a page, as programs do ahead of people, is not using it.
        self._invitation = None
        return Answer(303, "", invited.address)

    def _take(self, query: Mapping[str, str]) -> str | None:
        given = query.get("state", "")
        if not self._state or not secrets.compare_digest(given.encode(), self._state.encode()):
            return "It belongs to another login, perhaps an earlier one: use the newest address."
        returned = Returned(
            query.get("code", ""),
            given,
            query.get("iss"),
            quoted(query.get("error", "")),
            quoted(query.get("error_description", "")),
        )
        try:
            self._outbox.send_nowait(returned)
        except anyio.WouldBlock:
            return "It has come before."
        return None

    def close(self) -> None:
        """Take nothing more."""
        self._outbox.close()
        self._inbox.close()


@asynccontextmanager
async def open_callback(
    server: str, wanted: str | None, before: tuple[str, ...] = ()
) -> AsyncGenerator[Callback, None]:
    """Listen where a browser is to come back to, for the length of the block.

    `wanted` is what has to be used; `before` what was used earlier, and is registered.

    Raises:
        LoginError: Somebody else listens there.
    """
    uri, listeners = await _listeners(wanted, before)
    callback = Callback(uri, server, _place(uri) if listeners else None)
    async with AsyncExitStack() as stack, anyio.create_task_group() as group:
        stack.callback(callback.close)
        for each in listeners:
            await stack.enter_async_context(each)
            group.start_soon(each.serve, _Desk(callback).serve)
        yield callback
        group.cancel_scope.cancel()


async def _listeners(wanted: str | None, before: tuple[str, ...]) -> tuple[str, list[Listener]]:
    if wanted is None:
        return await _own_listener(before)
    parts = urlsplit(wanted)
    if parts.hostname not in LOOPBACK:
        # Somewhere else somebody listens, and a person brings the answer here.
        return wanted, []
    hosts = ("127.0.0.1", "::1") if parts.hostname == "localhost" else (parts.hostname,)
    found = list[Listener]()
    problem: OSError | None = None
    for host in hosts:
        try:
            found += await _listen(host, parts.port or 80)
        except OSError as error:
            problem = problem or error
    if not found:
        raise LoginError(
            f"port {parts.port or 80} of `redirectUri` is in use, perhaps by another login",
            "End that program, or choose another port and register it too",
        ) from problem
    return wanted, found


async def _own_listener(
    before: tuple[str, ...],
) -> tuple[str, list[Listener]]:
    """Listen on the port that is registered, if that is free, or on any."""
    for uri in before:
        parts = urlsplit(uri)
        if parts.hostname == HOST and parts.port:
            try:
                return uri, await _listen(HOST, parts.port)
            except OSError:
                continue
    listeners = await _listen(HOST, 0)
    port = listeners[0].extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no Django
    return f"http://{HOST}:{port}{PATH}", listeners


def _place(uri: str) -> str:
    parts = urlsplit(uri)
    return f"http://{parts.netloc}"


async def _listen(host: str, port: int) -> list[Listener]:
    multi = await anyio.create_tcp_listener(local_host=host, local_port=port)
    return list(multi.listeners)


class _Desk:
    """Answers browsers, one question each."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback

    async def serve(self, stream: anyio.abc.ByteStream) -> None:
        async with stream:
            try:
                with anyio.move_on_after(READING):
                    await self._talk(stream)
            except (h11.ProtocolError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    async def _talk(self, stream: anyio.abc.ByteStream) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=2 * MAX_ADDRESS)
        while (event := connection.next_event()) is h11.NEED_DATA:
            try:
                connection.receive_data(await stream.receive())
            except anyio.EndOfStream:
                return
        if not isinstance(event, h11.Request):
            return
        answer = self._answer(event)
        body = answer.page.encode()
        headers = [*HEADERS, ("content-length", str(len(body)))]
        headers += [("location", answer.location)] if answer.location else []
        sent = connection.send(h11.Response(status_code=answer.status, headers=headers)) or b""
        if event.method != b"HEAD":
            sent += connection.send(h11.Data(data=body)) or b""
        await stream.send(sent)

    def _answer(self, event: h11.Request) -> Answer:
        told = dict(event.headers)
        method, target = (each.decode("ascii", "replace") for each in (event.method, event.target))
        if not _is_here(told.get(b"host", b"")):
            return Answer(421, page("Nothing is here", "This is another machine."))
        if method != "GET" and told.get(b"sec-fetch-site", b"same-origin") != b"same-origin":
            return Answer(403, page("Nothing is here", "That comes from another page."))
        if method not in ("GET", "POST"):
            return Answer(405, page("Nothing is here", ""))
        return self._callback.answer(method, target)


def _is_here(host: bytes) -> bool:
    """Whether a browser knows that it asks this machine, and was not led here by another name."""
    try:
        return urlsplit(f"//{host.decode('ascii')}").hostname in LOOPBACK
    except ValueError:
        return False
