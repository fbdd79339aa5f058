"""What is shown to a server, when that is renewed, and by whom: on the virtual clock."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from aggregator.downstream.login.command import Command
from aggregator.downstream.login.credentials import (
    REST,
    Credentials,
    RefreshGrant,
    RenewalError,
    Shown,
)
from aggregator.downstream.login.file import LoginFile
from aggregator.downstream.login.renewal import Ask, Reply
from tests.downstream.login.logins import login
from tests.patience import patience

pytestmark = pytest.mark.anyio

NOW = 1_000_000.0


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def clock() -> float:
    return NOW + anyio.current_time()


class Office:
    """An authorisation server that rotates, after a while, and can be out of order."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []
        self.reply: Reply | RenewalError | None = None
        self.takes = 1.0
        self.meanwhile: Callable[[], None] = lambda: None

    async def __call__(self, ask: Ask) -> Reply:
        self.asks.append(ask)
        number = len(self.asks) + 1
        await anyio.sleep(self.takes)
        self.meanwhile()
        if isinstance(self.reply, RenewalError):
            raise self.reply
        tokens = {"access_token": f"access-{number}", "refresh_token": f"refresh-{number}"}
        body = {**tokens, "token_type": "Bearer", "expires_in": 3600}
        return self.reply or Reply(200, json.dumps(body).encode())


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def file(tmp_path: Path) -> LoginFile:
    return LoginFile(tmp_path / "logins" / "one.json")


@pytest.fixture
def make(office: Office, file: LoginFile) -> Callable[[], Credentials]:
    def made() -> Credentials:
        grant = RefreshGrant(office, clock)
        return Credentials(
            LoginFile(file.path), grant, Command("web", Path("/s.yaml")), clock=clock
        )

    return made


def keep(file: LoginFile, *, lives: float = 3600.0, **changes: object) -> None:
    file.write(login(obtained_at=clock(), expires_at=clock() + lives, **changes))


