"""Why a tool was found, told by the search that found it."""

from array import array
from dataclasses import replace
from typing import Any

from aggregator.search.nearness import Nearness, Roster
from aggregator.search.query import Keywords
from aggregator.toolsearch import parse_search
from aggregator.toolsearch.view import View
from tests.toolsearch.views import EMAIL, GITHUB, SLACK, answer, ready, tool, view_of

VIEW = view_of({"slack": SLACK, "github": GITHUB, "email": EMAIL})


def explained(query: str, view: View = VIEW, **rest: Any) -> list[dict[str, Any]]:
    request = parse_search({"query": query, **rest}, explain=True)
    told = answer(request, view).meta
    assert [each["name"] for each in told["explained"]] in (told["matches"], [])
    return told["explained"]


def test_nothing_is_explained_unless_it_is_asked():
    assert "explained" not in answer(parse_search("send message"), VIEW).meta


def test_each_tool_is_told_with_its_score_and_the_words_it_was_found_by():
    first, second = explained("send message", max_results=2)

    assert first["name"] == "slack__send_message"
    assert first["score"] > second["score"]
    assert first["meaning"] is None
    assert {"word": "send", "term": "send", "field": "name"} in [
        {key: each[key] for key in ("word", "term", "field")} for each in first["why"]
    ]
    assert abs(sum(each["score"] for each in first["why"]) - first["score"]) < 0.05


def test_what_is_skipped_is_not_explained():
    best, *rest = explained("send message", max_results=3)

    assert explained("send message", max_results=2, offset=1) == rest[:2]
    assert best not in rest


def test_the_part_of_meaning_is_told_where_it_counts():
    entries = tuple(VIEW.catalog.entries.values())
    near = Nearness(Roster(entries), array("h", [10, 5, 5, 90]), 100)
    query = parse_search("qwxz").queries[0]
    assert isinstance(query, Keywords)

    first = explained("qwxz", replace(VIEW, near={query: near}))[0]

    assert first["name"] == "email__send_email"
    assert first["meaning"] == first["score"] > 0


def test_a_name_that_is_looked_up_is_not_ranked():
    assert explained("select:create_issue") == []
    assert explained("github__create_issue") == []
    assert explained("") == []


def test_a_tool_that_only_its_name_has_found_has_no_score():
    ping = tool("ping", "Knock.")
    view = view_of({"one": ready("one", ping), "two": ready("two", ping)})

    found = explained("ping", replace(view, index=VIEW.index))

    assert [(each["name"], each["score"], each["why"]) for each in found] == [
        ("one__ping", None, []),
        ("two__ping", None, []),
    ]
