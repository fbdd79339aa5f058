"""A session with known numbers is counted as exactly these, without what was said in it."""

import gc
import json
import time
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.catalog import Catalog, Pending, Ready
from aggregator.exposure import approximate_tokens, tokens_of
from aggregator.names import ServerName
from aggregator.records.events import ListServed, Origin, Stream
from aggregator.records.keeping import keep_stats
from aggregator.records.segments import Segments
from aggregator.records.stats import file_mark, lines_of
from aggregator.records.tally import Day, Followed, Lists, Use, percentile, tally
from aggregator.secrecy import Redaction
from aggregator.upstream.server import Upstream
from tests.peers import (
    Context,
    Peer,
    aggregating,
    connect_to,
    failing,
    never,
    ready,
    until,
    visiting,
)
from tests.stories.test_offers import Library

pytestmark = pytest.mark.anyio

CONFIG = Path("servers.yaml")
CANARY = "canary-4711"
SECRET = "hunter2-and-a-half"  # noqa: S105 - a made-up one


@pytest.fixture
def anyio_backend(virtual_time: Any) -> Any:
    return virtual_time


class Slow(Peer):
    """Takes as many milliseconds as it is told to, and fails if it is told to."""

    def __init__(self, *tools: str, **definitions: Any) -> None:
        super().__init__(*tools, **definitions)
        self.add_request_handler("tools/call", types.CallToolRequestParams, self._take_time)

    async def _take_time(
        self, _ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        await anyio.sleep(arguments.get("ms", 0) / 1000)
        text = types.TextContent(type="text", text=CANARY)
        return types.CallToolResult(content=[text], is_error=bool(arguments.get("fail")))


@asynccontextmanager
async def counting(upstream: Upstream, directory: Path) -> AsyncGenerator[None, None]:
    """Count what happens for the length of the block."""
    confided = Redaction([("token", SECRET)])
    async with anyio.create_task_group() as group:
        group.start_soon(keep_stats, upstream.fleet.stream, directory, CONFIG, lambda: confided)
        await anyio.wait_all_tasks_blocked()
        yield
        group.cancel_scope.cancel()


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Segments(directory).read(0.0)]


async def test_a_scripted_session_is_counted_exactly(client_era: Era, tmp_path: Path) -> None:
    open_schema: dict[str, Any] = {"inputSchema": {"type": "object"}}
    tools = {
        name: {"description": f"{name.replace('_', ' ')} of somebody", **open_schema}
        for name in ("open_ticket", "close_ticket", "send_mail")
    }
    servers = {"jira": connect_to(Slow(**tools)), "idle": connect_to(Slow("never"))}
    async with aggregating(servers) as upstream, counting(upstream, tmp_path):
        await ready(upstream)
        async with visiting(upstream, client_era) as client:
            await client.call_tool("ToolSearch", {"query": "close ticket"})
            for milliseconds in (10, 20, 30, 40, 1000):
                await client.call_tool("jira__close_ticket", {"ms": milliseconds})
            await client.call_tool("jira__open_ticket", {"ms": 5, "fail": True})
            await client.call_tool("ToolSearch", {"query": "zzzzqqqq"})
            await client.call_tool("ToolSearch", {"query": "zzzzqqqq"})
            with pytest.raises(MCPError):
                await client.call_tool("jira__frobnicate", {})

    found = tally(Segments(tmp_path).read(0.0), file_mark(CONFIG))

    assert found.tools == (
        Use("jira__close_ticket", "jira", 5, 0, 30.0, 1000.0),
        Use("jira__open_ticket", "jira", 1, 1, 5.0, 5.0),
    )
    assert found.servers == (Use("jira", "jira", 6, 1, 20.0, 1000.0),)
    assert (found.calls, found.errors, found.unknown) == (7, 2, 1)
    assert (found.searches.queries, found.searches.hits) == (3, 1)
    assert found.searches.followed == (Followed("close ticket", "jira__close_ticket", 1),)
    assert found.searches.nothing == (("zzzzqqqq", 2),)
    assert found.searches.tokens == sum(
        line["tokens"] for line in lines(tmp_path) if line["event"] == "search"
    )
    assert (found.lost, found.damaged) == (0, 0)
    counts = [sum(each) for each in zip(*(day[1:] for day in found.days), strict=True)]
    assert counts == [7, 2, 3, found.lists.tokens, found.searches.tokens]


