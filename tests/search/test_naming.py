"""A query that is the name of a tool, but for a slip, finds that tool first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.names import ServerName
from aggregator.search.name_index import NameIndex
from aggregator.search.query import Keywords, parse_query
from tests.search.tools import entry, index_of, search

TOOLS = (
    entry("tavus__create_replica", "Create a replica."),
    entry("netlify__get_status", "Tell how the site is."),
    entry("maths__add", "Add two numbers."),
    entry("ids__get_card_by_id", "Look a card up."),
    entry("ids__get_card_image", "Show a picture of a card."),
    entry("trello__create_card", "Make a card."),
    entry("cars__get_brands", "List brands of a car."),
    entry("notes__add_note", "Create a note with a text."),
    entry("graphs__create_node", "Put a node into a graph."),
    entry("browser__playwright_navigate", "Go to a page."),
    entry("playwright__navigate", "Go to a page in a browser."),
    entry("expressions__eval", "Compute something."),
)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        # Of two words that may be meant, the one that makes a name of the whole.
        ("get tatus", "netlify__get_status"),
        # The slip is a word of other tools, but nobody has all the words as written.
        ("create car", "trello__create_card"),
        # Short words, beside others that are right; short names.
        ("card by get di", "ids__get_card_by_id"),
        ("ad", "maths__add"),
        ("eal", "expressions__eval"),
        # A name of its own rather than one that needs the name of the server.
        ("navigatePlayrwight", "browser__playwright_navigate"),
    ],
)
def test_a_slip_is_repaired_so_that_the_query_is_a_name(query: str, wanted: str):
    assert search(index_of(*TOOLS), query)[0] == wanted


def test_a_word_as_it_is_meant_is_no_slip():
    assert search(index_of(*TOOLS), "create note")[0] == "notes__add_note"


def test_who_is_called_by_name_is_explained():
    index = index_of(*TOOLS)
    query = parse_query("eal")
    assert isinstance(query, Keywords)
    (hit,) = index.rank(query, 1)
    (why,) = index.explain(query, hit.entry)
    assert (why.word, why.term, why.field, why.score) == ("eal", "eval", "called", 0.0)


def test_a_long_request_is_no_name():
    name = [f"word{letter}" for letter in "abcdefghijklmnop"]
    index = NameIndex()
    index.add(1, name)
    assert not [*index.slipped(["wrodz", *name[1:]], ["wrodz"])]


def test_names_of_a_server_that_left_are_forgotten():
    index = index_of(*TOOLS, entry("other__get_status"))
    index.remove(ServerName("netlify"))
    assert search(index, "get tatus")[0] == "other__get_status"
    index.remove(ServerName("other"))
    assert "other__get_status" not in search(index, "get tatus")


@given(st.dictionaries(st.integers(0, 9), st.sets(st.sampled_from("abcdef"), min_size=1)))
def test_a_roll_is_empty_after_all_names_have_left(named: dict[int, set[str]]):
    index = NameIndex()
    for tool, name in named.items():
        index.add(tool, name)
    for tool, name in named.items():
        index.discard(tool, name)
    assert vars(index) == vars(NameIndex())
