"""Machines with the same login: one renews it, the others take it over. On the virtual clock."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from aggregator.basics.json import JsonObject
from aggregator.downstream.login.command import Command
from aggregator.downstream.login.credentials import Credentials, RefreshGrant, RenewalError
from aggregator.downstream.login.file import LoginFile
from aggregator.downstream.login.renewal import Reply
from aggregator.upstream.http.replicas.login_renewals import RENEWING, LoginRenewals
from tests.downstream.login.logins import login
from tests.downstream.login.test_credentials import Office, clock, keep

pytestmark = pytest.mark.anyio

HOUR = 3600.0


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Shelf:
    """A store, which may be out of reach."""

    def __init__(self) -> None:
        self.is_up = True
        self.is_mute = False
        """Whether it says whose turn it is, and not in time what it keeps."""
        self.kept: dict[str, str] = {}
        self.leased: dict[str, tuple[str, float]] = {}

    def keep(self, key: str, value: str, seconds: float, /) -> None:
        raise NotImplementedError

    def tell(self, **message: Any) -> bool:
        raise NotImplementedError

    async def run(self, hear: Callable[[JsonObject], Any], catch_up: Callable[[], Any]) -> None:
        raise NotImplementedError

    async def put(self, key: str, value: str, _seconds: float, /) -> None:
        if self.is_up:
            self.kept[key] = value

    async def look(self, *keys: str) -> list[str | None]:
        return [self.kept.get(key) if self.is_up and not self.is_mute else None for key in keys]

    async def learn(self, *keys: str) -> list[str | None]:
        if self.is_mute:
            raise TimeoutError
        return await self.look(*keys)

    async def claim(self, key: str, holder: str, seconds: float, /) -> str | None:
        now = anyio.current_time()
        owner, until = self.leased.get(key, ("", 0.0))
        if not self.is_up:
            return None
        if until <= now or owner == holder:
            self.leased[key] = holder, now + seconds
            return holder
        return owner

    async def release(self, key: str, holder: str, /) -> None:
        if self.is_up and self.leased.get(key, ("",))[0] == holder:
            del self.leased[key]


class Machines:
    """Several, each with a file of its own that held the same login once."""

    def __init__(self, directory: Path, office: Office) -> None:
        self.store = Shelf()
        self.office = office
        self._directory = directory

    def file(self, name: str) -> LoginFile:
        return LoginFile(self._directory / name / "one.json")

    def credentials(self, name: str) -> Credentials:
        return Credentials(
            self.file(name),
            RefreshGrant(self.office, clock),
            Command("web", Path("/s.yaml")),
            shared_renewal=LoginRenewals(self.store, name),
            clock=clock,
        )

    @property
    def shown(self) -> list[str]:
        """The refresh tokens that were shown, each as often as it was."""
        return [ask.form["refresh_token"] for ask in self.office.asks]


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path, Office())


async def test_all_that_need_it_at_the_same_time_have_one_renewal(machines: Machines) -> None:
    for name in "abc":
        keep(machines.file(name))
    several = [machines.credentials(name) for name in "abc"]
    await anyio.sleep(HOUR)
    found: list[str | None] = []

    async def ask(each: Credentials) -> None:
        found.append(await each.token())

    async with anyio.create_task_group() as group:
        for each in several:
            group.start_soon(ask, each)

    assert found == ["access-2"] * 3
    assert machines.shown == ["refresh-1"]
    kept = [machines.file(name).read() for name in "abc"]
    assert [each and each.refresh_token for each in kept] == ["refresh-2"] * 3
    assert machines.store.leased == {}


async def test_who_was_off_for_long_takes_over_what_became_of_it(machines: Machines) -> None:
    for name in "ab":
        keep(machines.file(name))
    one = machines.credentials("a")
    for _ in range(5):
        await anyio.sleep(HOUR)
        await one.token()

    # The one that was off has the last, and renews that when it is its turn.
    other = machines.credentials("b")
    assert await other.token() == await one.token() == "access-6"
    await anyio.sleep(HOUR)
    assert await other.token() == await one.token() == "access-7"
    assert machines.shown == [f"refresh-{number}" for number in range(1, 7)]


async def test_a_token_that_the_server_refuses_is_looked_for_before_it_is_asked_for(
    machines: Machines,
) -> None:
    for name in "ab":
        keep(machines.file(name))
    one, other = machines.credentials("a"), machines.credentials("b")
    assert await one.instead_of("access-1", 401, {}) == "access-2"
    assert await other.instead_of("access-1", 401, {}) == "access-2"
    assert machines.shown == ["refresh-1"]
    assert await other.instead_of("access-2", 401, {}) == "access-3"
    assert machines.shown == ["refresh-1", "refresh-2"]


async def test_a_refresh_token_that_stays_the_same_is_good_for_each_renewal(
    machines: Machines,
) -> None:
    for name in "ab":
        keep(machines.file(name))
    one, other = machines.credentials("a"), machines.credentials("b")
    for number in (2, 3):
        await anyio.sleep(HOUR)
        body = f'{{"access_token": "fresh-{number}", "token_type": "bearer", "expires_in": 3600}}'
        machines.office.reply = Reply(200, body.encode())
        assert await one.token() == await other.token() == f"fresh-{number}"
    assert machines.shown == ["refresh-1", "refresh-1"]


async def test_nobody_is_given_what_another_person_has(machines: Machines) -> None:
    keep(machines.file("a"))
    keep(machines.file("b"), refresh_token="other-refresh")  # noqa: S106 - of nobody
    keep(machines.file("c"), issuer="https://elsewhere.example.com")
    await anyio.sleep(HOUR)
    for name in "abc":
        await machines.credentials(name).token()

    assert machines.shown == ["refresh-1", "other-refresh", "refresh-1"]


async def test_of_one_that_has_gone_without_a_word_another_takes_the_turn(
    machines: Machines,
) -> None:
    keep(machines.file("a"))
    await anyio.sleep(HOUR)
    # It has its turn, and is killed.
    async with LoginRenewals(machines.store, "gone").turn(login()):
        held = {**machines.store.leased}
    machines.store.leased = held
    one = machines.credentials("a")
    with pytest.raises(RenewalError, match="another replica renews it"):
        await one.token()
    await anyio.sleep(RENEWING)
    assert await one.token() == "access-2"


async def test_what_may_have_been_renewed_is_not_shown_again(machines: Machines) -> None:
    for name in "ab":
        keep(machines.file(name))
    await anyio.sleep(HOUR)
    assert await machines.credentials("a").token() == "access-2"

    machines.store.is_mute = True
    other = machines.credentials("b")
    with pytest.raises(RenewalError, match="does not say what became of it"):
        await other.token()
    assert machines.shown == ["refresh-1"]
    machines.store.is_mute = False
    await anyio.sleep(10)
    assert await other.token() == "access-2"
    assert machines.shown == ["refresh-1"]


async def test_who_cannot_be_told_in_its_turn_leaves_it_to_others(machines: Machines) -> None:
    class Tiring(Shelf):
        async def claim(self, key: str, holder: str, seconds: float, /) -> str | None:
            self.is_mute = True
            return await super().claim(key, holder, seconds)

    keep(machines.file("a"))
    machines.store = Tiring()
    await anyio.sleep(HOUR)
    with pytest.raises(RenewalError, match="does not say what became of it"):
        await machines.credentials("a").token()
    assert machines.store.leased == {}
    assert machines.shown == []


async def test_without_the_store_each_is_by_itself(machines: Machines) -> None:
    keep(machines.file("a"))
    machines.store.is_up = False
    await anyio.sleep(HOUR)

    assert await machines.credentials("a").token() == "access-2"
    assert machines.store.kept == {}


async def test_what_is_no_login_there_is_none(machines: Machines) -> None:
    keep(machines.file("a"))
    one = machines.credentials("a")
    await one.instead_of("access-1", 401, {})
    for odd in ("", "x", "{}", "[]", '{"client": {}}'):
        machines.store.kept = dict.fromkeys(machines.store.kept, odd)
        keep(machines.file("b"))
        assert await machines.credentials("b").instead_of("access-1", 401, {}) is not None
