from dataclasses import replace
from typing import Any

import pytest

from aggregator.catalog import Changes, Failed, Pending, Ready, ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.toolsearch import parse_search
from aggregator.toolsearch.answer import tell
from aggregator.toolsearch.find import search
from aggregator.toolsearch.wording import FRAME
from tests.toolsearch.views import EMAIL, GITHUB, SLACK, ask, names, ready, text, tool, view_of

ALL: dict[str, Any] = {"slack": SLACK, "github": GITHUB, "email": EMAIL}


def test_keywords_find_the_best_tool_first():
    found = ask(view_of(ALL), "slack send")

    assert names(found)[0] == "slack__send_message"
    assert set(names(found)) == {
        "slack__send_message",
        "slack__list_channels",
        "email__send_email",
    }
    assert found.text.startswith('3 tools for "slack send", best first.\n')


def test_the_same_tools_of_other_servers_are_named():
    twice = {"work": ready("work", *_TOOLS), "home": ready("home", *_TOOLS), **ALL}
    found = ask(view_of(twice), "make a note", max_results=1)

    assert names(found) == ["work__take_note"]
    assert "The same tools of other servers: home__take_note.\n" in found.text
    assert found.meta["copies"] == {"work__take_note": ("home__take_note",)}


def test_a_tool_that_is_found_itself_is_no_copy_of_another():
    twice = {"work": ready("work", *_TOOLS), "home": ready("home", *_TOOLS)}
    found = ask(view_of(twice), "make a note")

    assert set(names(found)) >= {"work__take_note", "home__take_note"}
    assert "other servers" not in found.text
    assert "copies" not in found.meta


def test_tools_that_only_share_a_name_are_no_copies():
    other = ready("home", tool("take_note", "Play a note on the piano."))
    found = ask(view_of({"work": ready("work", *_TOOLS), "home": other}), "write a note", limit=1)

    assert names(found) == ["work__take_note"]
    assert "other servers" not in found.text


_TOOLS = (tool("take_note", "Write a note."), tool("find_note", "Find a note that was written."))


def test_every_match_comes_with_its_definition():
    found = ask(view_of(ALL), "slack send")

    assert found.shown == found.matches
    assert "- channel (string, required)" in found.text


@pytest.mark.parametrize(
    "name",
    [
        "github__create_issue",
        "GitHub__Create_Issue",
        "mcp__github__create_issue",
        "mcp__us__github__create_issue",
        "github/create_issue",
        "create_issue",
    ],
)
@pytest.mark.parametrize("form", ["select:{}", "{}"])
def test_a_name_is_that_tool_however_it_is_written(form: str, name: str):
    assert names(ask(view_of(ALL), form.format(name))) == ["github__create_issue"]


def test_a_plain_word_is_searched_by_even_if_a_tool_is_called_so():
    view = view_of({"web": ready("web", tool("search"), tool("deep_search", "Search deeply."))})

    assert names(ask(view, "search")) == ["web__search", "web__deep_search"]


def test_selected_tools_come_in_the_order_they_were_asked_for():
    found = ask(view_of(ALL), "select:email__send_email,slack__list_channels", max_results=1)

    assert names(found) == ["email__send_email", "slack__list_channels"]
    assert "best first" not in found.text


def test_selecting_a_visible_tool_succeeds_and_says_so():
    view = view_of(ALL, visible=frozenset({ToolName("github__create_issue")}))

    found = ask(view, "select:github__create_issue")

    assert names(found) == ["github__create_issue"]
    assert "Already in your tool list: github__create_issue." in found.text
    assert found.meta["missing"] == []


def test_an_unknown_name_is_missing_with_its_nearest_names():
    found = ask(view_of(ALL), "select:github__create_isue,slack__send_message")

    assert names(found) == ["slack__send_message"]
    (missing,) = found.meta["missing"]
    assert missing["name"] == "github__create_isue"
    assert missing["nearest"][0] == "github__create_issue"
    said = 'There is no tool "github__create_isue". The closest is github__create_issue.'
    assert said in found.text


def test_a_name_that_several_servers_have_is_told_with_all_of_them():
    view = view_of({"a": ready("a", tool("run_it")), "b": ready("b", tool("run_it"))})

    found = ask(view, "select:run_it")

    assert found.matches == ()
    assert '"run_it" could be any of a__run_it, b__run_it.' in found.text
    assert names(ask(view, "run_it")) == ["a__run_it", "b__run_it"]


@pytest.mark.parametrize("query", ["server:slack", "slack__", "mcp__slack"])
def test_a_server_lists_its_tools(query: str):
    assert set(names(ask(view_of(ALL), query))) == {"slack__send_message", "slack__list_channels"}


