from sys import getrefcount
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.basics.json import JsonObject
from aggregator.catalog import Catalog, Changes, Pending, Ready, ToolEntry, digest
from aggregator.jsonrpc.verbatim import Verbatim
from aggregator.names import ServerName, ToolName
from aggregator.upstream.conversation import Conversation, Loading
from tests.patience import PATIENCE


def names(text: str) -> tuple[ToolName, ...]:
    return tuple(ToolName(name) for name in text.split())


def entry(name: str, **tool: Any) -> ToolEntry:
    return ToolEntry(ToolName(name), ServerName("server"), {"name": name, **tool})


def ready(text: str) -> Ready:
    return Ready(tuple(entry(name) for name in text.split()))


GITHUB, SLACK = ServerName("github"), ServerName("slack")


def test_the_loaded_set_grows_in_the_order_of_loading():
    conversation = Conversation()

    assert conversation.load(names("b a")) == Loading(added=names("b a"))
    assert conversation.load(names("c a c")) == Loading(added=names("c"))
    assert conversation.loaded == names("b a c")


def test_finding_only_what_is_loaded_changes_nothing():
    conversation = Conversation()
    conversation.load(names("a b"))

    assert not conversation.load(names("b a"))
    assert conversation.loaded == names("a b")


def test_two_conversations_do_not_mix():
    one, other = Conversation(), Conversation()
    one.load(names("a"))
    one.saw(entry("a"))
    one.listed(tools("a"))

    assert other.loaded == ()
    assert other.seen(entry("a")) == "never"
    assert "a" not in other.list_of(relists=None)


def test_a_refused_call_is_known_again_without_its_arguments_being_kept():
    conversation, note = Conversation(), "x" * 1000
    held = getrefcount(note)
    conversation.refused(ToolName("a"), {"note": note, "count": "three"})

    assert getrefcount(note) == held
    assert conversation.insists(ToolName("a"), {"note": "x" * 1000, "count": "three"})
    assert not conversation.insists(ToolName("b"), {"note": note, "count": "three"})
    assert not conversation.insists(ToolName("a"), {"note": note, "count": 3})
    assert not Conversation().insists(ToolName("a"), {})


def test_a_refused_call_may_have_arguments_of_any_kind():
    deep: JsonObject = {}
    for _ in range(500):
        deep = {"in": deep}
    odd: list[Any] = [Verbatim("\u00e9", b'"\\u00e9"'), "\ud83d", 10**400, float("nan"), deep]
    conversation = Conversation()
    for note in odd:
        conversation.refused(ToolName("a"), {"note": note, "count": 1})
        assert conversation.insists(ToolName("a"), {"count": 1, "note": note})
        assert not conversation.insists(ToolName("a"), {"note": note})


def test_over_the_cap_the_oldest_unused_leave():
    conversation = Conversation(max_loaded=3)
    conversation.load(names("a b c"))
    conversation.used(ToolName("a"))

    assert conversation.load(names("d")) == Loading(added=names("d"), dropped=names("b"))
    assert conversation.loaded == names("a c d")


def test_when_all_were_used_the_longest_unused_leaves():
    conversation = Conversation(max_loaded=2)
    conversation.load(names("a b"))
    for name in names("a b a"):
        conversation.used(name)

    assert conversation.load(names("c")).dropped == names("b")


def test_room_is_made_in_one_batch_so_that_the_next_searches_drop_nothing():
    conversation = Conversation(max_loaded=8)
    conversation.load(names("a b c d e f g h"))

    assert conversation.load(names("i")).dropped == names("a b")
    assert not conversation.load(names("j")).dropped
    assert conversation.load(names("k")).dropped == names("c d")


def test_what_a_search_has_just_found_is_not_dropped_by_it():
    conversation = Conversation(max_loaded=3)
    conversation.load(names("a b c"))

    conversation.load(names("a d e"))

    assert conversation.loaded == names("a d e")


def test_a_search_that_finds_more_than_the_cap_loads_the_best():
    conversation = Conversation(max_loaded=2)

    assert conversation.load(names("a b c")) == Loading(added=names("a b"))


@given(
    st.integers(min_value=1, max_value=12),
    st.lists(st.lists(st.sampled_from(names("a b c d e f g h i j k l m n")), max_size=6)),
)
def test_the_set_never_exceeds_its_cap_and_every_drop_is_reported(
    cap: int, searches: list[list[ToolName]]
):
    conversation = Conversation(max_loaded=cap)
    for found in searches:
        before = conversation.loaded
        loading = conversation.load(found)

        kept = tuple(name for name in before if name not in loading.dropped)
        assert conversation.loaded == kept + loading.added
        assert len(conversation.loaded) <= cap
        assert set(list(dict.fromkeys(found))[:cap]) <= set(conversation.loaded)


def tools(*names: str) -> tuple[dict[str, Any], ...]:
    return tuple({"name": name} for name in names)


def test_using_a_tool_that_is_not_loaded_loads_nothing():
    conversation = Conversation()
    conversation.used(ToolName("a"))

    assert conversation.loaded == ()


def test_what_an_earlier_conversation_had_loaded_is_loaded_in_its_order():
    conversation = Conversation(remembered=["b", "a"])

    assert conversation.loaded == names("b a")


