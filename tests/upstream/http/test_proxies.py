"""What gateways say of their clients: believed from those that were named, and from nobody else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.lowlevel
import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from aggregator.upstream.caller import PEER
from aggregator.upstream.http.binding import BindingError
from aggregator.upstream.http.proxies import ASKED_FOR, Behind, parse_proxies
from tests.loopback.door import door
from tests.patience import PATIENCE
from tests.peers import Peer, connect_to, ready
from tests.upstream.http.test_sessions import begin

pytestmark = pytest.mark.anyio

PROXIES = parse_proxies(["10.0.0.0/24, 127.0.0.1", "fd00::1"])
GATEWAY = "10.0.0.7"


async def asked(peer: str, *headers: tuple[str, str]) -> Mapping[str, Any]:
    """Return a request as an application behind gateways sees it."""
    seen: list[Scope] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope)
        await anyio.lowlevel.checkpoint()

    async def nothing(*_given: Any) -> Any:
        raise AssertionError

    sent = [(b"host", b"inside:8765"), *((a.encode(), b.encode("latin-1")) for a, b in headers)]
    scope = {"type": "http", "scheme": "http", "client": (peer, 50_000), "headers": sent}
    await Behind(app, PROXIES)(scope, nothing, nothing)
    (scope,) = seen
    host = [value.decode() for name, value in scope["headers"] if name == b"host"]
    return {**scope, "host": host}


@pytest.mark.parametrize(
    ("headers", "client"),
    [
        ({"x-forwarded-for": "203.0.113.9"}, "203.0.113.9"),
        ({"x-forwarded-for": "1.2.3.4, 203.0.113.9, 10.0.0.8"}, "203.0.113.9"),
        ({"x-forwarded-for": "203.0.113.9:4711"}, "203.0.113.9"),
        ({"forwarded": 'for="[2001:db8::1]:4711";proto=https'}, "2001:db8::1"),
        ({"forwarded": "for=1.2.3.4, for=203.0.113.9;by=10.0.0.7"}, "203.0.113.9"),
        ({"forwarded": "for=203.0.113.9", "x-forwarded-for": "203.0.113.9"}, "203.0.113.9"),
        # What cannot be read, and what two forms disagree on, leaves the gateway as the client.
        ({"x-forwarded-for": "unknown"}, GATEWAY),
        ({"x-forwarded-for": "1.2.3.4, what"}, GATEWAY),
        ({"forwarded": "for=1.2.3.4", "x-forwarded-for": "203.0.113.9"}, GATEWAY),
        ({"x-forwarded-for": "10.0.0.8"}, GATEWAY),
        ({"x-forwarded-for": "203.0.113.9" + " " * 200}, GATEWAY),
        ({}, GATEWAY),
        # In a zone anything may stand.
        ({"x-forwarded-for": "fe80::1%\x1b[31meth0"}, "fe80::1"),
        ({"forwarded": 'for="[fe80::1%25x]:4711"'}, "fe80::1"),
    ],
)
async def test_the_client_is_the_last_who_is_no_gateway(
    headers: dict[str, str], client: str
) -> None:
    found = await asked(GATEWAY, *headers.items())

    assert found["client"][0] == client
    assert found[PEER] == (GATEWAY, 50_000)


async def test_scheme_and_host_are_what_the_gateway_next_to_us_says() -> None:
    said = ("x-forwarded-for", "203.0.113.9")
    common = await asked(
        GATEWAY, said, ("x-forwarded-proto", "http, https"), ("x-forwarded-host", "a.example")
    )
    standard = await asked(GATEWAY, ("forwarded", "for=203.0.113.9;host=a.example;proto=https"))
    odd = await asked(
        GATEWAY, said, ("x-forwarded-proto", "gopher"), ("x-forwarded-host", "a b\x00")
    )

    for found in (common, standard):
        assert (found["scheme"], found[ASKED_FOR]) == ("https", "a.example")
    assert odd["scheme"] == "http"
    assert ASKED_FOR not in odd
    assert all(found["host"] == ["inside:8765"] for found in (common, standard, odd))


@pytest.mark.parametrize("sent", ["a", " ", "a ", 'a="', "for=", "\t;"])
async def test_what_fits_nowhere_is_not_looked_at_for_long(sent: str) -> None:
    # Looked at from each of its characters to its end, it would take minutes.
    scope = await asked(GATEWAY, ("forwarded", sent * (200_000 // len(sent))))

    assert scope["client"][0] == GATEWAY


@pytest.mark.parametrize("peer", ["10.0.1.7", "203.0.113.9", "::1", "", "testclient"])
async def test_nobody_else_is_believed(peer: str) -> None:
    found = await asked(peer, ("x-forwarded-for", "1.2.3.4"), ("x-forwarded-host", "a.example"))

    assert found["client"][0] == peer
    assert found["host"] == ["inside:8765"]
    assert not {PEER, ASKED_FOR} & set(found)


@pytest.mark.parametrize("text", ["", "host", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.1,,"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BindingError, match="neither an address nor a network"):
        parse_proxies([text])


async def test_the_host_that_a_client_asked_for_is_checked(tmp_path: Path) -> None:
    outside = {"proxies": PROXIES, "names": ("tools.example",)}
    async with (
        door({"a": connect_to(Peer("go"))}, tmp_path, outside=outside) as opened,
        httpx2.AsyncClient(headers=opened.credentials, timeout=PATIENCE, trust_env=False) as http,
    ):
        await ready(opened.upstream)

        async def status(**headers: str) -> int:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            answer = await http.get(f"{opened.origin}/readyz", headers=sent)
            return answer.status_code

        through = {"x_forwarded_for": "203.0.113.9", "x_forwarded_host": "tools.example"}
        # The gateway names us as it knows us, or as its client does.
        assert await status(**through) == 200
        assert await status(**through, host="tools.example") == 200
        assert await status(**{**through, "x_forwarded_host": "evil.example"}) == 421
        # Nobody comes in by what the client may have written there.
        for known in ("tools.example", "localhost", "127.0.0.1"):
            forged = {**through, "x_forwarded_host": known, "host": "evil.example"}
            assert await status(**forged) == 421
        assert await status(host="evil.example") == 421


async def test_who_has_shown_the_token_through_a_gateway_is_no_stranger(tmp_path: Path) -> None:
    outside = {"proxies": PROXIES}
    said = {"x-forwarded-for": "203.0.113.9"}
    async with door({"a": connect_to(Peer("go"))}, tmp_path, outside=outside) as opened:
        headers = {**opened.credentials, **said}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            status, _session = await begin(http, opened)
            assert status == 200


@pytest.mark.usefixtures("parser")
async def test_gateways_are_told_before_clients_are(tmp_path: Path) -> None:
    outside = {"notice": 5.0}
    async with (
        door({}, tmp_path, outside=outside) as opened,
        httpx2.AsyncClient(headers=opened.credentials, trust_env=False) as http,
    ):
        assert (await http.get(f"{opened.origin}/readyz")).status_code == 200
        opened.stop.set()
        answer = await http.get(f"{opened.origin}/readyz")
        while answer.status_code == 200:
            answer = await http.get(f"{opened.origin}/readyz")

        # Whoever still comes is served.
        status, _session = await begin(http, opened)
        assert answer.json() == {"status": "closing"}
        assert status == 200
