"""Where we listen, the token, and what there is to ask for."""

import socket
import stat
from ipaddress import ip_network
from pathlib import Path

import httpx2
import pytest

from aggregator.upstream.http.binding import Binding, BindingError, listen, parse_binding
from aggregator.upstream.http.guard import Policy
from aggregator.upstream.http.serving import Access, Listener
from aggregator.upstream.http.site import Site
from aggregator.upstream.http.token import ensure_token
from tests.downstream.http.test_reaching_servers import at
from tests.loopback.door import door
from tests.loopback.scripted import Scripted
from tests.loopback.web import listening, web
from tests.peers import ERAS, Era, aggregating, ready


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("8765", "127.0.0.1", 8765),
        (":8765", "127.0.0.1", 8765),
        ("localhost:1", "localhost", 1),
        ("0.0.0.0:80", "0.0.0.0", 80),  # noqa: S104 - only read
        ("[::1]:8765", "::1", 8765),
        ("http://localhost:8765", "localhost", 8765),
        ("http://127.0.0.1:8765/", "127.0.0.1", 8765),
        ("HTTP://[::1]:8765/mcp", "::1", 8765),
    ],
)
def test_a_binding_is_read(text: str, host: str, port: int) -> None:
    assert parse_binding(text) == Binding(host, port)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "does not end in a port"),
        ("host", "does not end in a port"),
        ("host:", "does not end in a port"),
        ("1.2.3.4:x", "does not end in a port"),
        ("-1", "does not end in a port"),
        ("८", "does not end in a port"),
        ("65536", "there is no port `65536`"),
        ("99999", "there is no port `99999`"),
        (f"localhost:{'9' * 5000}", "there is no port"),
        ("::1:80", "is ambiguous"),
        ("http://localhost", "does not end in a port"),
        ("https://localhost:8765/mcp", "there is only plain HTTP here"),
        ("http://localhost:8765/tools", "clients come to `http://localhost:8765/mcp`"),
    ],
)
def test_what_is_no_binding_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BindingError, match=problem):
        parse_binding(text)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_explained(host: str) -> None:
    with pytest.raises(BindingError, match=f"cannot listen on `{host}:0`") as raised:
        listen(Binding(host, 0))

    assert "no address of this machine" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - only read
        ("::", False),
        ("192.0.2.1", False),
        ("localhost.example.com", False),
    ],
)
def test_loopback_is_told_from_the_rest(host: str, *, is_loopback: bool) -> None:
    assert Binding(host, 1).is_loopback == is_loopback


def test_a_port_that_is_taken_is_one_readable_error() -> None:
    with listening() as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BindingError, match=f"cannot listen on `127.0.0.1:{port}`: address"):
            listen(Binding("127.0.0.1", port))


def test_who_can_be_reached_by_others_must_ask_for_a_token() -> None:
    with pytest.raises(BindingError, match="a token is required"):
        Listener(Access(Binding("0.0.0.0", 0), token_file=None))  # noqa: S104 - refused


@pytest.mark.parametrize(
    ("host", "names", "proxies", "place"),
    [
        ("127.0.0.1", ("tools.example.com",), (), "127.0.0.1:{port}/mcp"),
        ("0.0.0.0", (), (), "127.0.0.1:{port}/mcp, and at"),  # noqa: S104 - only for a moment
        ("0.0.0.0", ("tools.example.com",), (), "tools.example.com:{port}/mcp, and at"),  # noqa: S104
        # At which port clients come to a gateway is not known here.
        ("0.0.0.0", ("tools.example.com",), ("192.0.2.1",), "127.0.0.1:{port}/mcp, and at"),  # noqa: S104
    ],
)
def test_whoever_starts_us_is_told_an_address_that_is_answered(
    host: str, names: tuple[str, ...], proxies: tuple[str, ...], place: str
) -> None:
    said = list[str]()
    networks = tuple(ip_network(each) for each in proxies)
    access = Access(
        Binding(host, 0), None, token="t" * 32, names=names, proxies=networks, say=said.append
    )
    listener = Listener(access)
    listener.greet()
    listener.close()

    told = f"serving clients at http://{place.format(port=listener.binding.port)}"
    assert said[0].startswith(told)
    assert Policy.of(host, listener.binding.port, names=names).knows(
        listener.url.split("/")[2], None
    )


