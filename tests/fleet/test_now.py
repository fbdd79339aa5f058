"""What is known now is one value, folded from what was known before."""

from hypothesis import given
from hypothesis import strategies as st

from aggregator.catalog import Catalog, Failed, Idle, Pending, Ready, ServerState, ToolEntry
from aggregator.config import Settings
from aggregator.config.mode import ToolSearchMode
from aggregator.fleet.now import Now
from aggregator.names import ServerName, ToolName
from tests.peers import configured
from tests.toolsearch.views import ready, tool

DB, WEB = ServerName("db"), ServerName("web")


def offering(server: ServerName, *names: str) -> Ready:
    return ready(server, *(tool(name) for name in names))


def begun(settings: Settings | None = None) -> Now:
    return Now.starting(configured({DB: {}, WEB: {}}, settings), since=0.0)


def test_at_the_start_every_server_is_pending_and_nothing_is_found() -> None:
    now = begun()

    assert now.catalog.pending == (DB, WEB)
    assert now.find("db__query") is None


def test_a_server_is_untried_until_it_is_there_or_has_failed_once() -> None:
    now = begun()
    assert now.untried == {DB, WEB}

    now = now.with_state(DB, offering(DB, "query")).with_state(WEB, Pending("it hangs", 1.0))
    assert now.untried == frozenset()

    now = now.with_state(DB, Pending()).with_state(WEB, Pending())
    assert now.untried == frozenset()


def test_a_server_that_is_given_up_on_rests_or_waits_for_its_turn_again_has_been_tried() -> None:
    known = offering(DB, "query")
    for state in (Failed("no such program"), Idle(known), Pending("it hangs", phase="retrying")):
        assert begun().with_state(DB, state).untried == {WEB}


def test_no_edit_makes_a_server_one_of_the_untried() -> None:
    new = ServerName("new")
    edited = configured({DB: {}, new: {}})
    now = begun().with_config(edited, Catalog({DB: Pending(), new: Pending()}))

    assert now.untried == {DB}


def test_what_a_server_offers_is_found_however_it_is_written() -> None:
    now = begun().with_state(DB, offering(DB, "run_query"))

    assert now.find("db__run_query") == "db__run_query"
    assert now.find("run-query") == "db__run_query"


def test_a_fold_leaves_the_value_before_as_it_was() -> None:
    before = begun()
    after = before.with_state(DB, offering(DB, "query"))

    assert before.find("db__query") is None
    assert after.find("db__query") == "db__query"


def test_servers_that_did_not_change_keep_what_was_worked_out_of_their_names() -> None:
    before = begun().with_state(DB, offering(DB, "query"))
    after = before.with_state(WEB, offering(WEB, "fetch"))

    assert after.lookup.registers[0] is before.lookup.registers[0]
    assert [each.server for each in after.lookup.registers] == [DB, WEB]


def test_what_is_known_is_seen_at_a_glance() -> None:
    now = begun().with_state(DB, offering(DB, "query")).with_problem("line 3 is odd")

    assert repr(now) == "<Now <Catalog 1 tools of 1 servers, 1 pending, 0 failed>, line 3 is odd>"


def test_a_lost_server_takes_its_names_with_it() -> None:
    now = begun().with_state(DB, offering(DB, "query")).with_state(DB, Failed("it crashed"))

    assert now.find("db__query") is None
    assert now.routes.catalog is now.catalog


def test_once_tools_are_deferred_they_stay_so_until_the_configuration_changes() -> None:
    """Going back would change every client's list each time a server comes and goes."""
    automatic = ToolSearchMode.parse("auto:1")
    now = begun(Settings(tool_search=automatic, context_window=1000))
    assert not now.deferral.deferring

    large = now.with_state(DB, offering(DB, *(f"tool_{number}" for number in range(50))))
    small = large.with_state(DB, Pending())

    assert large.deferral.deferring
    assert small.deferral.deferring
    again = small.with_config(small.config, small.catalog)
    assert not again.deferral.deferring


def test_a_problem_of_the_file_is_known_until_a_file_is_right() -> None:
    now = begun().with_problem("line 3 is odd")
    assert now.problem == "line 3 is odd"

    assert now.with_state(DB, Pending()).problem == "line 3 is odd"
    assert now.with_config(now.config, now.catalog).problem is None


STATES = st.one_of(
    st.just(Pending()),
    st.just(Failed("gone")),
    st.lists(st.sampled_from("abcd"), unique=True).map(lambda names: (DB, tuple(names))),
)


@given(st.lists(st.tuples(st.sampled_from([DB, WEB]), STATES)))
def test_any_course_of_reports_leaves_what_the_last_of_each_server_says(
    reports: list[tuple[ServerName, ServerState | tuple[ServerName, tuple[str, ...]]]],
) -> None:
    now = begun()
    last: dict[ServerName, ServerState] = {DB: Pending(since=0.0), WEB: Pending(since=0.0)}
    for server, state in reports:
        told = offering(server, *state[1]) if isinstance(state, tuple) else state
        now = now.with_state(server, told)
        last[server] = told

    assert now.catalog == Catalog(last)
    for name in now.catalog.entries:
        assert now.find(name) == name
    known = {tool.name for each in now.lookup.registers for tool in each.tools}
    assert known == set(map(ToolName, now.catalog.entries))


def test_a_server_that_went_away_is_known_until_it_is_given_up() -> None:
    known = offering(DB, "query")
    now = begun().with_state(DB, known)

    away = now.with_state(DB, Pending("it exited", since=5.0, known=known))
    assert away.find("db__query") == "db__query"
    assert DB not in away.catalog.pending
    idle = now.with_state(DB, Idle(known))
    assert idle.find("db__query") == "db__query"
    assert now.with_state(DB, Pending("it exited")).find("db__query") is None
    assert now.with_state(DB, Failed("it exited")).find("db__query") is None


def test_the_name_of_what_was_withheld_is_not_taken_when_its_server_goes() -> None:
    listed = tuple(ToolEntry(ToolName(each), DB, {"name": each}) for each in ("query", "drop"))
    other = Ready((ToolEntry(ToolName("drop"), WEB, {"name": "drop"}),))
    begun = Now.starting(configured({DB: {"prefix": ""}, WEB: {"prefix": ""}}), since=0.0)
    now = begun.with_state(DB, Ready(listed[:1], listed=listed)).with_state(WEB, other)

    assert now.find("drop") == "drop"
    assert now.catalog.withheld[ToolName("drop")].server == DB
    gone = now.with_state(DB, Failed("it exited"))
    assert gone.find("drop") is None
    assert gone.lookup.absent("drop") == DB
