"""Logging in: a real authorisation server, a browser without a screen, and lies."""

import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.types import Send

from aggregator.config.oauth import OAuth
from aggregator.downstream.http.reach import address
from aggregator.downstream.http.tokens import sender
from aggregator.downstream.login.callback import Callback, LoginError, open_callback
from aggregator.downstream.login.command import Command
from aggregator.downstream.login.credentials import Credentials, RefreshGrant
from aggregator.downstream.login.file import LoginFile
from aggregator.downstream.login.flow import Done, log_in
from tests.downstream.login.authority import REGISTERED, SECRET, Authority, World, world
from tests.downstream.login.browser import browse, redirected
from tests.downstream.login.logins import had, logins_in, server_at
from tests.loopback.web import answer, listening
from tests.patience import PATIENCE
from tests.peers import Era

pytestmark = pytest.mark.anyio

Person = Callable[[str, Callback], Coroutine[Any, Any, None]]


async def willing(address: str, _callback: Callback) -> None:
    await browse(address)


async def pasting(address: str, callback: Callback) -> None:
    assert callback.paste("what?") is not None
    assert callback.paste(await redirected(address)) is None


async def logged_in(
    there: World,
    directory: Path,
    person: Person = willing,
    *,
    scopes: tuple[str, ...] = (),
    warn: Callable[[str], None] = lambda _text: None,
    clock: Callable[[], float] = time.time,
    **oauth: Any,
) -> Done:
    """Have a person log in to the server."""
    server = server_at(there.url, **({"oauth": OAuth(**oauth)} if oauth else {}))
    met: list[Callback] = []
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:

            async def show(address: str, _issuer: str) -> None:
                group.start_soon(person, address, met[0])

            return await log_in(
                server,
                logins_in(directory).file(server),
                show=show,
                meet=met.append,
                scopes=scopes,
                warn=warn,
                clock=clock,
            )
    raise AssertionError


def file_of(there: World, directory: Path, **oauth: Any) -> LoginFile:
    server = server_at(there.url, **({"oauth": OAuth(**oauth)} if oauth else {}))
    return logins_in(directory).file(server)


@pytest.mark.parametrize("person", [willing, pasting])
async def test_a_person_logs_in_and_it_is_kept(
    tmp_path: Path, server_era: Era, person: Person
) -> None:
    async with world(era=server_era) as there:
        done = await logged_in(there, tmp_path, person)

        assert (done.tools, done.problem) == (2, "")
        kept = file_of(there, tmp_path).read()
        assert kept == done.login
        assert kept is not None
        assert (kept.issuer, kept.resource) == (f"{there.authority.origin}/", there.url)
        assert kept.token_endpoint == f"{there.authority.origin}/token"
        assert kept.expires_at == pytest.approx(time.time() + 3600, abs=120)
        assert kept.client.is_registered
        assert there.authority.queries[0]["resource"] == there.url
        assert there.authority.queries[0]["code_challenge_method"] == "S256"


async def test_a_second_login_uses_the_same_registration(tmp_path: Path) -> None:
    async with world() as there:
        first = (await logged_in(there, tmp_path)).login
        second = (await logged_in(there, tmp_path)).login

        assert second.client == first.client
        assert second.access_token != first.access_token


async def test_a_registration_that_is_refused_is_made_anew(tmp_path: Path) -> None:
    async with world() as there:
        first = (await logged_in(there, tmp_path)).login
        file_of(there, tmp_path).write(first._replace(lost="invalid_client"))

        assert (await logged_in(there, tmp_path)).login.client.id != first.client.id


async def test_a_client_registered_by_hand_comes_back_where_it_is_registered(
    tmp_path: Path,
) -> None:
    oauth: dict[str, Any] = {
        "client_id": REGISTERED,
        "client_secret": SECRET,
        "redirect_uri": "http://127.0.0.1:39118/callback",
        "scopes": ("read", "admin"),
        "authorization_params": {"prompt": "login"},
        "resource": False,
    }
    async with world(Authority(registers=False)) as there:
        done = await logged_in(there, tmp_path, **oauth)

        assert done.login.scope == "read admin offline_access"
        assert done.login.resource is None
        assert there.authority.queries[0]["prompt"] == "login"
        assert "resource" not in there.authority.queries[0]
        assert "resource" not in there.authority.forms[0]
        assert file_of(there, tmp_path, client_id=REGISTERED).read() == done.login


