"""Forms that are posted to an authorisation server, on the way that leads to its server."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import httpx2

from aggregator import __version__
from aggregator.downstream.http.address import Address, tls_context
from aggregator.downstream.http.fault import FAILURES, of_error
from aggregator.downstream.login.credentials import RenewalError, Send
from aggregator.downstream.login.discovery import HERE, Fetch, astray, is_here, origin
from aggregator.downstream.login.renewal import Ask, Reply, quoted

PATIENCE = 10.0
"""Seconds that an authorisation server has for one answer."""
LONG_PATIENCE = 30.0
"""The same while a person waits and nobody else."""
MAX_BYTES = 256 * 1024
"""Bytes that an answer may have."""


def sender(address: Address) -> Send:
    """Return what posts forms with the certificates and the proxy of an address."""

    async def send(ask: Ask) -> Reply:
        with anyio.move_on_after(PATIENCE):
            try:
                return await _post(ask, address)
            except FAILURES as error:
                raise RenewalError(_in_words(error, ask.url, address)) from error
        raise RenewalError(f"its authorisation server did not answer within {PATIENCE:g} s")

    return send


def getter(address: Address) -> Fetch:
    """Return what gets documents on the same way."""

    async def fetch(url: str) -> Reply:
        with anyio.move_on_after(PATIENCE):
            try:
                return await _send(httpx2.Request("GET", url), address)
            except FAILURES as error:
                raise RenewalError(_in_words(error, url, address)) from error
        raise RenewalError(f"`{httpx2.URL(url).host}` did not answer within {PATIENCE:g} s")

    return fetch


def carrier(address: Address) -> Callable[[httpx2.Request], Awaitable[httpx2.Response]]:
    """Return what sends any request on the same way, and reads all of the answer."""

    async def carry(request: httpx2.Request) -> httpx2.Response:
        try:
            with anyio.fail_after(LONG_PATIENCE):
                reply = await _send(request, address)
        except TimeoutError as error:
            raise RenewalError(f"`{request.url.host}` did not answer") from error
        except FAILURES as error:
            raise RenewalError(_in_words(error, str(request.url), address)) from error
        headers = {"date": reply.date} if reply.date else {}
        return httpx2.Response(reply.status, headers=headers, content=reply.body, request=request)

    return carry


async def _post(ask: Ask, address: Address) -> Reply:
    return await _send(
        httpx2.Request("POST", ask.url, headers=dict(ask.headers), content=ask.body), address
    )


async def _send(request: httpx2.Request, address: Address) -> Reply:
    if (wrong := astray(str(request.url), address.url)) is not None:
        raise RenewalError(f"its login leads to `{quoted(str(request.url))}`, which {wrong}")
    way = _way(request.url, address)
    context = await anyio.to_thread.run_sync(tls_context, way)
    transport = httpx2.AsyncHTTPTransport(verify=context, trust_env=False, proxy=address.proxy)
    if not _may_be_here(request.url, address):
        request.extensions["trace"] = partial(_see_peer, request.url)
    request.headers["user-agent"] = f"mcp-tool-aggregator/{__version__}"
    # A few compressed bytes can unfold to more than there is memory.
    request.headers["accept-encoding"] = "identity"
    async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
        response = await client.send(request, stream=True, follow_redirects=False)
        try:
            return Reply(response.status_code, await _body(response), response.headers.get("date"))
        finally:
            await response.aclose()


def _way(url: httpx2.URL, address: Address) -> Address:
    """Return how an authorisation server is reached that a login to a server leads to.

    Who does not ask a server to prove who it is has said nothing about others, that a person's
    password, or a secret of ours, goes to.
    """
    is_same = origin(str(url)) == origin(address.url)
    verify = address.verify if is_same else address.verify_login
    return replace(address, url=str(url), verify=verify)


def _may_be_here(url: httpx2.URL, address: Address) -> bool:
    """Whether nobody needs to look at whom a name leads to."""
    own = httpx2.URL(address.url).host
    # Behind a proxy, it is the proxy that looks names up.
    return url.host == own or is_here(own) or address.proxy is not None


async def _see_peer(url: httpx2.URL, event: str, info: Mapping[str, Any]) -> None:
    """Say nothing to a name that leads to this machine: whoever has it may have it lead anywhere.

    To look it up before would be no use, since the next answer may be another: what counts is to
    whom there is a connection.

    Raises:
        RenewalError: It does.
    """
    if event != "connection.connect_tcp.complete":
        return
    stream = info["return_value"]
    host, *_ = stream.get_extra_info("server_addr")
    if is_here(host):
        await stream.aclose()
        raise RenewalError(f"its login leads to `{quoted(str(url))}`, which {HERE}")


async def _body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_BYTES:
            raise RenewalError(f"`{response.url.host}` sent more than {MAX_BYTES:,} bytes")
    return bytes(body)


def _in_words(error: BaseException, url: str, address: Address) -> str:
    proxy = None if address.proxy is None else httpx2.URL(address.proxy)
    reason = of_error(error, httpx2.URL(url), proxy).undelivered.reason
    return f"its authorisation server: {reason}"