async def test_a_call_of_a_server_that_is_not_there_is_an_error_of_that_server(
    client_era: Era, tmp_path: Path
) -> None:
    refused = failing(ConnectionRefusedError("connection refused"))
    async with aggregating({"jira": refused}) as upstream, counting(upstream, tmp_path):
        async with visiting(upstream, client_era) as client:
            for name in (f"jira__{CANARY}", "jira__open_ticket"):
                await client.call_tool("CallTool", {"name": name})
            with pytest.raises(MCPError):
                await client.call_tool("frobnicate", {})

    found = tally(Segments(tmp_path).read(0.0), file_mark(CONFIG))

    ((name, server, calls, errors, *_),) = found.servers
    assert (name, server, calls, errors) == ("jira", "jira", 2, 2)
    assert (found.calls, found.errors, found.unknown) == (3, 3, 1)
    # Nobody knows whether there are such tools, and what does not exist is whatever is written.
    assert found.tools == ()
    assert CANARY not in json.dumps(lines(tmp_path))


async def test_a_search_that_finds_a_prompt_alone_has_found_something(
    client_era: Era, server_era: Era, tmp_path: Path
) -> None:
    library = Library("list_code")
    async with aggregating({"github": connect_to(library, server_era)}) as upstream:
        async with counting(upstream, tmp_path):
            await ready(upstream)
            async with visiting(upstream, client_era) as client:
                await client.call_tool("ToolSearch", {"query": "kind:prompt review"})
                await client.call_tool("ToolSearch", {"query": "zzzzqqqq"})

    found = tally(Segments(tmp_path).read(0.0), file_mark(CONFIG))

    assert (found.searches.queries, found.searches.hits) == (2, 1)
    assert found.searches.nothing == (("zzzzqqqq", 1),)


async def test_nothing_of_what_was_said_is_kept(client_era: Era, tmp_path: Path) -> None:
    async with aggregating({"jira": connect_to(Slow("open_ticket"))}) as upstream:
        async with counting(upstream, tmp_path):
            await ready(upstream)
            async with visiting(upstream, client_era) as client:
                await client.call_tool("jira__open_ticket", {"text": CANARY})
                await client.call_tool("CallTool", {"name": "jira__open_ticket", CANARY: CANARY})
                await client.call_tool("ToolSearch", {"query": f"ticket {SECRET}"})
                with pytest.raises(MCPError):
                    await client.call_tool(CANARY, {})

    kept = "\n".join(Segments(tmp_path).read(0.0))
    assert len([line for line in lines(tmp_path) if line["event"] != "list"]) == 4
    assert CANARY not in kept
    assert SECRET not in kept
    assert "ticket [token]" in kept


async def test_what_a_person_does_by_our_commands_is_not_counted(
    client_era: Era, tmp_path: Path
) -> None:
    ours = types.Implementation(name="aggregator-cli", version="1")
    async with aggregating({"jira": connect_to(Slow("open_ticket"))}) as upstream:
        async with counting(upstream, tmp_path):
            await ready(upstream)
            async with visiting(upstream, client_era, client_info=ours) as client:
                await client.list_tools()
                await client.call_tool("jira__open_ticket", {})

    assert lines(tmp_path) == []


async def test_lists_are_held_against_all_there_is(client_era: Era, tmp_path: Path) -> None:
    servers = {"jira": connect_to(Slow(*(f"tool_{number}" for number in range(50))))}
    async with aggregating(servers) as upstream, counting(upstream, tmp_path):
        await ready(upstream)
        async with visiting(upstream, client_era) as client:
            listed = (await client.list_tools()).tools
        entries = upstream.fleet.now.catalog.entries

    found = tally(Segments(tmp_path).read(0.0), file_mark(CONFIG))

    everything = sum(map(approximate_tokens, entries.values()))
    shown = sum(tokens_of(each.model_dump(by_alias=True, exclude_none=True)) for each in listed)
    saved = everything - shown
    assert saved > 0
    assert found.lists == Lists(1, 1, saved)


async def test_a_server_that_never_starts_does_not_keep_lists_from_being_weighed(
    client_era: Era, server_era: Era, tmp_path: Path
) -> None:
    many = Slow(*(f"tool_{number}" for number in range(50)))
    servers = {"jira": connect_to(many, server_era), "hung": never()}
    async with aggregating(servers) as upstream, counting(upstream, tmp_path):
        fleet = upstream.fleet
        await until(lambda: bool(fleet.now.catalog.entries), lambda: fleet.changed)
        async with visiting(upstream, client_era) as client:
            await client.list_tools()
        entries = upstream.fleet.now.catalog.entries

    found = tally(Segments(tmp_path).read(0.0), file_mark(CONFIG))

    (line,) = (each for each in lines(tmp_path) if each["event"] == "list")
    everything = sum(map(approximate_tokens, entries.values()))
    assert (line["of"], line["missing"]) == (everything, 1)
    assert found.lists == Lists(1, 1, everything - line["tokens"], partial=1)


def test_a_list_is_not_weighed_before_any_tool_is_known() -> None:
    catalog = Catalog({ServerName("late"): Pending()})
    served = ListServed(1.0, Origin("somebody", "s"), (), catalog)

    (line,) = lines_of([served], 0, CONFIG, Redaction(()))
    found = tally([line.decode()], file_mark(CONFIG))

    assert found.lists == Lists(1, 0, 0)