async def test_more_rights_are_asked_for_beside_those_of_before(tmp_path: Path) -> None:
    async with world() as there:
        await logged_in(there, tmp_path)
        before = there.authority.queries[0].get("scope", "").split()

        await logged_in(there, tmp_path, scopes=("admin",))

        asked = there.authority.queries[1]["scope"].split()
        assert set(asked) >= {*before, "admin"}


async def test_a_server_that_never_asks_is_logged_in_to_all_the_same(tmp_path: Path) -> None:
    """Some challenge only the call of a tool."""

    async with world(Authority(challenges=False)) as there:
        done = await logged_in(there, tmp_path)

        assert (done.tools, bool(done.login.access_token)) == (2, True)


async def _lied(there: World, tmp_path: Path, person: Person = willing, **oauth: Any) -> LoginError:
    """Log in to somebody who lies; the login before is as it was."""
    file = file_of(there, tmp_path, **oauth)
    before = had(there.authority, file, time.time)
    with pytest.raises(BaseExceptionGroup) as raised:
        await logged_in(there, tmp_path, person, **oauth)
    (error,) = raised.value.exceptions
    assert isinstance(error, LoginError)
    assert file.read() == before
    said = f"{error} {error.hint}"
    assert not any(token in said for token in there.authority.given)
    return error


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"metadata": {"issuer": "https://evil.example"}}, "evil.example"),
        ({"metadata": {"code_challenge_methods_supported": ["plain"]}}, "does not support PKCE"),
        ({"resource": {"resource": "https://evil.example/mcp"}}, "logins are for `https://evil"),
        ({"metadata": {"token_endpoint": "not an address"}}, ""),
    ],
)
async def test_metadata_that_lies_is_not_believed(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    async with world(Authority(changes=changes)) as there:
        assert says in str(await _lied(there, tmp_path))


def answering(path: str, status: int, body: bytes, **headers: str) -> Any:
    async def lie(request: Request, send: Send) -> bool:
        if request.url.path != path:
            return False
        await answer(send, status, body, **headers)
        return True

    return lie


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (answering("/token", 200, b"<html>"), "gives no token: its answer holds no token"),
        (answering("/token", 500, b""), "gives no token: it answered 500"),
        (
            answering("/token", 400, b'{"error": "invalid_grant", "error_description": "no"}'),
            "gives no token: invalid_grant: no",
        ),
        (
            answering("/token", 302, b"", location="https://evil.example/token"),
            "gives no token: it answered 302",
        ),
        (answering("/register", 400, b"no"), "refused to register"),
        (
            answering("/register", 307, b"", location="https://evil.example/register"),
            "refused to register",
        ),
        (
            answering(
                "/.well-known/oauth-authorization-server",
                302,
                b"",
                location="https://evil.example/metadata",
            ),
            "",
        ),
        (
            answering("/.well-known/oauth-authorization-server", 200, b"x" * (10 << 20)),
            "sent more than",
        ),
    ],
)
async def test_answers_that_are_none_are_told(tmp_path: Path, lie: Any, says: str) -> None:
    async with world(Authority(lie=lie)) as there:
        assert says in str(await _lied(there, tmp_path))


async def test_where_nobody_can_register_it_is_said_what_to_do(tmp_path: Path) -> None:
    async with world(Authority(registers=False)) as there:
        error = await _lied(there, tmp_path)

        assert "nobody can register at" in str(error)
        assert error.hint is not None
        assert "write `oauth: {clientId: …}` under it" in error.hint


async def test_where_nothing_is_said_of_logins_a_key_is_what_may_help(tmp_path: Path) -> None:
    async def lie(request: Request, send: Send) -> bool:
        if request.url.path == "/mcp":
            return False
        await answer(send, 404, b"")
        return True

    async with world(Authority(lie=lie)) as there:
        error = await _lied(there, tmp_path)

        assert "does not say how to log in" in str(error)
        assert error.hint is not None
        assert "Authorization: Bearer ${NAME}" in error.hint


