"""What a search says of tools that are not as they were approved."""

from dataclasses import replace

import pytest

from aggregator.catalog import Catalog, Ready, ToolEntry
from aggregator.catalog.lock import Drift, Kind
from aggregator.names import Lookup, ServerName, ToolName
from aggregator.search.index import Index
from aggregator.toolsearch import parse_search
from aggregator.toolsearch.answer import tell
from aggregator.toolsearch.find import search
from aggregator.toolsearch.view import View
from tests.toolsearch.views import ask, ready, tool, view_of
from tests.work import calls

NOTES = ServerName("notes")
ADD, LIST = (
    ToolEntry(ToolName(f"notes__{name}"), NOTES, {"name": name, "description": "Does it."})
    for name in ("add", "list")
)


def answered(state: Ready, query: str) -> str:
    catalog = Catalog({NOTES: state})
    index = Index([NOTES])
    for _ in index.stage(NOTES, state.entries, ""):
        pass
    triples = [(each.name, NOTES, each.own_name) for each in state.whole]
    view = View(catalog=catalog, lookup=Lookup.of(triples), index=index)
    return tell(search(parse_search({"query": query}, 5), view), view).text


@pytest.mark.parametrize(
    ("kind", "words"),
    [(Kind.DESCRIPTION, "changed since it was approved"), (Kind.NEW, "not approved yet")],
)
def test_a_tool_that_differs_is_marked(kind: Kind, words: str) -> None:
    state = Ready((ADD, LIST), drift=(Drift("add", kind, ("differs",)),))

    assert f"## notes__add (server notes, {words})" in answered(state, "select:notes__add")
    assert words not in answered(state, "select:notes__list")


@pytest.mark.parametrize("query", ["select:notes__add", "select:Notes.add", "notes__add"])
def test_a_tool_that_is_withheld_is_told_of_and_not_shown(query: str) -> None:
    drift = Drift("add", Kind.DESCRIPTION, ("has another description",))
    state = Ready((LIST,), drift=(drift,), listed=(ADD, LIST))

    text = answered(state, query)

    assert "`notes__add` is withheld" in text
    assert "## notes__add" not in text
    assert "1 withheld until approved" in answered(state, "")


def test_a_search_in_a_server_tells_how_much_of_it_is_withheld() -> None:
    drift = Drift("add", Kind.DESCRIPTION, ("has another description",))
    some = Ready((LIST,), drift=(drift,), listed=(ADD, LIST))
    words = "1 tool of notes withheld, not being as approved"

    assert words in answered(some, "nothing like it")
    assert words not in answered(some, "list")
    assert "2 tools of notes withheld" in answered(
        Ready(drift=(drift,), listed=(ADD, LIST)), "server:notes"
    )


def test_an_overview_tells_of_what_differs_and_is_offered() -> None:
    drift = Drift("add", Kind.DESCRIPTION, ("has another description",))

    assert "1 changed since approved" in answered(Ready((ADD, LIST), drift=(drift,)), "")


def test_of_a_server_that_nobody_has_approved_it_is_not_said_that_it_changed() -> None:
    drift = (Drift("add", Kind.NEW, ("is new",)), Drift("", Kind.INSTRUCTIONS, ("has some",)))
    state = Ready((ADD,), drift=drift, is_new=True, instructions="Add first.")

    texts = answered(state, ""), answered(state, "server:notes")

    assert "(1 tool; not approved yet)" in texts[0]
    assert "notes says how it is used, which nobody has approved yet:" in texts[1]
    assert all("changed" not in each for each in texts)


def test_whoever_may_approve_is_told_the_whole_command() -> None:
    drift = Drift("add", Kind.DESCRIPTION, ("has another description",))
    catalog = Catalog({NOTES: Ready(drift=(drift,), listed=(ADD,))})
    view = View(
        catalog=catalog,
        lookup=Lookup.of(()),
        index=Index([NOTES]),
        approving=lambda name: f"aggregator approve {name} --config here.yaml",
    )

    text = tell(search(parse_search({"query": "server:notes"}, 5), view), view).text

    assert "with `aggregator approve notes --config here.yaml`." in text


def test_a_search_is_no_more_work_where_thousands_differ_or_are_withheld() -> None:
    definitions = [tool(f"t{number}", "Adds a note to others") for number in range(2_000)]
    whole = ready("notes", *definitions, tool("shown", "Finds a letter"))
    drift = tuple(Drift(each.own_name, Kind.NEW, ("is new",)) for each in whole.entries[:-1])
    held = replace(whole, entries=whole.entries[-1:], listed=whole.entries, drift=drift)

    def cost(state: Ready) -> int:
        view = view_of({"notes": state})
        ask(view, "find a letter")
        return calls(lambda: ask(view, "find a letter"))

    approved = cost(whole)
    assert cost(replace(whole, drift=drift)) < approved + 50
    assert cost(held) < approved + 50
