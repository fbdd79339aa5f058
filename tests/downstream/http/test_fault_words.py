"""What a failed request says: what happened, and whether the tool may have run."""

import socket
from datetime import UTC, datetime

import anyio
import anyio.abc
import httpx2
import pytest

from aggregator.downstream.http.address import Address
from aggregator.downstream.http.endpoint import open_endpoint
from aggregator.downstream.http.fault import (
    LONGEST_REST,
    of_error,
    of_status,
    retry_after,
)
from aggregator.downstream.http.reading import TooMuchError
from aggregator.downstream.transport import UndeliveredError

URL = httpx2.URL("http://127.0.0.1:9/mcp")
NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0),
        ("7", 7),
        (" 7 ", 7),
        ("0", 0),
        ("999999999", LONGEST_REST),
        ("9" * 400, 0),
        ("-7", 0),
        ("7.5", 0),
        ("soon", 0),
        ("", 0),
        ("\u0667", 0),
        ("Mon, 16 Nov 2026 12:00:30 GMT", 30),
        ("Mon, 16 Nov 2026 11:00:00 GMT", 0),
        ("Mon, 16 Nov 9999 12:00:00 GMT", LONGEST_REST),
    ],
)
def test_a_wish_to_be_left_alone_is_read(value: str | None, seconds: float) -> None:
    assert retry_after(value, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "may_have_run", "is_barred"),
    [
        (301, False, False),
        (307, False, False),
        (400, False, False),
        (401, False, True),
        (403, False, True),
        (404, False, False),
        (405, False, False),
        (418, False, False),
        (429, False, False),
        (499, False, False),
        (500, True, False),
        (502, True, False),
        (503, False, False),
        (504, True, False),
        (599, True, False),
    ],
)
def test_a_status_says_whether_the_tool_may_have_run(
    status: int, *, may_have_run: bool, is_barred: bool
) -> None:
    undelivered = of_status(status, {}).undelivered

    assert (undelivered.may_have_run, undelivered.is_barred) == (may_have_run, is_barred)
    assert str(status) in undelivered.reason


@pytest.mark.parametrize(
    ("error", "may_have_run"),
    [
        (httpx2.ConnectError("[Errno 111] Connection refused"), False),
        (httpx2.ConnectTimeout(""), False),
        (httpx2.PoolTimeout(""), False),
        (httpx2.ProxyError("407"), False),
        (httpx2.UnsupportedProtocol("ftp"), False),
        (httpx2.WriteError(""), True),
        (httpx2.ReadError(""), True),
        (httpx2.RemoteProtocolError("peer closed connection"), True),
        (httpx2.SSEError("too long"), True),
        (ConnectionResetError(), True),
    ],
)
def test_only_what_was_never_sent_is_certain_not_to_have_run(
    error: Exception, *, may_have_run: bool
) -> None:
    fault = of_error(error, URL)

    assert fault.undelivered.may_have_run == may_have_run
    assert fault.undelivered.is_unreachable != may_have_run


@pytest.mark.parametrize("error", [httpx2.ConnectTimeout("x"), httpx2.PoolTimeout("x")])
def test_who_is_too_slow_to_take_a_connection_is_named_without_what_is_secret(
    error: Exception,
) -> None:
    fault = of_error(error, httpx2.URL("https://me:pw@[::1]/key?key=1"))

    assert fault.undelivered.reason == "it cannot be reached: no connection to `[::1]:443` in time"


def test_a_failure_of_names_that_may_pass_is_not_a_name_that_is_not_known() -> None:
    error = httpx2.ConnectError("x")
    error.__cause__ = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    reason = of_error(error, httpx2.URL("http://example.com/")).undelivered.reason

    assert reason == "it cannot be reached: the host `example.com` cannot be looked up for now"


@pytest.mark.anyio
async def test_who_refuses_a_connection_is_named(unused_port: int) -> None:
    place = f"127.0.0.1:{unused_port}"

    assert await _reason(Address(f"http://me:pw@{place}/mcp?key=1")) == (
        f"it cannot be reached: the connection to `{place}` was refused"
    )
    assert await _reason(Address("http://example.com/", proxy=f"http://{place}")) == (
        f"its proxy cannot be reached: the connection to `{place}` was refused"
    )


@pytest.mark.anyio
async def test_a_host_that_nobody_knows_is_named() -> None:
    reason = await _reason(Address("http://no_such_host.invalid:81/mcp"))

    assert reason.startswith("it cannot be reached: the host `no_such_host.invalid` ")


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


async def _reason(address: Address) -> str:
    async with open_endpoint(address) as endpoint:
        with pytest.raises(UndeliveredError) as caught:
            async with endpoint.send("POST", {}):
                raise AssertionError
    return caught.value.undelivered.reason


def test_what_is_too_much_of_an_answer_is_said() -> None:
    url = httpx2.URL("http://127.0.0.1:9/mcp")

    fault = of_error(TooMuchError("it has more than 256 headers"), url).undelivered

    assert fault.reason == "its answer could not be read: it has more than 256 headers"
    assert fault.may_have_run


@pytest.mark.parametrize("status", [401, 403])
def test_missing_credentials_are_told_apart_from_wrong_ones(status: int) -> None:
    missing = of_status(status, {}).undelivered.reason
    wrong = of_status(status, {}, ["Authorization", "X-Team"]).undelivered.reason

    assert f"answered {status} and was given no credentials" in missing
    assert f"answered {status} although it was given `Authorization`, `X-Team`" in wrong


@pytest.mark.anyio
async def test_an_endpoint_names_the_headers_it_was_given_and_not_what_they_say() -> None:
    address = Address("http://127.0.0.1:9/mcp", {"X-Key": "secret", "Accept": "a/b"})
    async with open_endpoint(address) as endpoint:
        reason = endpoint.refusal(httpx2.Response(401)).undelivered.reason

    assert "`X-Key`;" in reason
    assert "secret" not in reason


@pytest.mark.anyio
async def test_a_server_without_tls_is_said_to_have_none() -> None:
    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no query
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        async with open_endpoint(Address(url=f"https://127.0.0.1:{port}/mcp")) as endpoint:
            with pytest.raises(UndeliveredError) as caught:
                async with endpoint.send("POST", {}, b"{}"):
                    pass
            assert caught.value.undelivered.reason == (
                f"it cannot be reached: `127.0.0.1:{port}` does not speak TLS; "
                "the address may have to begin with http://"
            )
        group.cancel_scope.cancel()
