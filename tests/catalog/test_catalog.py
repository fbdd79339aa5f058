"""The catalog: a value that is replaced, in configuration order, whatever the order of reports."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from aggregator.basics.json import as_object
from aggregator.catalog import Catalog, Failed, Pending, Ready, ServerState, ToolEntry
from aggregator.names import ServerName, ToolName

SERVERS = [ServerName(name) for name in ("notes", "files", "board")]


def entry(server: ServerName, tool: str) -> ToolEntry:
    return ToolEntry(ToolName(f"{server}__{tool}"), server, {"name": tool})


def states(server: ServerName) -> st.SearchStrategy[ServerState]:
    tools = st.lists(st.sampled_from(["a", "b", "c", "d"]), unique=True)
    listings = tools.map(lambda names: Ready(tuple(entry(server, name) for name in names)))
    return st.one_of(st.just(Pending()), st.just(Failed("no")), listings)


reports = st.lists(
    st.sampled_from(SERVERS).flatmap(lambda name: st.tuples(st.just(name), states(name)))
)


@given(reports)
def test_entries_are_those_of_each_servers_last_ready_state(
    given_reports: list[tuple[ServerName, ServerState]],
) -> None:
    catalog = Catalog.starting(SERVERS)
    for server, state in given_reports:
        catalog = catalog.updated(server, state)

    last = dict(given_reports)
    expected = [
        each.name
        for server in SERVERS
        if isinstance(state := last.get(server), Ready)
        for each in state.entries
    ]
    assert list(catalog.entries) == expected
    assert list(catalog.servers) == SERVERS
    assert set(catalog.pending) == {
        server for server in SERVERS if isinstance(last.get(server, Pending()), Pending)
    }
    assert set(catalog.failed) == {
        server for server in SERVERS if isinstance(last.get(server), Failed)
    }


def test_a_catalog_is_not_changed_by_what_comes_after_it() -> None:
    before = Catalog.starting(SERVERS)

    after = before.updated(SERVERS[0], Ready((entry(SERVERS[0], "a"),)))

    assert dict(before.entries) == {}
    assert list(after.entries) == ["notes__a"]


def test_the_first_of_two_servers_that_claim_a_name_keeps_it() -> None:
    same = ToolName("search")
    first, second = (ToolEntry(same, server, {"name": "search"}) for server in SERVERS[:2])

    catalog = Catalog.starting(SERVERS).updated(SERVERS[1], Ready((second,)))
    catalog = catalog.updated(SERVERS[0], Ready((first,)))

    assert catalog.entries[same] is first


def test_what_a_tool_does_not_say_is_empty() -> None:
    tool = ToolEntry(
        ToolName("a__b"), SERVERS[0], {"name": "b", "description": 5, "inputSchema": 7}
    )

    assert (tool.description, tool.input_schema, tool.own_name) == ("", {}, "b")
    assert as_object(None) == {}


def bare(server: ServerName, *tools: str) -> tuple[ToolEntry, ...]:
    return tuple(ToolEntry(ToolName(tool), server, {"name": tool}) for tool in tools)


def test_the_name_of_a_tool_that_is_withheld_leads_to_no_other() -> None:
    notes, files, board = SERVERS
    kept = bare(notes, "list", "read")
    catalog = Catalog(
        {
            board: Ready(bare(board, "draw")),
            notes: Ready(kept[:1], listed=kept),
            files: Ready(bare(files, "read", "open")),
        }
    )

    assert {name: each.server for name, each in catalog.entries.items()} == {
        "draw": board,
        "list": notes,
        "open": files,
    }
    assert list(catalog.withheld.values()) == [kept[1]]
    assert catalog.unreachable(files) == {"read": notes}
    assert catalog.unreachable(notes) == {}


def test_what_another_has_before_is_not_withheld_by_who_comes_after() -> None:
    notes, files, _ = SERVERS
    catalog = Catalog({notes: Ready(bare(notes, "read")), files: Ready(listed=bare(files, "read"))})

    assert {name: each.server for name, each in catalog.entries.items()} == {"read": notes}
    assert not catalog.withheld


def test_what_is_offered_is_what_is_said_of_it_now() -> None:
    notes = SERVERS[0]
    listed = (replace(entry(notes, "a"), read_only=True), entry(notes, "b"))
    offered = replace(listed[0], read_only=False)

    catalog = Catalog({notes: Ready((offered,), listed=listed)})
    assert catalog.entries[ToolName("notes__a")] is offered