async def test_a_person_may_say_no(tmp_path: Path) -> None:
    async def refusing(address: str, callback: Callback) -> None:
        state = dict(each.split("=", 1) for each in address.split("?")[1].split("&"))["state"]
        await browse(f"{callback.uri}?error=access_denied&state={state}")

    async with world() as there:
        assert "said no" in str(await _lied(there, tmp_path, refusing))


async def test_an_answer_from_somebody_else_is_refused(tmp_path: Path) -> None:
    async def misled(address: str, callback: Callback) -> None:
        there = await redirected(address)
        assert callback.paste(f"{there}&iss=https%3A%2F%2Fevil.example") is None

    async with world() as there:
        said = str(await _lied(there, tmp_path, misled))
        assert "the answer came from `https://evil.example`" in said


async def test_another_issuer_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    async with world() as there:
        error = await _lied(there, tmp_path, issuer="https://auth.example.com")
        assert "`issuer` in servers.yaml says `https://auth.example.com`" in str(error)


async def test_an_answer_to_another_login_is_not_listened_to(tmp_path: Path) -> None:
    async def confused(address: str, callback: Callback) -> None:
        there = await redirected(address)
        page = await browse(f"{callback.uri}?code=stolen&state=other")
        assert (page.status_code, "another login" in page.text) == (400, True)
        assert "another login" in (callback.paste(f"{callback.uri}?code=x&state=y") or "")
        page = await browse(there)
        assert (page.status_code, "You are logged in" in page.text) == (200, True)

    async with world() as there:
        assert (await logged_in(there, tmp_path, confused)).tools == 2


@pytest.mark.parametrize("wrong", [-600.0, 600.0])
async def test_a_clock_that_is_wrong_by_ten_minutes_is_no_hindrance(
    tmp_path: Path, wrong: float
) -> None:
    def clock() -> float:
        return time.time() + wrong

    async with world() as there:
        done = await logged_in(there, tmp_path, clock=clock)
        server = server_at(there.url)
        grant = RefreshGrant(sender(address(server)), clock)
        command = Command("web", tmp_path)
        shown = Credentials(file_of(there, tmp_path), grant, command, clock=clock)

        assert await shown.token() == done.login.access_token
        there.authority.forget_access()
        fresh = await shown.instead_of(done.login.access_token, 401, {})
        assert (fresh != done.login.access_token, there.authority.refreshed) == (True, 1)
        assert await shown.token() == fresh


async def test_two_logins_at_once_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    async with world() as there:
        both = anyio.Event()
        waiting: list[str] = []

        async def together(address: str, _callback: Callback) -> None:
            waiting.append(address)
            if len(waiting) == 2:
                both.set()
            await both.wait()
            page = await browse(address)
            assert "You are logged in" in page.text

        done: list[Done] = []

        async def one() -> None:
            done.append(await logged_in(there, tmp_path, together))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)

        assert len({each.login.access_token for each in done}) == 2
        assert file_of(there, tmp_path).read() in [each.login for each in done]


async def test_missing_pkce_is_a_warning(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"metadata": {"code_challenge_methods_supported": None}}
    warnings: list[str] = []
    async with world(Authority(changes=changes)) as there:
        assert (await logged_in(there, tmp_path, warn=warnings.append)).tools == 2
    assert warnings == ["its authorisation server does not say that it supports PKCE"]


async def test_a_port_that_is_taken_is_told() -> None:
    with listening() as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LoginError, match=f"port {port} of `redirectUri` is in use"):
            async with open_callback("web", f"http://127.0.0.1:{port}/callback"):
                raise AssertionError


async def test_a_login_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    async with world() as there:
        file = file_of(there, tmp_path)
        file.path.mkdir(parents=True)
        with pytest.raises(BaseExceptionGroup) as raised:
            await logged_in(there, tmp_path)
        assert "cannot be written" in str(raised.value.exceptions[0])