@pytest.mark.parametrize("query", ["", "  ", "*", "select:", "select: ,", "server:"])
def test_an_empty_query_is_an_overview_of_servers(query: str):
    states = {**ALL, "jira": Pending("refused", 2.0, "retrying"), "wiki": Failed("no `TOKEN`")}
    view = view_of(states, descriptions={ServerName("github"): "Issues"}, now=7.4)

    found = ask(view, query)

    assert found.matches == ()
    assert found.text.startswith("5 servers, 4 tools. Search by what you need, or list the tools")
    assert found.text.split("\n")[1:] == [
        FRAME,
        "",
        "- slack (2 tools)",
        "- github (1 tool): Issues",
        "- email (1 tool)",
        "- jira (retrying for 5 s) | refused",
        "- wiki (failed) | no `TOKEN`",
        "",
        "slack__: send_message, list_channels",
        "github__: create_issue",
        "email__: send_email",
    ]
    started = ask(view_of({**states, "jira": Pending()}), query).text
    assert started.endswith('Some are not connected yet: ask with "wait": 10 to wait for them.')


def test_several_needs_are_answered_at_once_without_repeating_a_tool():
    found = ask(view_of(ALL), queries=["send message", "create issue", "select:send_message"])

    assert names(found)[:2] == ["slack__send_message", "github__create_issue"]
    assert len(set(names(found))) == len(names(found))
    assert found.text.count("## slack__send_message") == 1
    assert '1 tool for "create issue": github__create_issue.' in found.text


def test_of_several_needs_each_says_plainly_that_there_is_more():
    found = ask(view_of(ALL), queries=["send", "create issue"], max_results=1)
    best = names(found)[0]

    said = f'1 tool for "send": {best}. There are more: ask with "offset": 1.'
    assert said in found.text.splitlines()


def test_offset_goes_on_where_an_answer_ended():
    view = view_of({"many": ready("many", *(tool(f"get_thing_{n}") for n in range(12)))})

    first, second = ask(view, "thing"), ask(view, "thing", offset=8)

    assert '8 tools for "thing", best first. There are more: ask with "offset": 8.' in first.text
    assert not {*names(first)} & {*names(second)}
    assert '"offset"' not in second.text
    assert 'No more tools for "thing" after the first 12.' in ask(view, "thing", offset=12).text


@pytest.mark.parametrize("query", ["thing", "many__", "server:many"])
def test_who_asks_beyond_the_end_is_told_where_it_is(query: str):
    view = view_of({"many": ready("many", *(tool(f"get_thing_{n}") for n in range(12)))})

    told = ask(view, query, offset=40).text

    assert f'No more tools for "{query}": there are only 12.' in told


def test_where_nothing_matches_an_offset_changes_nothing():
    assert 'No tool matches "zzzz"' in ask(view_of(ALL), "zzzz", offset=40).text


def test_an_overview_names_tools_without_a_prefix_as_they_are():
    definitions = [tool("get_time"), tool("convert")]
    entries = (ToolEntry(ToolName(each["name"]), ServerName("time"), each) for each in definitions)
    view = view_of({"time": Ready(tuple(entries)), "slack": SLACK})

    lines = ask(view).text.splitlines()

    assert "get_time, convert" in lines
    assert "slack__: send_message, list_channels" in lines


def test_what_does_not_fit_in_full_comes_as_signature_then_as_name():
    big = {f"parameter{each}": text(description="word " * 30) for each in range(12)}
    tools = (tool(f"get_thing_{n}", "Get it. " * 30, **big) for n in range(50))
    view = view_of({"many": ready("many", *tools)})

    found = ask(view, "thing", max_results=50)

    assert len(found.matches) == 50
    assert 0 < len(found.shown) < 10
    assert found.shown == found.matches[: len(found.shown)]
    assert all(each.name in found.text for each in found.matches)
    assert "(parameter0?: string, parameter1?: string" in found.text
    assert "parameter11?: string)" in found.text
    assert f"- {found.matches[-1].name}\n" in found.text
    assert 'ask ToolSearch for "select:<name>"' in found.text
    assert 6000 < len(found.text) <= 8000


def test_the_first_five_are_defined_and_the_next_three_told_on_a_line_each():
    tools = (tool(f"get_thing_{n}", "Get it.", id=text(required=True)) for n in range(12))
    view = view_of({"many": ready("many", *tools)})

    found = ask(view, "thing")

    assert found.shown == found.matches[:5]
    assert [found.text.count(f"## {each.name} (") for each in found.matches] == [1] * 5 + [0] * 3
    lines = found.text.splitlines()
    assert all(f"- {each.name} | (id: string) Get it." in lines for each in found.matches[5:])
    assert "A tool on one line can be called as it is with CallTool" in found.text
    assert found.meta["matches"] == [each.name for each in found.matches]
    assert [each["name"] for each in found.meta["tools"]] == found.meta["matches"]
    referred = [each["tool_name"] for each in found.meta["tool_references"]]
    assert referred == found.meta["matches"][:5]


def test_who_asks_for_a_number_has_all_of_them_in_full():
    tools = (tool(f"get_thing_{n}", "Get it.") for n in range(12))
    view = view_of({"many": ready("many", *tools)})

    assert len(ask(view, "thing", max_results=12).shown) == 12
    assert len(ask(view, "thing", max_results=3).shown) == 3
    assert len(ask(view, "thing", max_results=8).shown) == 5
    assert len(ask(view, "select:" + ",".join(f"get_thing_{n}" for n in range(9))).shown) == 9


