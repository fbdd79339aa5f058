"""Each tab of the page in a real browser, with a client's view beside it to compare."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from aggregator.catalog import Failed, Idle, Pending, Ready
from aggregator.catalog.lock import Drift, Kind
from aggregator.config import Settings
from aggregator.names import ServerName
from aggregator.records.events import Answer, CallEnded, ListServed, Origin, Searched
from aggregator.records.segments import Segments
from aggregator.records.stats import lines_of
from aggregator.secrecy import Redaction
from aggregator.upstream.http.keys import Keys, Ring
from tests.loopback.door import door
from tests.peers import Peer, connect_to, failing, never, ready, text_of
from tests.upstream.http.page.looking import go, looking

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to remember"},
        "times": {"type": "integer", "default": 1},
        "loud": {"type": "boolean"},
        "colour": {"enum": ["red", "green"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["text"],
}
READING = {"readOnlyHint": True}


def notes() -> Peer:
    return Peer(
        add_note={"description": "Add a note to the book", "inputSchema": SCHEMA},
        find_note={
            "description": "Find a note in the book",
            "inputSchema": SCHEMA,
            "annotations": READING,
        },
    )


def typed(command: str) -> str:
    """Return a command as it works wherever it is typed."""
    return f"aggregator {command} --config {Path('servers.yaml').absolute()}"


async def test_servers_say_how_they_are_and_which_command_helps(
    browser: Browser, tmp_path: Path
) -> None:
    servers = {
        "notes": connect_to(notes()),
        "broken": failing(FileNotFoundError("there is no program `nothing`")),
    }
    async with door(servers, tmp_path) as site, looking(browser, site) as (page, _):
        await ready(site.upstream)
        working = page.locator("[data-server=notes]")
        broken = page.locator("[data-server=broken]")

        await expect(working.locator(".pill").first).to_have_text("ready")
        await expect(working.locator(".figures")).to_contain_text("2 tools")
        await expect(page.locator("#summary")).to_contain_text("1 ready · 1 failing · 2 tools")
        await broken.locator("summary").click()
        await expect(broken.locator(".facts")).to_contain_text("there is no program")
        await expect(broken.locator(".command code")).to_have_text(typed("check broken"))
        await working.locator("summary").click()
        await working.locator("a").click()
        await expect(page.locator("#panel-tools .row")).to_have_count(2)


async def test_idle_servers_are_well(browser: Browser, tmp_path: Path) -> None:
    async with (
        door({"notes": connect_to(notes())}, tmp_path) as site,
        looking(browser, site) as (page, _),
    ):
        await ready(site.upstream)
        await expect(page.locator("#summary")).to_contain_text("1 server ready · 2 tools")
        fleet = site.upstream.fleet
        state = fleet.now.catalog.servers[ServerName("notes")]
        assert isinstance(state, Ready)
        fleet.reported(ServerName("notes"), Idle(state))

        await expect(page.locator("#summary")).to_contain_text("1 idle · 2 tools")
        idle = page.locator("[data-server=notes]")
        await expect(idle.locator(".pill.good").first).to_have_text("idle")
        await expect(idle.locator(".dot.good")).to_have_count(1)


async def test_what_fails_and_is_tried_again_comes_first_with_its_reason(
    browser: Browser, tmp_path: Path
) -> None:
    servers = {
        "notes": connect_to(notes()),
        # Of one whose command is not there nothing more is reported.
        "crashing": failing(FileNotFoundError("there is no program `nothing`")),
    }
    async with door(servers, tmp_path) as site, looking(browser, site) as (page, _):
        await ready(site.upstream)
        reason = "it exited with status 1: the key is missing " + "and so on " * 12
        state = Pending(reason, phase="cooling down")
        site.upstream.fleet.reported(ServerName("crashing"), state)
        card = page.locator("[data-server=crashing]")

        await expect(card.locator(".pill.bad").first).to_have_text("failing, retrying")
        await expect(card.locator(".dot.bad")).to_have_count(1)
        await expect(page.locator(".server").first).to_have_attribute("data-server", "crashing")
        await expect(page.locator("#summary")).to_contain_text("1 ready · 1 failing")
        about = card.locator(".about")
        await expect(about).to_contain_text("the key is missing")
        assert await about.evaluate("each => each.scrollWidth <= each.clientWidth")
        remedy = card.locator("summary code")
        await expect(remedy).to_be_visible()
        await expect(remedy).to_have_text(typed("inspect crashing"))
        await card.locator("summary").click()
        await expect(card.locator(".command code")).to_have_text(typed("inspect crashing"))
        await expect(remedy).not_to_be_visible()


async def test_a_server_that_starts_for_the_first_time_is_no_problem(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        door({"notes": connect_to(notes()), "slow": never()}, tmp_path) as site,
        looking(browser, site) as (page, _),
    ):
        await expect(page.locator("[data-server=slow] .pill.waiting")).to_have_text("starting")
        await expect(page.locator("#summary")).to_contain_text("1 ready · 1 starting")
        await expect(page.locator(".server").first).to_have_attribute("data-server", "notes")


async def test_who_wants_a_login_says_what_to_type(browser: Browser, tmp_path: Path) -> None:
    # Of one whose command is not there nothing more is reported.
    servers = {"web": failing(FileNotFoundError("there is no program `nothing`"))}
    async with door(servers, tmp_path) as site, looking(browser, site) as (page, _):
        await ready(site.upstream)
        state = Failed("nobody is logged in", login="aggregator login web")
        site.upstream.fleet.reported(ServerName("web"), state)
        web = page.locator("[data-server=web]")

        await expect(web.locator(".pill").first).to_have_text("needs login")
        await web.locator("summary").click()
        await expect(web.locator(".command code")).to_have_text("aggregator login web")
        await go(page, "activity")
        await expect(page.locator(".activity li.login")).to_contain_text("aggregator login web")


async def test_what_is_not_as_it_was_approved_says_how_and_which_command_helps(
    browser: Browser, tmp_path: Path
) -> None:
    servers = {"notes": connect_to(notes())}
    async with door(servers, tmp_path) as site, looking(browser, site) as (page, _):
        await ready(site.upstream)
        fleet, name = site.upstream.fleet, ServerName("notes")
        state = fleet.now.state(name)
        assert isinstance(state, Ready)
        adding, finding = state.entries
        drift = (
            Drift("add_note", Kind.DESCRIPTION, ("is described <b>otherwise</b>",)),
            Drift("find_note", Kind.REQUIRED, ("has another parameter",)),
        )
        changed = replace(state, entries=(finding,), listed=(adding, finding), drift=drift)
        fleet.now = fleet.now.with_state(name, changed)
        fleet.changed.send()
        card = page.locator("[data-server=notes]")

        await expect(card.locator("summary .pill", has_text="2 changed")).to_be_visible()
        await card.locator("summary").click()
        await expect(card.locator(".drifts")).to_contain_text("is described <b>otherwise</b>")
        await expect(card.locator(".command code")).to_have_text(typed("approve notes"))
        await go(page, "tools")
        rows = page.locator("#panel-tools .row")
        await expect(rows).to_have_count(1)
        await expect(rows.locator(".pill.waiting")).to_have_text("required")
        await rows.click()
        warning = page.locator(".detail .warning")
        await expect(warning).to_contain_text("has another parameter")
        await expect(warning.locator("code").first).to_have_text(
            typed("lock --diff notes__find_note")
        )
        await expect(warning.locator("code").last).to_have_text(typed("approve notes__find_note"))


async def test_tools_are_filtered_and_defined(browser: Browser, tmp_path: Path) -> None:
    servers = {"notes": connect_to(notes()), "mail": connect_to(Peer("send"))}
    async with door(servers, tmp_path) as site, looking(browser, site) as (page, _):
        await ready(site.upstream)
        await go(page, "tools")
        rows = page.locator(".row")

        await expect(rows).to_have_count(3)
        await page.get_by_label("Filter tools").fill("BOOK find")
        await expect(rows).to_have_count(1)
        await rows.first.click()
        detail = page.locator(".detail")
        await expect(detail.locator("h2")).to_have_text("notes__find_note")
        await expect(detail.locator(".title")).to_contain_text("read-only")
        await expect(detail.locator(".parameters tbody tr")).to_have_count(5)
        await expect(detail).to_contain_text("Find a note in the book")
        await detail.locator(".raw summary").click()
        whole = json.loads(await detail.locator(".raw pre").inner_text())
        assert whole["inputSchema"] == SCHEMA


@pytest.mark.parametrize("surface", ["auto", "promote"])
async def test_a_search_shows_what_a_model_reads_and_why_whatever_era_is_served(
    surface: str, browser: Browser, tmp_path: Path
) -> None:
    """A pinned surface that grows lists leaves the page, too, with the handshake era alone."""
    settings = Settings(surface="promote") if surface == "promote" else Settings()
    async with (
        door({"notes": connect_to(notes())}, tmp_path, settings) as site,
        looking(browser, site) as (page, _),
    ):
        await ready(site.upstream)
        await go(page, "search")
        await page.locator("#query").fill("find a note")
        await page.keyboard.press("Enter")
        read = page.locator(".reads pre")
        await expect(read).to_contain_text("notes__find_note")
        shown = await read.text_content()
        reasons = page.locator(".reasons > li")
        await expect(reasons.first.locator("a.name")).to_have_text("notes__find_note")
        await expect(reasons.first).to_contain_text("“note” in name")
        if surface == "auto":
            async with site.client("modern") as client:
                answer = await client.call_tool("ToolSearch", {"query": "find a note"})
            assert shown == text_of(answer)

        await page.locator("#query").fill("zzzzqqqq")
        await page.keyboard.press("Enter")
        await expect(page.locator(".why")).to_contain_text("Nothing was found")


async def test_a_tool_that_reads_is_called_at_once_and_another_after_a_question(
    browser: Browser, tmp_path: Path
) -> None:
    peer = notes()
    async with (
        door({"notes": connect_to(peer)}, tmp_path) as site,
        looking(browser, site) as (page, _),
    ):
        await ready(site.upstream)
        await go(page, "try")
        form = page.locator("#panel-try")
        await page.locator("#tool").fill("find")
        await page.keyboard.press("Enter")
        await form.get_by_label("text").fill("ink")
        await form.get_by_label("times").fill("3")
        await form.get_by_label("loud").select_option("true")
        await form.get_by_label("colour").select_option(label="green")
        await form.get_by_label("tags").fill('["a", "b"]')
        await form.get_by_role("button", name="Call").click()
        result = page.locator(".result")
        await expect(result.locator(".said")).to_contain_text("find_note: ")
        asked = {"text": "ink", "times": 3, "loud": True, "colour": "green", "tags": ["a", "b"]}
        assert peer.calls == [("find_note", asked)]

        await form.get_by_label("tags").fill("[")
        await form.get_by_role("button", name="Call").click()
        await expect(page.locator(".field .problem").last).to_have_text("This is not JSON")

        await page.goto(f"{site.origin}/#try/notes__add_note")
        await expect(page.locator(".trying h2")).to_have_text("notes__add_note")
        await form.get_by_label("text").fill("milk")
        await form.get_by_role("button", name="Call").click()
        question = page.locator("dialog")
        await expect(question).to_contain_text("it may change something")
        await question.get_by_role("button", name="Cancel").click()
        await expect(question).to_have_count(0)
        assert len(peer.calls) == 1
        await form.get_by_role("button", name="Call").click()
        await question.get_by_role("button", name="Call it").click()
        await expect(result.locator(".said")).to_contain_text("add_note: ")
        assert peer.calls[1:] == [("add_note", {"text": "milk"})]


async def test_activity_shows_what_others_do_as_they_do_it(
    browser: Browser, tmp_path: Path
) -> None:
    peer = Peer("block", "add_note")
    async with (
        door({"notes": connect_to(peer)}, tmp_path) as site,
        looking(browser, site) as (page, _),
    ):
        await ready(site.upstream)
        await go(page, "activity")
        rows = page.locator(".activity li")
        async with site.client("modern") as client:
            await client.call_tool("notes__add_note", {"text": "canary-argument"})
            await client.call_tool("ToolSearch", {"query": "block something"})
        await expect(rows.filter(has_text="notes__add_note").first).to_contain_text("ms")
        await expect(rows.filter(has_text="block something")).to_have_count(1)
        assert "canary-argument" not in await page.content()

        await page.get_by_role("button", name="Searches").click()
        await expect(rows).to_have_count(1)


async def test_saved_shows_what_was_counted_as_a_picture(browser: Browser, tmp_path: Path) -> None:
    async with (
        door({"notes": connect_to(notes())}, tmp_path, stats=tmp_path / "stats") as site,
        looking(browser, site) as (page, seen),
    ):
        await ready(site.upstream)
        now, somebody = time.time(), Origin("a-client", "1")
        catalog, config = site.upstream.fleet.now.catalog, site.upstream.fleet.now.config
        events = [
            ListServed(now, somebody, [], catalog),
            Searched(now, somebody, (Answer("rotate key", ()),), 0, 250, 100, 0.1),
            CallEnded(now, somebody, 1, ServerName("notes"), "notes__add_note", "", "ok", 0.2),
        ]
        lines = lines_of(events, 0, config.path, Redaction(()))
        Segments(tmp_path / "stats").append(lines, now)

        await go(page, "saved")
        saved = page.locator(".saved")
        await expect(saved.locator(".compared")).to_contain_text("All 2 tools")
        await expect(saved.locator(".daily rect.accent")).to_have_count(1)
        await expect(saved).to_contain_text("rotate key")
        await expect(saved.locator(".sums")).to_contain_text("100tokens that 1 search cost")
        await expect(saved).to_contain_text("200 ms")

    assert f"{site.origin}/stats" in seen.addresses


async def test_saved_praises_no_search_before_there_was_one(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        door({"notes": connect_to(notes())}, tmp_path, stats=tmp_path / "stats") as site,
        looking(browser, site) as (page, _),
    ):
        await ready(site.upstream)
        now = time.time()
        call = CallEnded(
            now, Origin("a-client", "1"), 1, ServerName("notes"), "notes__add_note", "", "ok", 0.2
        )
        lines = lines_of([call], 0, site.upstream.fleet.now.config.path, Redaction(()))
        Segments(tmp_path / "stats").append(lines, now)

        await go(page, "saved")
        saved = page.locator(".saved")
        await expect(saved).to_contain_text("Nothing was searched for yet.")
        await expect(saved).not_to_contain_text("Every search found something.")


async def test_where_nothing_was_counted_it_says_how_to_begin(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        door({}, tmp_path, stats=tmp_path / "stats") as site,
        looking(browser, site) as (page, _),
    ):
        await expect(page.locator(".servers")).to_contain_text("No servers yet")
        await go(page, "tools")
        await expect(page.locator(".detail")).to_contain_text("No tools yet")
        await go(page, "activity")
        await expect(page.locator(".activity")).to_contain_text("Nothing has happened yet")
        await go(page, "saved")
        await expect(page.locator(".saved")).to_contain_text("Nothing has been counted yet")


async def test_activity_says_who_called_to_whoever_may_know(
    browser: Browser, tmp_path: Path
) -> None:
    ring = Ring(tmp_path / "tokens.json", "/etc/servers.yaml")
    anna, bert = ring.add("<b>anna</b>", None, None), ring.add("bert", None, None)
    async with door({"notes": connect_to(notes())}, tmp_path, keys=Keys(ring)) as site:
        await ready(site.upstream)
        for token in (anna, bert):
            async with replace(site, token=token).client("modern") as client:
                await client.call_tool("notes__add_note", {"text": "milk"})
        async with looking(browser, site) as (page, _):
            await go(page, "activity")
            calls = page.locator(".activity li.ended .by")
            await expect(calls).to_have_text(["bert, by mcp", "<b>anna</b>, by mcp"])
        async with looking(browser, site, f"{site.origin}/#token={bert}") as (page, _):
            await go(page, "activity")
            await expect(page.locator(".activity li.ended .by")).to_have_text(["bert, by mcp"])
            await expect(page.locator(".activity")).not_to_contain_text("anna")