def test_a_token_is_made_once_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "http-token"
    first, second = ensure_token(path), ensure_token(path)

    assert first == second
    assert len(first) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["http-token"]


def test_a_token_that_is_given_must_not_be_guessed() -> None:
    for token in ("short", "x" * 16 + " " + "x" * 16, "é" * 40):
        with pytest.raises(BindingError, match="the token that was given"):
            Listener(Access(Binding("127.0.0.1", 0), token_file=None, token=token))


def test_two_places_have_two_tokens(tmp_path: Path) -> None:
    assert ensure_token(tmp_path / "one") != ensure_token(tmp_path / "other")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_token_that_others_can_read_is_none(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "http-token"
    ensure_token(path)
    path.chmod(mode)

    with pytest.raises(BindingError, match="can be read by others"):
        ensure_token(path)


@pytest.mark.parametrize("content", ["", "short", "x" * 5000, "\xe9" * 40])
def test_a_file_without_a_usable_token_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "http-token"
    path.write_text(content)
    path.chmod(0o600)

    with pytest.raises(BindingError):
        ensure_token(path)


@pytest.mark.anyio
async def test_nothing_takes_a_command_or_the_definition_of_a_server(tmp_path: Path) -> None:
    """The whole inventory of what there is, and the methods it takes."""
    async with aggregating({}) as upstream:
        inventory = {path: set(methods) for path, (methods, _) in Site(upstream).routes.items()}

    files = {path: methods for path, methods in inventory.items() if path.startswith("/page/")}
    assert all(methods == {"GET", "HEAD"} for methods in files.values())
    assert {path: each for path, each in inventory.items() if path not in files} == {
        "/mcp": {"GET", "POST", "DELETE"},
        "/healthz": {"GET", "HEAD"},
        "/readyz": {"GET", "HEAD"},
        "/metrics": {"GET", "HEAD"},
        "/": {"GET", "HEAD"},
        "/activity": {"GET"},
        "/stats": {"GET", "HEAD"},
        "/code": {"POST"},
        "/exchange": {"POST"},
    }


@pytest.mark.anyio
@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "HEAD"])
async def test_other_methods_and_paths_are_not_served(method: str, tmp_path: Path) -> None:
    async with (
        door({}, tmp_path) as opened,
        httpx2.AsyncClient(headers=opened.credentials, trust_env=False) as http,
    ):
        status = (await http.request(method, opened.url)).status_code
        nowhere = await http.post(f"{opened.origin}/servers", json={"command": "sh"})
        unknown = await http.post(f"{opened.url}/no-such-profile")

    assert status == 405
    assert (nowhere.status_code, unknown.status_code) == (404, 404)
    assert nowhere.text == unknown.text
    assert "clients come to /mcp" in unknown.text


@pytest.mark.anyio
async def test_a_body_without_end_is_refused(tmp_path: Path) -> None:
    async with (
        door({}, tmp_path) as opened,
        httpx2.AsyncClient(headers=opened.credentials, trust_env=False) as http,
    ):
        response = await http.post(opened.url, content=b"x" * ((16 << 20) + 1))

    assert response.status_code == 413


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_what_a_client_shows_us_is_not_shown_to_a_server(era: Era, tmp_path: Path) -> None:
    """Our token opens our door: a server that got it could come in by itself."""
    script = Scripted()
    async with web(script) as origin, door({"web": at(f"{origin}/mcp")}, tmp_path) as opened:
        await ready(opened.upstream)
        async with opened.client(era) as client:
            await client.call_tool("web__go", {})

    sent = b"\n".join(value for each in script.requests for _, value in each["headers"])
    assert script.calls == 1
    assert opened.token.encode() not in sent


def test_a_socket_can_be_had_again_at_once() -> None:
    first = listen(Binding("127.0.0.1", 0))
    port = first.getsockname()[1]
    first.close()

    again = listen(Binding("127.0.0.1", port))

    assert again.family == socket.AF_INET
    again.close()


def test_where_no_token_can_be_written_it_is_said_what_else_there_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(BindingError, match="cannot be used: not a directory") as caught:
        ensure_token(tmp_path / "file" / "token")

    assert "`--token-file`" in (caught.value.hint or "")
