"""What is known, as clients of a profile see it: worked out once, and the same while it is."""

from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.catalog import Failed, Idle, Offers, Pending, PromptEntry, Ready, ToolEntry
from aggregator.catalog.lock import Drift, Kind
from aggregator.config import Config, ServerConfig, Settings
from aggregator.config.mode import ToolSearchMode
from aggregator.config.profile import Profile
from aggregator.fleet.narrowing import UNPINNED, UNUSABLE, Narrowing
from aggregator.fleet.now import Now
from aggregator.names import ServerName, ToolName
from tests.work import counting

NOTES, VAULT = ServerName("notes"), ServerName("vault")


def entry(server: ServerName, name: str, *, reads: bool = False) -> ToolEntry:
    tool = {"name": name, "inputSchema": {"type": "object"}}
    return ToolEntry(ToolName(f"{server}__{name}"), server, tool, read_only=reads)


def offered(server: ServerName) -> Ready:
    return Ready((entry(server, "read", reads=True), entry(server, "delete")))


READY = offered(NOTES)


def now_with(profile: Profile | None, **settings: object) -> Now:
    profiles = {} if profile is None else {profile.name: profile}
    servers = {name: ServerConfig(name, name) for name in (NOTES, VAULT)}
    made = replace(Settings(profiles=profiles), **settings)
    config = Config(Path("servers.yaml"), servers, made)
    return Now.starting(config, 0.0).with_state(NOTES, READY).with_state(VAULT, offered(VAULT))


def names(now: Now) -> list[str]:
    return list(now.catalog.entries)


def test_what_is_as_it_was_is_the_same_object() -> None:
    narrowing = Narrowing("one")
    now = now_with(Profile("one", servers=("notes",), deny=("delete*",)))
    seen = narrowing(now)
    hidden = (*READY.entries[:1], entry(NOTES, "delete_all"))
    listed = replace(READY, entries=hidden, since=5.0)

    assert names(seen) == ["notes__read"]
    assert narrowing(now) is seen
    assert narrowing(now.with_state(VAULT, Failed("gone"))) is seen
    assert narrowing(now.with_state(NOTES, listed)) is seen
    assert narrowing(now.with_state(NOTES, Failed("gone"))) is not seen


def test_to_look_again_takes_no_work() -> None:
    narrowing = Narrowing("one")
    now = now_with(Profile("one", deny=("delete",)))
    narrowing(now)

    with counting() as tally:
        for _ in range(100):
            narrowing(now)

    assert tally.calls <= 300


def test_what_was_judged_ahead_is_not_judged_again() -> None:
    narrowing, profile = Narrowing("one"), Profile("one", deny=("delete_*",))
    now = now_with(profile)
    narrowing(now)
    many = tuple(entry(NOTES, f"tool_{number}") for number in range(500))
    for each in many:
        narrowing.judge(each)
    later = now.with_state(NOTES, Ready(many))

    with counting() as ahead:
        narrowing(later)
    with counting() as unprepared:
        Narrowing("one")(later)

    assert ahead.calls * 3 < unprepared.calls


def test_what_another_configuration_says_is_found_out_before_it_is_in_use() -> None:
    narrowing, now = Narrowing("one"), now_with(Profile("one"))
    later = now_with(Profile("one", deny=("delete",)))
    seen = narrowing(now)

    for _ in narrowing.expect(later.config, now.catalog.entries.values()):
        pass

    assert narrowing(now) is seen
    assert names(narrowing(later)) == ["notes__read", "vault__read"]


def test_a_profile_that_the_file_no_longer_has_shows_nothing() -> None:
    narrowing = Narrowing("one")
    narrowing(now_with(Profile("one")))

    seen = narrowing(now_with(None))

    assert (names(seen), dict(seen.catalog.servers), dict(seen.config.servers)) == ([], {}, {})


@pytest.mark.parametrize(
    "state", [Pending(known=READY), Idle(READY), READY], ids=["pending", "idle", "ready"]
)
def test_what_is_hidden_is_hidden_in_every_state(state: Pending | Idle | Ready) -> None:
    now = now_with(Profile("one", read_only=True)).with_state(NOTES, state)

    assert names(Narrowing("one")(now)) == ["notes__read", "vault__read"]


def test_what_is_gone_is_hidden_too() -> None:
    offers = Offers(tuple(PromptEntry(f"notes__{each}", NOTES, {"name": each}) for each in "ab"))
    now = now_with(Profile("one", deny=("b",))).with_state(NOTES, replace(READY, offers=offers))
    away = Narrowing("one")(now.with_state(NOTES, Pending(phase="retrying")))

    assert away.routes.prompt("notes__a") is not None
    assert away.routes.prompt("notes__b") is None


def test_tasks_are_offered_wherever_their_server_is_shown() -> None:
    able = replace(READY, offers=Offers(tasks=True, reads=True))
    seen = Narrowing("one")(now_with(Profile("one", deny=("b",))).with_state(NOTES, able))
    hidden = Narrowing("one")(now_with(Profile("one", servers=("vault",))).with_state(NOTES, able))

    assert seen.catalog.known[NOTES].offers.tasks
    assert NOTES not in hidden.catalog.known


def test_what_differs_from_what_was_approved_is_told_of_what_is_shown() -> None:
    drift = tuple(Drift(each, Kind.NEW) for each in ("read", "delete", "delete_all"))
    told = replace(READY, drift=drift, refused=("delete: too long",), unmatched=("x",))
    seen = Narrowing("one")(now_with(Profile("one", deny=("delete*",))).with_state(NOTES, told))

    known = seen.catalog.known[NOTES]
    assert [each.tool for each in known.drift] == ["read"]
    assert (known.refused, known.unmatched) == ((), ())


def test_what_is_wrong_with_the_file_is_told_without_what_it_is_about() -> None:
    now = now_with(Profile("one")).with_problem("`vault.url` is no URL")
    seen = Narrowing("one")(replace(now, unpinned="vault"))

    assert (seen.problem, seen.unpinned) == (UNUSABLE, UNPINNED)


def test_a_profile_says_how_its_clients_reach_tools() -> None:
    profile = Profile(
        "one", always_load=("notes__read",), surface="relay", max_results=2, max_loaded=3
    )
    seen = Narrowing("one")(now_with(profile, surface="promote", clients={"x": "full"}))

    settings = seen.config.settings
    assert [each.name for each in seen.catalog.always_loaded] == ["notes__read"]
    assert (settings.surface, settings.max_results, settings.max_loaded) == ("relay", 2, 3)
    assert not settings.clients


def test_once_tools_of_a_profile_are_deferred_they_stay_so() -> None:
    profile = Profile("one", tool_search=ToolSearchMode(10))
    now = now_with(profile, context_window=1000)
    large = entry(NOTES, "large")
    large = replace(large, tool={**large.tool, "description": "word " * 200})
    narrowing = Narrowing("one")

    assert not narrowing(now).deferral.deferring
    assert narrowing(now.with_state(NOTES, Ready((large,)))).deferral.deferring
    assert narrowing(now.with_state(NOTES, Ready())).deferral.deferring