def test_a_definition_is_seen_once_it_was_sent_and_changed_when_it_differs():
    conversation = Conversation()
    tool = entry("a", inputSchema={"type": "object", "required": ["x"]})

    assert conversation.seen(tool) == "never"
    conversation.saw(tool)
    assert conversation.seen(tool) == "same"
    assert (
        conversation.seen(entry("a", inputSchema={"required": ["x"], "type": "object"})) == "same"
    )
    assert conversation.seen(entry("a", inputSchema={"type": "object"})) == "changed"


def test_a_changed_definition_is_seen_once_it_was_sent_again():
    conversation = Conversation()
    conversation.saw(entry("a", description="old"))
    conversation.saw(entry("a", description="new"))

    assert conversation.seen(entry("a", description="new")) == "same"
    assert conversation.seen(entry("a", description="old")) == "changed"


def test_true_is_not_one_in_a_definition():
    assert digest({"default": True}) != digest({"default": 1})


def test_the_first_search_has_no_changes_to_tell():
    assert Conversation().changes(Catalog({GITHUB: ready("issue")})) is None


def test_changes_since_the_last_search_are_told_once():
    conversation = Conversation()
    conversation.changes(Catalog({GITHUB: ready("issue star"), SLACK: Pending()}))
    later = Catalog({GITHUB: ready("star fork"), SLACK: ready("send")})

    assert conversation.changes(later) == Changes(
        tools_added=names("fork send"), tools_removed=names("issue"), servers_added=(SLACK,)
    )
    assert conversation.changes(later) is None


def test_a_lost_server_is_told_with_its_tools():
    conversation = Conversation()
    conversation.changes(Catalog({SLACK: ready("send")}))

    assert conversation.changes(Catalog({SLACK: Pending("connection lost")})) == Changes(
        tools_removed=names("send"), servers_removed=(SLACK,)
    )


def test_what_came_back_before_the_next_search_is_not_worth_a_word():
    conversation = Conversation()
    before = Catalog({SLACK: ready("send")})
    conversation.changes(before)
    lost = before.updated(SLACK, Pending("connection lost"))

    assert conversation.changes(lost.updated(SLACK, ready("send"))) is None


def test_listing_again_before_the_answer_is_noticed():
    conversation = Conversation()
    conversation.listed(tools("ToolSearch"))
    assert conversation.observed_relist is None

    conversation.promoted([])
    conversation.listed(tools("ToolSearch", "a"))

    assert conversation.observed_relist is True
    assert "a" in conversation.list_of(relists=None)


def test_listing_again_after_the_answer_is_noticed_too():
    conversation = Conversation()
    conversation.promoted([])
    conversation.answered()
    assert conversation.observed_relist is None

    conversation.listed(tools("a"))
    conversation.called()

    assert conversation.observed_relist is True


def test_the_next_call_without_a_new_list_shows_that_the_client_does_not_list_again():
    conversation = Conversation()
    conversation.promoted([])
    conversation.called()
    assert conversation.observed_relist is None, "a call made at the same time proves nothing"

    conversation.answered()
    conversation.called()

    assert conversation.observed_relist is False


def test_a_client_that_listed_again_once_is_not_doubted_for_one_miss():
    conversation = Conversation(observed_relist=True)
    conversation.promoted([])
    conversation.answered()
    conversation.called()

    assert conversation.observed_relist is True


def test_an_answer_without_a_promotion_teaches_nothing():
    conversation = Conversation()
    conversation.answered()
    conversation.called()

    assert conversation.observed_relist is None


def test_a_client_that_ignores_late_tools_works_with_its_first_list():
    conversation = Conversation()
    conversation.listed(tools("ToolSearch", "early"))
    conversation.listed(tools("ToolSearch", "late"))

    assert "early" in conversation.list_of(relists=False)
    assert "late" not in conversation.list_of(relists=False)
    assert "late" in conversation.list_of(relists=True)
    assert "early" not in conversation.list_of(relists=None)


def test_before_any_list_nothing_is_shown():
    assert "a" not in Conversation().list_of(relists=False)


@pytest.mark.anyio
async def test_a_client_is_waited_for_until_it_has_listed_what_it_was_told_of():
    conversation = Conversation()
    conversation.promoted(tools("a"))
    heard: list[str] = []

    async def wait() -> None:
        await conversation.until_listed()
        heard.append("listed")

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert heard == []
            conversation.listed(tools("a"))

    assert heard == ["listed"]


def test_a_list_that_was_fetched_or_told_of_is_no_news():
    conversation = Conversation()
    conversation.listed(tools("a"))
    assert not conversation.shown.is_stale(tools("a"))
    assert conversation.shown.is_stale(tools("a", "b"))

    conversation.promoted(tools("a", "b"))

    assert not conversation.shown.is_stale(tools("a", "b"))


def test_how_a_conversation_stands_is_seen_at_a_glance():
    conversation = Conversation("handshake", "cursor", remembered=["a"])

    assert repr(conversation) == "<Conversation cursor handshake 1 loaded>"


def test_a_list_is_the_same_however_it_is_kept():
    """What was said before us was read from a file, and comes as a list."""
    conversation = Conversation("handshake", "anybody")
    tool = {"name": "ToolSearch", "inputSchema": {"type": "object"}}

    conversation.listed([tool])

    assert not conversation.shown.is_stale((dict(tool),))
    assert conversation.shown.is_stale((dict(tool), {"name": "CallTool"}))
