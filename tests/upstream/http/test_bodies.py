"""Requests that are small to send and large to have parsed, and many that are large."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import httpx2
import pytest
from starlette.types import Message, Receive

from aggregator.upstream.http.bodies import SMALL_BYTES, Bodies, BodyRefusedError, small
from tests.loopback.door import door
from tests.patience import PATIENCE
from tests.peers import ERAS, Era

pytestmark = pytest.mark.anyio

VERSIONS = {"handshake": "2025-11-25", "modern": "2026-07-28"}
GONE: Message = {"type": "http.disconnect"}


def call_with(values: bytes) -> bytes:
    begin = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":['
    return begin + values + b"]}}}"


def arriving(*pieces: bytes) -> Receive:
    """Return what brings a body in pieces, and then that the client has gone."""
    last = len(pieces) - 1
    messages: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": at < last}
        for at, piece in enumerate(pieces)
    ]
    return _one_by_one([*messages, GONE])


def _one_by_one(messages: Sequence[Message]) -> Receive:
    left = iter(messages)

    async def receive() -> Message:
        return next(left)

    return receive


@pytest.mark.parametrize("era", ERAS)
async def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    era: Era, tmp_path: Path
) -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    async with door({}, tmp_path) as opened:
        asking = {**opened.credentials, **headers, "mcp-protocol-version": VERSIONS[era]}
        async with httpx2.AsyncClient(headers=asking, trust_env=False, timeout=PATIENCE) as http:
            response = await http.post(opened.url, content=call_with(b"{}," * 1_000_000 + b"{}"))
        async with opened.client(era) as client:
            listed = await client.list_tools()

    assert response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert "would take too much memory: send fewer" in response.json()["error"]["message"]
    assert listed.tools == []


@asynccontextmanager
async def taken(bodies: Bodies, receive: Receive) -> AsyncGenerator[bytes | None, None]:
    async with bodies.taken(receive, await receive()) as body:
        yield body


async def test_a_body_comes_as_it_was_sent() -> None:
    async with taken(Bodies(), arriving(b'{"a":', b"1", b"}")) as body:
        assert body == b'{"a":1}'


async def test_who_goes_in_the_midst_of_a_body_has_gone() -> None:
    half: Message = {"type": "http.request", "body": b'{"a":', "more_body": True}

    async with taken(Bodies(), _one_by_one([half, GONE])) as body:
        assert body is None


def test_only_what_is_whole_and_small_needs_no_room() -> None:
    def piece(size: int, *, more: bool) -> Message:
        return {"type": "http.request", "body": b"x" * size, "more_body": more}

    assert small(piece(SMALL_BYTES, more=False)) == b"x" * SMALL_BYTES
    assert small(piece(SMALL_BYTES + 1, more=False)) is None
    assert small(piece(1, more=True)) is None
    assert small(GONE) is None


async def test_a_body_that_never_said_how_long_it_is_is_read_no_further_than_the_limit() -> None:
    async def endless() -> Message:
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    with pytest.raises(BodyRefusedError, match="may have 10,000 bytes") as caught:
        async with taken(Bodies(limit=10_000), endless):
            pass

    assert caught.value.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE


async def test_large_bodies_have_room_together_and_small_ones_beside_them() -> None:
    bodies = Bodies(together=5_000_000)
    large = call_with(b"{}," * 10_000 + b'"' + b"x" * SMALL_BYTES + b'"')

    async with taken(bodies, arriving(large)):
        with pytest.raises(BodyRefusedError, match="try again when some are answered") as caught:
            async with taken(bodies, arriving(large)):
                pass
        async with taken(bodies, arriving(call_with(b"{}"))):
            pass
    async with taken(bodies, arriving(large)):
        pass

    assert caught.value.status is HTTPStatus.SERVICE_UNAVAILABLE


async def test_bodies_take_room_while_they_are_still_being_sent() -> None:
    bodies = Bodies(together=3 * SMALL_BYTES)
    piece = b"x" * SMALL_BYTES

    with pytest.raises(BodyRefusedError):
        async with taken(bodies, arriving(piece, piece, piece, piece)):
            pass
    async with taken(bodies, arriving(b"{}")) as body:
        assert body == b"{}"
