"""`/activity` and `/stats`: what happens, bounded, and without what was asked or answered."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from aggregator.basics.eras import Era
from aggregator.catalog import Failed, Pending, Ready
from aggregator.names import ServerName
from aggregator.records.events import (
    PAGE,
    Answer,
    CallEnded,
    Content,
    Event,
    ListServed,
    Origin,
    Searched,
    StateChanged,
)
from aggregator.secrecy import Redaction
from aggregator.upstream.http.keys import Keys, Ring
from aggregator.upstream.http.page.activity import KEPT, MAX_VALUES, Activity
from aggregator.upstream.http.page.following import MAX_READERS
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.patience import PATIENCE
from tests.peers import Mortal, Peer, connect_to, ready, text_of

pytestmark = pytest.mark.anyio

CONFIG = Path("servers.yaml").absolute()
CANARY = "canary-4711"
SECRET = "hunter2-and-a-half"  # noqa: S105 - a made-up one
NOTES = ServerName("notes")
SOMEBODY = Origin("client", "session-1")

Fact = dict[str, Any]


def remembering(**options: Any) -> Activity:
    return Activity(lambda: Redaction([("token", SECRET)]), **options)


def ended(number: int = 1, arguments: Any = None) -> CallEnded:
    content = Content(arguments or {}, {"content": [{"type": "text", "text": CANARY}]})
    return CallEnded(1.0, SOMEBODY, number, "notes", "notes__add", "", "ok", 0.25, content=content)


def told(activity: Activity, *events: Event) -> list[Fact]:
    for event in events:
        activity.hear(event)
    return [json.loads(text) for _, text in activity.after(0).events]


class Reader:
    """Reads a stream of events, one after the other."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()
        self.heard: list[Fact] = []
        self.ids: list[str] = []
        self.text = ""

    async def until(self, condition: Callable[[Fact], bool]) -> Fact:
        with anyio.fail_after(PATIENCE):
            async for line in self._lines:
                self.text += f"{line}\n"
                if line.startswith("id: "):
                    self.ids.append(line.removeprefix("id: "))
                if line.startswith("data: {"):
                    self.heard.append(json.loads(line.removeprefix("data: ")))
                    if condition(self.heard[-1]):
                        return self.heard[-1]
        raise AssertionError("the stream has ended")

    async def end(self) -> None:
        with anyio.fail_after(PATIENCE):
            try:
                async for _line in self._lines:
                    pass
            except httpx2.RemoteProtocolError:
                # It is hung up on, as any client that only waits for news.
                pass


@asynccontextmanager
async def reading(site: Open, **headers: str) -> AsyncGenerator[Reader, None]:
    async with (
        httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES, timeout=PATIENCE) as http,
        http.stream(
            "GET", f"{site.origin}/activity", headers={**site.credentials, **headers}
        ) as response,
    ):
        assert response.status_code == 200
        assert response.headers["cache-control"] == "no-store"
        yield Reader(response)


async def test_what_happens_is_told_as_it_happens_without_what_was_said(
    client_era: Era, server_era: Era, tmp_path: Path
) -> None:
    servers = {"notes": connect_to(Peer("add_note"), server_era)}
    async with door(servers, tmp_path) as site, reading(site) as reader:
        await ready(site.upstream)
        async with site.client(client_era) as client:
            await client.call_tool("notes__add_note", {"text": CANARY})
            call = await reader.until(lambda fact: fact.get("kind") == "ended")
            await client.call_tool("ToolSearch", {"query": "add a note"})
            search = await reader.until(lambda fact: fact.get("kind") == "search")

    began = next(fact for fact in reader.heard if fact.get("kind") == "began")
    assert began["number"] == call["number"]
    assert (call["server"], call["tool"], call["outcome"]) == ("notes", "notes__add_note", "ok")
    assert search["answers"] == [{"query": "add a note", "found": ["notes__add_note"], "number": 1}]
    assert reader.heard[0] == {
        "showsArguments": False,
        "config": str(CONFIG),
    }
    assert CANARY not in reader.text
    assert site.token not in reader.text


