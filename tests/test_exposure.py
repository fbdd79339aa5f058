import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.basics.json import JsonObject
from aggregator.catalog import Catalog, Failed, Pending, Ready, ServerState, ToolEntry
from aggregator.clients import UNKNOWN, SurfaceChoice, known_clients, profile
from aggregator.config.mode import ToolSearchMode
from aggregator.exposure import (
    ALWAYS_LOAD,
    Deferral,
    Era,
    Surface,
    Way,
    approximate_tokens,
    definition,
    explain_surface,
    expose,
    time_to_live,
    visible,
    way_to_call,
)
from aggregator.names import ServerName, ToolName

META: tuple[JsonObject, ...] = ({"name": "ToolSearch"}, {"name": "CallTool"})
SURFACES: tuple[Surface, ...] = ("promote", "hybrid", "relay", "full")


def entry(name: str, *, always_load: bool = False, **tool: Any) -> ToolEntry:
    server, own_name = name.split("__")
    raw = {"name": own_name, "description": "Does it.", "inputSchema": {"type": "object"}, **tool}
    return ToolEntry(ToolName(name), ServerName(server), raw, always_load=always_load)


def catalog(**servers: ServerState | list[ToolEntry]) -> Catalog:
    return Catalog(
        {
            ServerName(name): Ready(tuple(state)) if isinstance(state, list) else state
            for name, state in servers.items()
        }
    )


def names(listing: tuple[JsonObject, ...]) -> list[str]:
    return [tool["name"] for tool in listing]


def shown(
    of: Catalog, surface: Surface, *loaded: str, searching: bool = True
) -> tuple[JsonObject, ...]:
    return visible(
        of,
        surface=surface,
        meta_tools=META,
        loaded=map(ToolName, loaded),
        searching=searching,
    )


GITHUB = [entry("github__issue"), entry("github__star"), entry("github__pinned", always_load=True)]
SLACK = [entry("slack__send"), entry("slack__search", always_load=True)]
BOTH = catalog(github=GITHUB, slack=SLACK)


@pytest.mark.parametrize(
    ("client", "era", "observed", "surface"),
    [
        ("gemini-cli-mcp-client", "handshake", None, "promote"),
        ("gemini-cli-mcp-client", "handshake", True, "promote"),
        ("gemini-cli-mcp-client", "handshake", False, "hybrid"),
        ("gemini-cli-mcp-client", "modern", None, "relay"),
        ("codex-mcp-client", "handshake", None, "relay"),
        ("copilot-cli", "handshake", None, "relay"),
        ("inspector-cli", "handshake", None, "relay"),
        ("mcp", "handshake", None, "relay"),
        ("codex-mcp-client", "handshake", True, "relay"),
        ("claude-code", "handshake", True, "relay"),
        ("made-up", "handshake", None, "hybrid"),
        ("made-up", "handshake", True, "hybrid"),
        ("made-up", "handshake", False, "relay"),
        ("made-up", "modern", True, "relay"),
    ],
)
def test_the_surface_follows_from_era_table_and_observation(
    client: str, era: Era, observed: bool | None, surface: Surface
):
    assert explain_surface("auto", era, profile(client, {}), observed).surface == surface


@pytest.mark.parametrize("surface", SURFACES)
def test_a_pinned_surface_is_used_whatever_is_known_of_the_client(surface: Surface):
    assert (
        explain_surface(surface, "handshake", profile("codex-mcp-client", {}), False).surface
        == surface
    )


def test_a_surface_pinned_for_one_client_comes_before_the_general_one():
    pinned = profile("opencode", {"opencode": "relay"})

    assert explain_surface("promote", "handshake", pinned, None).surface == "relay"
    assert explain_surface("promote", "handshake", UNKNOWN, None).surface == "promote"


def test_one_client_can_be_given_back_to_the_automatic_choice():
    automatic = profile("opencode", {"opencode": "auto"})

    assert explain_surface("relay", "handshake", automatic, None).surface == "promote"