async def test_a_place_that_cannot_be_written_to_stops_nobody(
    client_era: Era, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "stats").write_text("a file", encoding="utf-8")
    async with aggregating({"jira": connect_to(Slow("open_ticket"))}) as upstream:
        async with counting(upstream, tmp_path / "stats"):
            await ready(upstream)
            async with visiting(upstream, client_era) as client:
                for _ in range(3):
                    await client.call_tool("jira__open_ticket", {})
                    await anyio.sleep(5)

    assert caplog.text.count("stats cannot be written") == 1


async def test_what_could_not_be_written_is_counted_and_not_kept(tmp_path: Path) -> None:
    stream, held = Stream(), list[weakref.ref[Catalog]]()
    kept, directory = list[Catalog | None](), tmp_path / "stats"
    directory.write_text("a file", encoding="utf-8")

    async def serve_list() -> None:
        catalog = Catalog({ServerName("notes"): Ready(())})
        held.append(weakref.ref(catalog))
        stream.tell(ListServed(1.0, Origin("somebody", "s"), [], catalog))
        del catalog
        await anyio.sleep(5)
        # The clock does not wait for threads.
        while to_thread.current_default_thread_limiter().borrowed_tokens:
            await checkpoint()
        await anyio.wait_all_tasks_blocked()

    async with anyio.create_task_group() as group:
        group.start_soon(keep_stats, stream, directory, CONFIG, lambda: Redaction([]))
        await anyio.wait_all_tasks_blocked()
        for _ in range(3):
            await serve_list()
        gc.collect()
        kept.extend(each() for each in held if each() is not None)
        directory.unlink()
        await serve_list()
        group.cancel_scope.cancel()

    assert kept == []
    assert [each.get("count") for each in lines(directory)] == [None, 3]


def test_what_cannot_be_read_is_passed_over_and_told() -> None:
    good = {"file": "f", "at": 5, "session": "s", "event": "call", "outcome": "ok", "ms": 1}
    texts = [
        json.dumps(good),
        '{"file":"f","at":1,"sess',
        "[]",
        "\n",
        json.dumps({**good, "ms": None}),
        json.dumps({**good, "file": "another"}),
        json.dumps({**good, "at": 1}),
        json.dumps({**good, "event": "of a later version"}),
        json.dumps({"file": "f", "at": 6, "event": "lost", "count": 3}),
    ]

    found = tally(texts, "f", since=2.0)

    assert (found.calls, found.lost, found.damaged, found.first) == (1, 3, 3, 5.0)


def test_a_call_follows_from_the_latest_query_of_its_session_that_found_it() -> None:
    def search(at: int, session: str, query: str, *found: str, offset: int = 0) -> str:
        line = {"file": "f", "at": at, "session": session, "event": "search", "tokens": 1}
        return json.dumps({**line, "answers": [[query, found]], "offset": offset})

    def call(at: int, session: str, tool: str) -> str:
        line = {"file": "f", "at": at, "session": session, "event": "call", "outcome": "ok"}
        return json.dumps({**line, "server": "s", "tool": tool, "ms": 1})

    found = tally(
        [
            search(1, "one", "first", "a", "b"),
            search(2, "one", "second", "c", "b"),
            search(3, "two", "third", "b"),
            call(4, "one", "b"),
            call(5, "one", "b"),
            call(6, "one", "b"),
            search(7, "two", "fourth", "d", offset=5),
            call(8, "two", "d"),
        ],
        "f",
    )

    assert found.searches.followed == (
        Followed("second", "b", 2),
        Followed("first", "b", 2),
        Followed("fourth", "d", 6),
    )


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(each) for each in range(1, 101)]

    assert (percentile(values, 0.5), percentile(values, 0.95)) == (50.0, 95.0)
    assert (percentile([7.0], 0.95), percentile([], 0.5)) == (7.0, 0.0)


def test_each_day_has_its_own_sums() -> None:
    noon = time.mktime((2026, 3, 1, 12, 0, 0, 0, 0, -1))
    call = {"event": "call", "server": "a", "tool": "a__b", "outcome": "ok", "ms": 1}
    told: list[tuple[float, dict[str, Any]]] = [
        (noon, call),
        (noon, {**call, "outcome": "tool-error"}),
        (noon + 24 * 3600, {"event": "search", "answers": [["x", []]], "tokens": 5}),
        (noon + 24 * 3600, {"event": "list", "tokens": 10, "of": 110}),
        (noon + 24 * 3600, {"event": "list", "tokens": 10, "of": None}),
    ]
    written = [json.dumps({"file": "f", "at": at, "session": "1", **each}) for at, each in told]

    found = tally(reversed(written), "f")

    assert found.days == (
        Day("2026-03-01", calls=2, errors=1),
        Day("2026-03-02", queries=1, saved=100, cost=5),
    )