async def test_who_wants_arguments_gets_them_and_no_result(client_era: Era, tmp_path: Path) -> None:
    servers = {"notes": connect_to(Peer("add_note"))}
    async with (
        door(servers, tmp_path, shows_arguments=True) as site,
        reading(site) as reader,
    ):
        await ready(site.upstream)
        async with site.client(client_era) as client:
            result = await client.call_tool("notes__add_note", {"text": CANARY})
            call = await reader.until(lambda fact: fact.get("kind") == "ended")

    assert call["arguments"] == {"text": CANARY}
    assert reader.heard[0]["showsArguments"] is True
    assert CANARY in text_of(result)
    assert reader.text.count(CANARY) == 1


async def test_a_server_that_dies_and_returns_is_told(tmp_path: Path) -> None:
    mortal = Mortal(connect_to(Peer("add_note")))
    async with door({"notes": mortal}, tmp_path) as site, reading(site) as reader:
        await reader.until(lambda fact: fact.get("after") == "ready")
        mortal.cut()
        lost = await reader.until(lambda fact: fact.get("kind") == "state")
        back = await reader.until(lambda fact: fact.get("after") == "ready")

    assert (lost["before"], lost["after"], lost["server"]) == ("ready", "pending", "notes")
    assert back["before"] == "pending"


async def test_whoever_comes_back_is_told_what_is_new_alone(tmp_path: Path) -> None:
    async with door({"notes": connect_to(Peer("add_note"))}, tmp_path) as site:
        stream = site.upstream.fleet.stream
        await ready(site.upstream)
        async with reading(site) as first:
            stream.tell(ended(1))
            await first.until(lambda fact: fact.get("number") == 1)
        stream.tell(ended(2))
        async with reading(site, **{"last-event-id": first.ids[-1]}) as again:
            await again.until(lambda fact: fact.get("number") == 2)
        async with reading(site, **{"last-event-id": "another-run-1"}) as other:
            await other.until(lambda fact: fact.get("number") == 2)

    assert [fact["number"] for fact in again.heard[1:]] == [2]
    assert 1 in [fact.get("number") for fact in other.heard]


async def test_the_stream_ends_with_the_door(tmp_path: Path) -> None:
    async with door({}, tmp_path) as site, reading(site) as reader:
        await reader.until(lambda fact: "showsArguments" in fact)
        site.stop.set()
        await reader.end()


async def test_only_so_many_pages_look_at_a_time(tmp_path: Path) -> None:
    async with (
        door({}, tmp_path) as site,
        httpx2.AsyncClient(
            trust_env=False,
            verify=NO_CERTIFICATES,
            timeout=PATIENCE,
            headers=site.credentials,
            limits=httpx2.Limits(max_connections=MAX_READERS + 1),
        ) as http,
        anyio.create_task_group() as group,
    ):
        opened = anyio.Semaphore(0)

        async def look() -> None:
            async with http.stream("GET", f"{site.origin}/activity"):
                opened.release()
                await anyio.sleep_forever()

        for _ in range(MAX_READERS):
            group.start_soon(look)
        with anyio.fail_after(PATIENCE):
            for _ in range(MAX_READERS):
                await opened.acquire()
            refused = await http.get(f"{site.origin}/activity")
        assert refused.status_code == 503
        assert "close some of them" in refused.text
        group.cancel_scope.cancel()


async def test_where_nothing_is_counted_stats_say_so(tmp_path: Path) -> None:
    async with door({}, tmp_path) as site:
        async with httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES) as http:
            answer = await http.get(f"{site.origin}/stats", headers=site.credentials)

    assert answer.json() == {"enabled": False}
    assert answer.headers["cache-control"] == "no-store"