@pytest.mark.parametrize("surface", ["promote", "hybrid"])
def test_a_growing_list_is_never_served_in_the_modern_era(surface: SurfaceChoice):
    choice = explain_surface(surface, "modern", UNKNOWN, None)

    assert choice.surface == "relay"
    assert surface in choice.why


def test_the_choice_says_what_it_is_based_on():
    assert "lab" in explain_surface("auto", "handshake", profile("opencode", {}), None).why
    assert "not in the table" in explain_surface("auto", "handshake", UNKNOWN, None).why


def test_the_list_is_meta_tools_then_always_load_then_loaded_in_the_order_of_loading():
    listing = shown(BOTH, "promote", "slack__send", "github__issue")

    assert names(listing) == [
        "ToolSearch",
        "CallTool",
        "github__pinned",
        "slack__search",
        "slack__send",
        "github__issue",
    ]


def test_relay_does_not_show_what_searches_have_found():
    before = shown(BOTH, "relay")
    after = shown(BOTH, "relay", "slack__send", "github__issue")

    assert json.dumps(before) == json.dumps(after)
    assert names(before) == ["ToolSearch", "CallTool", "github__pinned", "slack__search"]


def test_full_shows_every_tool_in_configuration_order_without_meta_tools():
    assert names(shown(BOTH, "full")) == [each.name for each in GITHUB + SLACK]


@pytest.mark.parametrize("surface", SURFACES)
def test_with_tool_search_switched_off_nothing_is_hidden(surface: Surface):
    assert names(shown(BOTH, surface, searching=False)) == [each.name for each in GITHUB + SLACK]


def test_with_nothing_to_search_and_nothing_pending_there_is_no_search():
    ready = catalog(slack=[SLACK[1]])

    assert names(shown(ready, "hybrid")) == ["slack__search"]
    assert names(shown(catalog(), "hybrid")) == []


@pytest.mark.parametrize("surface", SURFACES)
def test_with_servers_pending_there_is_a_search_even_if_nothing_is_known_yet(surface: Surface):
    assert names(shown(catalog(slack=Pending()), surface)) == ["ToolSearch", "CallTool"]


def test_a_failed_server_keeps_the_search_since_it_alone_can_say_why():
    assert names(shown(catalog(slack=Failed("exit status 1")), "relay")) == [
        "ToolSearch",
        "CallTool",
    ]


def test_withheld_tools_keep_the_search_since_it_alone_can_say_why():
    withheld = Ready(listed=(entry("slack__send"),))

    assert names(shown(catalog(slack=withheld), "relay")) == ["ToolSearch", "CallTool"]


def test_loaded_tools_of_a_lost_server_leave_the_list_and_come_back_with_it():
    lost = BOTH.updated(ServerName("slack"), Pending("connection lost"))
    loaded = ("slack__send", "github__issue")

    assert names(shown(lost, "promote", *loaded))[-2:] == ["github__pinned", "github__issue"]
    back = lost.updated(ServerName("slack"), Ready(tuple(SLACK)))
    assert shown(back, "promote", *loaded) == shown(BOTH, "promote", *loaded)


def test_a_shown_tool_is_as_its_server_sent_it_but_for_its_name_and_one_mark():
    raw: dict[str, Any] = {"x-odd": [1], "_meta": {"theirs": 1, ALWAYS_LOAD: False}}
    tool = entry("slack__search", always_load=True, **raw)

    assert definition(tool, keep=True) == {
        **tool.tool,
        "name": "slack__search",
        "_meta": {"theirs": 1, ALWAYS_LOAD: True},
    }
    assert definition(tool, keep=False) == {**tool.tool, "name": "slack__search"}
    assert tool.tool["name"] == "search"