def test_large_definitions_leave_room_for_the_lines_of_the_others():
    big = {f"parameter{each}": text(description="word " * 30) for each in range(12)}
    tools = (tool(f"get_thing_{n}", "Get it. " * 90, **big) for n in range(12))
    view = view_of({"many": ready("many", *tools)})

    found = ask(view, "thing")

    assert len(found.matches) == 8
    assert found.shown == found.matches[: len(found.shown)]
    assert 3 <= len(found.shown) <= 5
    signed = [each for each in found.matches if f"- {each.name} | (parameter0?: " in found.text]
    assert (*found.shown, *signed) == found.matches
    assert len(found.text) <= 8000


def test_a_client_whose_model_cannot_relay_is_told_to_ask_for_the_others():
    tools = (tool(f"get_thing_{n}", "Get it.") for n in range(12))
    view = view_of({"many": ready("many", *tools)}, relaying=False)

    found = ask(view, "thing")

    assert "CallTool" not in found.text
    assert 'has none above, ask ToolSearch for "select:<name>"' in found.text


def test_a_signature_with_many_parameters_leaves_out_the_optional_ones_at_the_end():
    wide = {f"parameter{each}": text(description="word " * 90) for each in range(60)}
    tools = (tool(f"get_{n}", "", **wide, key=text(required=True)) for n in range(9))
    view = view_of({"many": ready("many", *tools)}, max_chars=4000)

    found = ask(view, "get", max_results=9)

    assert "(key: string, parameter0?: string" in found.text
    assert "..." in found.text


def test_servers_without_number_are_told_in_part():
    states = {f"server{each}": Pending() for each in range(900)}
    told = ask(view_of(states)).text

    assert len(told) <= 8000
    assert "- server0 (starting for 0 s)" in told
    assert "more lines)" in told


def test_a_selection_may_leave_out_what_was_shown_before():
    found = ask(view_of(ALL), "select:send_email,send_message", offset=1)

    assert names(found) == ["slack__send_message"]


def test_facts_for_programs_say_the_same():
    view = view_of(
        {**ALL, "jira": Pending(since=1.0), "wiki": Failed("no `TOKEN`")},
        visible=frozenset({ToolName("email__send_email")}),
        now=3.0,
    )

    found = ask(view, "select:create_issue")

    assert found.meta == {
        "matches": ["github__create_issue"],
        "tools": [
            {
                "name": "github__create_issue",
                "server": "github",
                "description": "Open an issue.",
                "inputSchema": GITHUB.entries[0].input_schema,
                "annotations": {},
                "call": "CallTool",
            }
        ],
        "missing": [],
        "total_deferred_tools": 3,
        "pending_mcp_servers": [
            {"name": "jira", "state": "starting", "reason": None, "seconds": 2}
        ],
        "failed_mcp_servers": [
            {"name": "wiki", "state": "failed", "reason": "no `TOKEN`", "seconds": 3}
        ],
        "tool_references": [{"type": "tool_reference", "tool_name": "github__create_issue"}],
    }


def test_the_tools_of_a_server_that_has_come_are_not_told_one_by_one():
    changes = Changes(
        tools_added=(ToolName("slack__send_message"), ToolName("github__create_issue")),
        servers_added=(ServerName("slack"),),
    )

    found = ask(view_of(ALL, changes=changes), "send")

    assert found.text.endswith(
        "Servers connected since your last search: slack.\n"
        "New tools since your last search: github__create_issue."
    )


def test_changes_since_the_last_search_are_told():
    assert "since your last search" not in ask(view_of(ALL, changes=Changes()), "send").text
    changes = Changes(
        tools_added=(ToolName("a__new"),),
        tools_removed=(ToolName("b__old"),),
        servers_added=(ServerName("a"),),
        servers_removed=(ServerName("b"),),
    )

    found = ask(view_of(ALL, changes=changes), "send")

    assert found.text.endswith(
        "Servers connected since your last search: a.\n"
        "Servers lost since your last search: b.\n"
        "New tools since your last search: a__new.\n"
        "Tools gone since your last search: b__old."
    )
    assert found.meta["changes"] == {
        "tools_added": ["a__new"],
        "tools_removed": ["b__old"],
        "servers_added": ["a"],
        "servers_removed": ["b"],
    }


def test_a_ranking_of_tools_that_are_gone_does_not_bring_them_back():
    view, smaller = view_of(ALL), view_of({"github": GITHUB})
    stale = replace(smaller, index=view.index)

    assert names(ask(stale, "send message")) == []
    assert names(ask(smaller, "send message")) == []


def test_how_to_call_is_decided_when_the_answer_is_told():
    found = search(parse_search("select:create_issue"), view_of(ALL))

    told = tell(found, view_of(ALL, listed=frozenset({"github__create_issue"})))

    assert found.matches == GITHUB.entries
    assert "Call: github__create_issue (it is in your tool list) | " in told.text


def test_what_could_not_be_used_of_the_arguments_is_told():
    assert "`max_results` was not a number" in ask(view_of(ALL), "send", max_results="x").text