def test_the_last_are_kept_and_what_is_missing_is_counted() -> None:
    activity = remembering()
    for number in range(1, KEPT + 101):
        activity.hear(ended(number))

    all_there_is, later, lagging = activity.after(0), activity.after(KEPT + 98), activity.after(50)

    assert len(all_there_is.events) == len(lagging.events) == KEPT
    assert all_there_is.missed == 0
    assert lagging.missed == 50
    assert [number for number, _ in later.events] == [KEPT + 99, KEPT + 100]
    assert activity.after(KEPT + 100).events == ()
    assert len(activity.after(10**9).events) == KEPT


def test_arguments_are_shown_only_where_a_person_asked_for_it_and_results_never() -> None:
    deep = {"a": [1, None, float("inf")]}
    event = ended(arguments={"text": CANARY, "key": f"Bearer {SECRET}", "deep": deep})

    (without,) = told(remembering(), event)
    (shown,) = told(remembering(shows_arguments=True), event._replace(content=event.content))

    assert "arguments" not in without
    assert shown["arguments"] == {
        "text": CANARY,
        "key": "Bearer [token]",
        "deep": {"a": [1, None, "inf"]},
    }
    assert json.dumps(shown).count(CANARY) == 1


def test_of_endless_arguments_little_is_looked_at() -> None:
    endless: Any = {"list": list(range(10 * MAX_VALUES)), "text": "x" * 100_000}
    for _ in range(1000):
        endless = {"inside": endless}

    (deep,) = told(remembering(shows_arguments=True), ended(arguments=endless))
    (wide,) = told(remembering(shows_arguments=True), ended(arguments={"list": list(range(10**6))}))

    assert len(json.dumps(deep)) < 1000
    assert len(wide["arguments"]["list"]) <= MAX_VALUES
    assert wide["arguments"]["list"][-1] == "…"


def test_what_is_told_of_searches_and_servers_has_no_secrets_and_one_line() -> None:
    search = Searched(1.0, SOMEBODY, (Answer(f"my {SECRET}\nnext", ()),), 0, 100, 40, 0.1)
    failed = StateChanged(1.0, NOTES, Ready(), Failed("a\nb\x1b[31m"))
    pending = StateChanged(1.0, NOTES, None, Pending(reason="x" * 10_000))

    searched, gone, new = told(remembering(), search, failed, pending)

    assert searched["answers"][0]["query"] == "my [token] next"
    assert gone["reason"].startswith("a b")
    assert "\x1b" not in gone["reason"]
    assert len(new["reason"]) <= 300
    assert new["before"] is None


def test_lists_of_the_page_itself_are_not_told(tmp_path: Path) -> None:
    upstream_catalog: Any = None
    lists = [ListServed(1.0, Origin(name, "s"), [{}], upstream_catalog) for name in (PAGE, "x")]

    (other,) = told(remembering(), *lists)

    assert (other["client"], other["tools"]) == ("x", 1)


async def test_whoever_runs_us_sees_who_called_and_nobody_else_does(
    client_era: Era, tmp_path: Path
) -> None:
    ring = Ring(tmp_path / "tokens.json", "/etc/servers.yaml")
    anna, bert = ring.add("anna", None, None), ring.add("bert", None, None)
    servers = {"notes": connect_to(Peer("add_note"))}
    async with door(servers, tmp_path, keys=Keys(ring)) as site:
        await ready(site.upstream)
        for token in (anna, bert, site.token):
            async with replace(site, token=token).client(client_era) as client:
                await client.call_tool("notes__add_note", {})
        heard: list[list[str | None]] = []
        for token, last in ((site.token, None), (anna, "anna"), (bert, "bert")):
            async with reading(replace(site, token=token)) as reader:
                await reader.until(
                    lambda fact, last=last: (
                        fact.get("kind") == "ended" and fact.get("identity") == last
                    )
                )
            calls = [fact for fact in reader.heard if fact.get("kind") == "ended"]
            heard.append([fact.get("identity") for fact in calls])
            if last is not None:
                assert {"anna": "bert", "bert": "anna"}[last] not in reader.text

    assert heard == [["anna", "bert", None], ["anna"], ["bert"]]