def test_a_wish_that_is_not_granted_to_a_server_does_not_reach_the_client():
    wishing = entry("slack__search", _meta={"theirs": 1, ALWAYS_LOAD: True})

    assert definition(wishing, keep=False)["_meta"] == {"theirs": 1}


def test_always_load_and_loaded_tools_carry_the_mark_and_merely_listed_ones_do_not():
    promoted = {tool["name"]: tool for tool in shown(BOTH, "promote", "slack__send")}
    listed = {tool["name"]: tool for tool in shown(BOTH, "full")}

    assert promoted["slack__send"]["_meta"] == {ALWAYS_LOAD: True}
    assert listed["slack__search"]["_meta"] == {ALWAYS_LOAD: True}
    assert "_meta" not in listed["slack__send"]


def test_a_meta_field_that_is_no_object_is_replaced():
    odd = definition(entry("a__b", _meta="odd"), keep=True)

    assert odd["_meta"] == {ALWAYS_LOAD: True}


TOOL_NAMES = [f"{server}__{tool}" for server in "abc" for tool in "xyz"]
STATES = st.one_of(
    st.just(Pending()),
    st.just(Failed("gone")),
    st.lists(st.tuples(st.sampled_from(TOOL_NAMES), st.booleans()), max_size=6).map(
        lambda tools: Ready(tuple(entry(name, always_load=always) for name, always in tools))
    ),
)
CATALOGS = st.lists(STATES, max_size=4).map(
    lambda states: Catalog({ServerName(f"s{index}"): state for index, state in enumerate(states)})
)


@given(CATALOGS, st.sampled_from(SURFACES), st.lists(st.sampled_from(TOOL_NAMES)), st.booleans())
def test_a_list_has_no_duplicates_nothing_unknown_and_is_the_same_when_asked_again(
    of: Catalog, surface: Surface, loaded: list[str], searching: bool
):
    listing = shown(of, surface, *loaded, searching=searching)
    meta = {tool["name"] for tool in META}

    assert len(set(names(listing))) == len(listing)
    assert set(names(listing)) - meta <= set(of.entries)
    assert listing == shown(of, surface, *loaded, searching=searching)
    hidden = set(of.entries) - set(names(listing))
    assert not hidden or meta <= set(names(listing))


@given(CATALOGS, st.lists(st.sampled_from(TOOL_NAMES)), st.sampled_from(TOOL_NAMES))
def test_loading_one_more_tool_only_appends(of: Catalog, loaded: list[str], more: str):
    before = shown(of, "promote", *loaded)
    after = shown(of, "promote", *loaded, more)

    assert after[: len(before)] == before
    assert len(after) <= len(before) + 1


def test_a_definition_costs_a_token_for_two_and_a_half_characters():
    tool = entry("abc__de", description="x" * 16, inputSchema={"a": 1})

    assert approximate_tokens(tool) == (7 + 16 + len('{"a":1}')) / 2.5 == 12
    assert approximate_tokens(entry("abc__def", description="x" * 16, inputSchema={"a": 1})) == 13


def test_odd_definitions_can_be_counted():
    nested = MappingProxyType({"properties": MappingProxyType({"é": True})})

    assert approximate_tokens(entry("a__b", description=7, inputSchema=["odd"])) == 3
    assert approximate_tokens(entry("a__b", description=None, inputSchema=nested)) == 12


def counting(mode: str, window: int, *tools: ToolEntry) -> Deferral:
    start = Deferral.starting(ToolSearchMode.parse(mode), window)
    return start.updated(catalog(a=list(tools)))


def costing(characters: int, name: str = "a__b") -> ToolEntry:
    return entry(name, description="x" * (characters - len(name) - 2), inputSchema={})


def test_exactly_the_threshold_is_shown_and_one_character_more_is_deferred():
    exact = counting("auto:10", 1_000, costing(250))

    assert (exact.tokens, exact.threshold) == (100, 100)
    assert not exact.deferring
    assert counting("auto:10", 1_000, costing(251)).deferring


