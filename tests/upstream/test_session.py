from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.catalog import Catalog, Pending, Ready, ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.toolsearch import Changes
from aggregator.upstream.session import Loading, Session, digest


def names(text: str) -> tuple[ToolName, ...]:
    return tuple(ToolName(name) for name in text.split())


def entry(name: str, **tool: Any) -> ToolEntry:
    return ToolEntry(ToolName(name), ServerName("server"), {"name": name, **tool})


def ready(text: str) -> Ready:
    return Ready(tuple(entry(name) for name in text.split()))


GITHUB, SLACK = ServerName("github"), ServerName("slack")


def test_the_loaded_set_grows_in_the_order_of_loading():
    session = Session()

    assert session.load(names("b a")) == Loading(added=names("b a"))
    assert session.load(names("c a c")) == Loading(added=names("c"))
    assert session.loaded == names("b a c")


def test_finding_only_what_is_loaded_changes_nothing():
    session = Session()
    session.load(names("a b"))

    assert not session.load(names("b a"))
    assert session.loaded == names("a b")


def test_two_sessions_do_not_mix():
    one, other = Session(), Session()
    one.load(names("a"))
    one.saw(entry("a"))
    one.listed(["a"])

    assert other.loaded == ()
    assert other.seen(entry("a")) == "never"
    assert not other.shows("a", relists=None)


def test_over_the_cap_the_oldest_unused_leave():
    session = Session(max_loaded=3)
    session.load(names("a b c"))
    session.used(ToolName("a"))

    assert session.load(names("d")) == Loading(added=names("d"), dropped=names("b"))
    assert session.loaded == names("a c d")


def test_when_all_were_used_the_longest_unused_leaves():
    session = Session(max_loaded=2)
    session.load(names("a b"))
    for name in names("a b a"):
        session.used(name)

    assert session.load(names("c")).dropped == names("b")


def test_room_is_made_in_one_batch_so_that_the_next_searches_drop_nothing():
    session = Session(max_loaded=8)
    session.load(names("a b c d e f g h"))

    assert session.load(names("i")).dropped == names("a b")
    assert not session.load(names("j")).dropped
    assert session.load(names("k")).dropped == names("c d")


def test_what_a_search_has_just_found_is_not_dropped_by_it():
    session = Session(max_loaded=3)
    session.load(names("a b c"))

    session.load(names("a d e"))

    assert session.loaded == names("a d e")


def test_a_search_that_finds_more_than_the_cap_loads_the_best():
    session = Session(max_loaded=2)

    assert session.load(names("a b c")) == Loading(added=names("a b"))


@given(
    st.integers(min_value=1, max_value=12),
    st.lists(st.lists(st.sampled_from(names("a b c d e f g h i j k l m n")), max_size=6)),
)
def test_the_set_never_exceeds_its_cap_and_every_drop_is_reported(
    cap: int, searches: list[list[ToolName]]
):
    session = Session(max_loaded=cap)
    for found in searches:
        before = session.loaded
        loading = session.load(found)

        kept = tuple(name for name in before if name not in loading.dropped)
        assert session.loaded == kept + loading.added
        assert len(session.loaded) <= cap
        assert set(list(dict.fromkeys(found))[:cap]) <= set(session.loaded)


def test_using_a_tool_that_is_not_loaded_loads_nothing():
    session = Session()
    session.used(ToolName("a"))

    assert session.loaded == ()


def test_an_exported_set_is_restored_in_its_order():
    first, second = Session(), Session()
    first.load(names("b a"))

    second.restore(first.export())

    assert second.loaded == names("b a")
    assert first.export() == ["b", "a"]


@pytest.mark.parametrize("data", [None, 7, "abc", {"a": 1}])
def test_what_is_no_exported_set_is_ignored(data: object):
    session = Session()
    session.restore(data)

    assert session.loaded == ()


def test_odd_items_of_an_exported_set_are_left_out():
    session = Session()
    session.restore(["a", 1, None, ["b"], "c"])

    assert session.loaded == names("a c")


def test_a_definition_is_seen_once_it_was_sent_and_changed_when_it_differs():
    session = Session()
    tool = entry("a", inputSchema={"type": "object", "required": ["x"]})

    assert session.seen(tool) == "never"
    session.saw(tool)
    assert session.seen(tool) == "same"
    assert session.seen(entry("a", inputSchema={"required": ["x"], "type": "object"})) == "same"
    assert session.seen(entry("a", inputSchema={"type": "object"})) == "changed"


def test_a_changed_definition_is_seen_once_it_was_sent_again():
    session = Session()
    session.saw(entry("a", description="old"))
    session.saw(entry("a", description="new"))

    assert session.seen(entry("a", description="new")) == "same"
    assert session.seen(entry("a", description="old")) == "changed"


def test_true_is_not_one_in_a_definition():
    assert digest({"default": True}) != digest({"default": 1})


def test_the_first_search_has_no_changes_to_tell():
    assert Session().changes(Catalog({GITHUB: ready("issue")})) is None


def test_changes_since_the_last_search_are_told_once():
    session = Session()
    session.changes(Catalog({GITHUB: ready("issue star"), SLACK: Pending()}))
    later = Catalog({GITHUB: ready("star fork"), SLACK: ready("send")})

    assert session.changes(later) == Changes(
        tools_added=names("fork send"), tools_removed=names("issue"), servers_added=(SLACK,)
    )
    assert session.changes(later) is None


def test_a_lost_server_is_told_with_its_tools():
    session = Session()
    session.changes(Catalog({SLACK: ready("send")}))

    assert session.changes(Catalog({SLACK: Pending("connection lost")})) == Changes(
        tools_removed=names("send"), servers_removed=(SLACK,)
    )


def test_what_came_back_before_the_next_search_is_not_worth_a_word():
    session = Session()
    before = Catalog({SLACK: ready("send")})
    session.changes(before)
    lost = before.updated(SLACK, Pending("connection lost"))

    assert session.changes(lost.updated(SLACK, ready("send"))) is None


def test_listing_again_before_the_answer_is_noticed():
    session = Session()
    session.listed(["ToolSearch"])
    assert session.observed_relist is None

    session.announced()
    assert not session.relisted
    session.listed(["ToolSearch", "a"])

    assert session.relisted
    assert session.observed_relist is True
    assert session.shows("a", relists=None)


def test_listing_again_after_the_answer_is_noticed_too():
    session = Session()
    session.announced()
    session.answered()
    assert session.observed_relist is None

    session.listed(["a"])
    session.called()

    assert session.observed_relist is True


def test_the_next_call_without_a_new_list_shows_that_the_client_does_not_list_again():
    session = Session()
    session.announced()
    session.called()
    assert session.observed_relist is None, "a call made at the same time proves nothing"

    session.answered()
    session.called()

    assert session.observed_relist is False


def test_a_client_that_listed_again_once_is_not_doubted_for_one_miss():
    session = Session(observed_relist=True)
    session.announced()
    session.answered()
    session.called()

    assert session.observed_relist is True


def test_an_answer_without_a_promotion_teaches_nothing():
    session = Session()
    session.answered()
    session.called()

    assert session.relisted
    assert session.observed_relist is None


def test_a_client_that_ignores_late_tools_works_with_its_first_list():
    session = Session()
    session.listed(["ToolSearch", "early"])
    session.listed(["ToolSearch", "late"])

    assert session.shows("early", relists=False)
    assert not session.shows("late", relists=False)
    assert session.shows("late", relists=True)
    assert not session.shows("early", relists=None)


def test_before_any_list_nothing_is_shown():
    assert not Session().shows("a", relists=False)