async def test_a_good_token_is_shown_and_nobody_is_asked(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    keep(file)

    assert await make().token() == "access-1"
    assert office.asks == []


async def test_after_a_restart_an_expired_token_is_renewed_once(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    keep(file)
    await anyio.sleep(7200)

    credentials = make()
    assert await credentials.token() == "access-2"
    assert await credentials.token() == "access-2"

    assert [ask.form["refresh_token"] for ask in office.asks] == ["refresh-1"]
    kept = file.read()
    assert kept is not None
    assert (kept.refresh_token, kept.expires_at) == ("refresh-2", clock() + 3600)


async def test_what_has_to_be_renewed_is_not_at_hand(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    assert make().at_hand() == Shown(None)
    keep(file)
    credentials = make()
    assert credentials.at_hand() == Shown("access-1")

    await anyio.sleep(7200)
    assert credentials.at_hand() is None
    assert office.asks == []

    assert await credentials.token() == "access-2"
    assert credentials.at_hand() == Shown("access-2")


async def test_whoever_needs_it_at_the_same_time_waits_for_one_renewal(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    """Two objects stand for two processes: all they share is the file."""
    keep(file)
    await anyio.sleep(3600)
    one, other, shown = make(), make(), list[str | None]()

    async def ask(credentials: Credentials) -> None:
        shown.append(await credentials.token())

    with anyio.fail_after(patience()):
        async with anyio.create_task_group() as group:
            for each in (one, one, other, other):
                group.start_soon(ask, each)

    assert shown == ["access-2"] * 4
    assert len(office.asks) == 1


async def test_a_call_that_is_cancelled_does_not_lose_what_it_asked_for(
    file: LoginFile, make: Callable[[], Credentials]
) -> None:
    keep(file)
    await anyio.sleep(3600)

    with anyio.move_on_after(0.5):
        await make().token()

    kept = file.read()
    assert kept is not None
    assert kept.refresh_token == "refresh-2"  # noqa: S105 - of nobody


async def test_a_refused_token_is_renewed_even_if_it_should_be_good(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    keep(file)
    credentials = make()

    assert await credentials.instead_of(await credentials.token(), 401, {}) == "access-2"
    # Whoever comes with the same old token later is shown what was had meanwhile.
    assert await credentials.instead_of("access-1", 401, {}) == "access-2"
    assert len(office.asks) == 1


async def test_a_token_that_another_process_has_is_taken_over(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    keep(file)
    credentials = make()
    await credentials.token()
    keep(file, access_token="access-9")  # noqa: S106 - of nobody

    assert await credentials.token() == "access-9"
    assert office.asks == []


async def test_a_refused_renewal_loses_the_login_but_not_the_record(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    keep(file)
    await anyio.sleep(3600)
    office.reply = Reply(400, b'{"error": "invalid_grant"}')
    credentials = make()

    assert await credentials.token() is None
    assert await credentials.token() is None

    kept = file.read()
    assert kept is not None
    assert (kept.lost, kept.refresh_token) == ("invalid_grant", "refresh-1")
    assert len(office.asks) == 1
    told = credentials.explain(401, {"www-authenticate": "Bearer"})
    assert told is not None
    assert told.reason == (
        "its login has expired or was revoked (invalid_grant): "
        "run `aggregator login web --config /s.yaml`"
    )


async def test_a_token_is_used_on_if_an_early_renewal_is_refused(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    keep(file)
    await anyio.sleep(3590)
    office.reply, office.takes = Reply(400, b'{"error": "invalid_grant"}'), 0.0
    credentials = make()

    assert await credentials.token() == "access-1"
    await anyio.sleep(5)
    assert await credentials.token() == "access-1"
    await anyio.sleep(5)
    assert await credentials.token() is None
    assert len(office.asks) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(500, b'{"error": "invalid_grant"}'),
        Reply(429, b""),
        Reply(200, b"<html>"),
        RenewalError("its authorisation server: it cannot be reached"),
    ],
)
async def test_what_says_nothing_of_the_login_changes_nothing(
    file: LoginFile, office: Office, make: Callable[[], Credentials], reply: Reply | RenewalError
) -> None:
    keep(file)
    before = file.read()
    await anyio.sleep(3600)
    office.reply = reply
    credentials = make()

    for _ in range(3):
        with pytest.raises(RenewalError, match="could not be renewed for now"):
            await credentials.token()

    assert file.read() == before
    assert len(office.asks) == 1, "it is left alone for a while"
    office.reply = None
    await anyio.sleep(REST)
    assert await credentials.token() == "access-3"


async def test_an_authority_that_is_away_does_not_hurt_while_the_token_is_good(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    keep(file)
    await anyio.sleep(3575)
    office.reply = RenewalError("it is away")
    credentials = make()

    assert [await credentials.token() for _ in range(3)] == ["access-1"] * 3
    assert len(office.asks) == 1


async def test_without_a_refresh_token_a_login_ends(
    file: LoginFile, office: Office, make: Callable[[], Credentials]
) -> None:
    keep(file, refresh_token=None)
    credentials = make()
    assert await credentials.token() == "access-1"

    await anyio.sleep(3600)

    assert await credentials.token() is None
    assert office.asks == []
    told = credentials.explain(401, {})
    assert told is not None
    assert told.reason == (
        "its login has expired and cannot be renewed: run `aggregator login web --config /s.yaml`, "
        "or name credentials in `headers` in servers.yaml"
    )


async def test_whoever_waits_for_a_login_learns_of_it(
    file: LoginFile, make: Callable[[], Credentials]
) -> None:
    credentials = make()
    assert await credentials.token() is None
    told = credentials.explain(401, {"www-authenticate": "Bearer"})
    assert told is not None
    assert told.remedy is not None
    assert told.remedy.command == "aggregator login web --config /s.yaml"

    async with anyio.create_task_group() as group:
        group.start_soon(told.remedy.until_done)
        await anyio.sleep(30)
        keep(file)

    assert await credentials.token() == "access-1"


async def test_a_record_that_others_can_read_is_told_and_not_used(
    file: LoginFile, make: Callable[[], Credentials], caplog: pytest.LogCaptureFixture
) -> None:
    keep(file)
    file.path.chmod(0o644)
    credentials = make()

    with caplog.at_level(logging.ERROR):
        assert await credentials.token() is None

    assert "others can read" in caplog.text
    told = credentials.explain(401, {})
    assert told is not None
    assert "its login cannot be used: others can read" in told.reason


async def test_a_renewal_that_cannot_be_kept_still_serves_this_process(
    file: LoginFile,
    office: Office,
    make: Callable[[], Credentials],
    caplog: pytest.LogCaptureFixture,
) -> None:
    keep(file)
    await anyio.sleep(3600)

    def fill_the_disk() -> None:
        file.path.unlink()
        file.path.mkdir()

    office.meanwhile = fill_the_disk
    with caplog.at_level(logging.ERROR):
        assert await make().token() == "access-2"

    assert "its login is renewed, but not kept" in caplog.text
    assert "access-2" not in caplog.text


async def test_more_rights_are_asked_for_by_a_command_of_their_own(
    file: LoginFile, make: Callable[[], Credentials]
) -> None:
    keep(file)
    credentials = make()
    header = 'Bearer error="insufficient_scope", scope="admin read"'

    told = credentials.explain(403, {"www-authenticate": header})

    assert told is not None
    assert (told.is_barred, told.may_have_run) == (False, False)
    assert told.reason == (
        'it wants more rights for this (scope "admin read"): its user has to run '
        "`aggregator login web --scope 'admin read' --config /s.yaml`"
    )
    assert credentials.explain(403, {}) is None
    assert credentials.explain(500, {}) is None