def test_the_threshold_is_rounded_down():
    assert counting("auto:10", 1_009, costing(250)).threshold == 100
    assert counting("auto:10", 1_009, costing(251)).deferring


@pytest.mark.parametrize("mode", ["true", "auto:0"])
def test_always_defers_even_an_empty_catalog(mode: str):
    deferral = counting(mode, 1_000)

    assert deferral.deferring
    assert "toolSearch: true" in deferral.why


@pytest.mark.parametrize("mode", ["false", "auto:100"])
def test_never_defers_even_what_no_window_could_hold(mode: str):
    assert not counting(mode, 1_000, costing(9_999)).deferring


def test_always_load_tools_do_not_count_towards_the_threshold():
    big = entry("a__b", description="x" * 9_999, always_load=True)

    assert counting("auto", 1_000, big).tokens == 0


def test_a_catalog_that_crosses_the_threshold_flips_once_and_not_back():
    below = counting("auto:10", 1_000, costing(250))
    above = below.updated(catalog(a=[costing(250), costing(9, "a__c")]))
    smaller = above.updated(catalog(a=Pending("connection lost")))

    assert [each.deferring for each in (below, above, smaller)] == [False, True, True]
    assert smaller.tokens == 0
    assert "have exceeded 10 %" in smaller.why


def test_an_entry_is_counted_once_and_a_changed_one_again():
    tool = costing(100)
    first = counting("auto", 1_000, tool)
    again = first.updated(catalog(a=[tool, costing(50, "a__c")]))
    changed = again.updated(catalog(a=[costing(20), costing(50, "a__c")]))

    assert [each.tokens for each in (first, again, changed)] == [40, 60, 28]


@pytest.mark.parametrize(
    ("mode", "setting", "surface", "searching"),
    [
        ("true", "auto", "hybrid", True),
        ("true", "relay", "relay", True),
        ("true", "full", "full", False),
        ("false", "auto", "full", False),
        ("auto", "auto", "full", True),
    ],
)
def test_mode_and_setting_together_decide_the_exposure(
    mode: str, setting: SurfaceChoice, surface: Surface, searching: bool
):
    exposure = expose(counting(mode, 1_000), setting, "handshake", UNKNOWN, None)

    assert (exposure.surface, exposure.searching) == (surface, searching)
    assert exposure.why


@pytest.mark.parametrize(
    ("listed", "relaying", "way"),
    [
        (True, True, Way()),
        (True, False, Way()),
        (False, True, Way("CallTool")),
        (False, False, Way(listed=False)),
    ],
)
def test_a_found_tool_is_called_the_way_this_client_can(listed: bool, relaying: bool, way: Way):
    assert way_to_call(entry("a__b"), listed=listed, relaying=relaying) == way


def test_a_tool_trusted_to_only_read_is_called_through_the_read_only_way():
    tool = ToolEntry(ToolName("a__b"), ServerName("a"), {"name": "b"}, read_only=True)

    assert way_to_call(tool, listed=False, relaying=True) == Way("CallReadOnlyTool")


def test_only_a_person_who_pins_promote_leaves_a_client_without_call_tool():
    always = counting("true", 1_000)

    for known in (UNKNOWN, *known_clients().values()):
        for era in ("handshake", "modern"):
            for observed in (None, True, False):
                assert expose(always, "auto", era, known, observed).relaying
                assert expose(always, "hybrid", era, known, observed).relaying
    assert not expose(always, "promote", "handshake", UNKNOWN, None).relaying
    assert expose(always, "promote", "modern", UNKNOWN, None).relaying
    pinned = profile("opencode", {"opencode": "promote"})
    assert not expose(always, "auto", "handshake", pinned, None).relaying


def test_a_list_may_be_kept_only_once_no_server_is_pending():
    assert time_to_live(catalog(a=Pending(), b=[])) == 0
    assert 0 < time_to_live(catalog(a=Failed("gone"), b=[])) <= 2_000
