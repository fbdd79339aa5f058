"""What an answer says of servers that are not there, and which of them are waited for."""

import pytest

from aggregator.catalog import Failed, Pending, Phase
from aggregator.toolsearch import parse_search
from aggregator.toolsearch.concern import awaited
from aggregator.toolsearch.wording import FRAME
from tests.toolsearch.test_answers import ALL
from tests.toolsearch.views import SLACK, ask, view_of


def test_a_name_of_a_server_that_is_not_connected_says_so():
    view = view_of({**ALL, "jira": Pending()})

    assert (
        'There is no "jira__create" now: jira is not connected.'
        in ask(view, "select:jira__create").text
    )


def test_nothing_found_names_what_could_not_be_searched_and_what_to_try():
    states = {**ALL, "jira": Pending(since=4.0), "wiki": Failed("no `TOKEN`")}

    found = ask(view_of(states, now=7.0), "qqqq zzzz")

    assert found.matches == ()
    assert found.text.startswith("Not searched yet: jira (starting for 3 s). To include it, ask")
    assert 'No tool matches "qqqq zzzz" among 4 tools.' in found.text
    assert '"wait": 10 instead of asking the same again' in found.text
    assert "Not connected, not searched: wiki (failed for 7 s).\n" in found.text
    assert found.text.endswith(f"\n{FRAME}\nwiki | no `TOKEN`")
    assert "Try other or fewer words" not in found.text
    settled = view_of({**states, "jira": Pending("it exited", phase="retrying")})
    assert "Try other or fewer words, or" in ask(settled, "qqqq zzzz").text
    assert "Try other or fewer words, also in English, or" in ask(settled, "ファイルを読む").text


def test_a_server_that_does_not_exist_is_named_with_the_one_that_may_be_meant():
    view = view_of({**ALL, "wiki": Failed("no `TOKEN`")})

    assert ask(view, "server:githb issues").text == (
        'There is no server "githb". Did you mean "server:github"? '
        "There are: slack, github, email, wiki."
    )
    assert ask(view, "server:qqqq").text.startswith('There is no server "qqqq". There are: ')


def test_a_server_that_is_not_connected_is_given_with_its_reason_and_no_other():
    view = view_of({**ALL, "wiki": Failed("no `TOKEN`"), "chat": Failed("gone")}, now=2.0)

    assert ask(view, "server:wiki page").text == (
        'Nothing was searched for "server:wiki page": its server is not connected.\n'
        "Not connected, not searched: wiki (failed for 2 s).\n"
        f"{FRAME}\nwiki | no `TOKEN`"
    )


UNSET = (
    "the variable `GITHUB_PERSONAL_ACCESS_TOKEN` must be set, and many clients hide your "
    "environment: put it in a file named by `envFile`, or in `env` where the client configures the "
    "aggregator, or write a default: `${GITHUB_PERSONAL_ACCESS_TOKEN:-default}`"
)


def test_what_a_person_can_mend_is_told_beside_matches_in_brief_and_else_in_full():
    view = view_of({**ALL, "wiki": Failed(UNSET)})

    assert ask(view, "send message").text.endswith(
        "\nNot connected, not searched: wiki.\n"
        "wiki | the variable `GITHUB_PERSONAL_ACCESS_TOKEN` must be set, and many clients hide "
        "your environment: put it in a file named by `envFile` [...]"
    )
    assert ask(view, "qqqq zzzz").text.endswith(f"\nwiki | {UNSET}")
    assert "wiki" not in ask(view, "server:slack send").text
    wordy = ask(view_of({**ALL, "wiki": Failed("no end " * 40)}), "send message").text
    assert wordy.endswith("no end no end [...]")


def test_a_login_is_told_beside_matches_in_brief():
    command = "aggregator login wiki"
    missing = Failed(f"its user has to log in: run `{command}`", login=command)

    text = ask(view_of({**ALL, "wiki": missing}), "send message").text

    assert text.endswith(f"\nwiki needs its user to log in: {command}")
    distant = Failed("its user has to log in", login=f"{command} --config {'x' * 200}.yaml")
    text = ask(view_of({**ALL, "wiki": distant}), "send message").text
    assert text.endswith("\nwiki needs its user to log in.")


def test_of_many_servers_that_only_a_person_can_mend_the_first_are_told_beside_matches():
    lost = {f"lost{number}": Failed(UNSET) for number in range(100)}
    barred = {f"web{number}": Failed("log in", login="aggregator login") for number in range(100)}

    text = ask(view_of({**ALL, **lost, **barred}), "send message").text

    assert text.count("must be set") == text.count("needs its user") == 3
    told = text.partition("Not connected, not searched: ")[2]
    assert told.startswith("lost0, lost1, ")
    assert len(told) < 1_300
    assert "\nAnd 97 more need their user to log in.\n" in text
    assert text.endswith("\nAnd 97 more are not connected: your user can run `aggregator check`.")


def test_what_a_person_can_mend_is_told_before_what_is_tried_again():
    retried = {f"jira{number}": Pending("refused", 2.0, "retrying") for number in range(7)}

    text = ask(view_of({**ALL, **retried, "wiki": Failed(UNSET)}), "qqqq zzzz").text

    reasons = text.partition(f"{FRAME}\n")[2].splitlines()
    assert [line.partition(" | ")[0] for line in reasons[:-1]] == [
        "wiki",
        *(f"jira{number}" for number in range(4)),
    ]
    assert reasons[-1] == "And 3 more are not connected: your user can run `aggregator check`."


def test_before_any_server_is_connected_no_other_words_are_proposed():
    text = ask(view_of({"jira": Pending(), "wiki": Pending()}, now=1.0), "send").text

    assert text.startswith("Not searched yet: jira (starting for 1 s), wiki (starting for 1 s).")
    assert 'Nothing was searched for "send": no server is connected yet.' in text
    assert "To include them, ask" in text
    assert "Try other" not in text
    alone = ask(view_of({"jira": Pending()}), "send").text
    assert 'Nothing was searched for "send": no server is connected yet.' in alone


def test_without_servers_it_is_said_that_there_are_none():
    found = ask(view_of({}), "qqqq")

    assert found.text.endswith("No servers are configured: the user can name some in servers.yaml.")


def test_a_wait_that_was_not_enough_is_doubled():
    view = view_of({**ALL, "jira": Pending()})

    assert '"wait": 16' in ask(view, "qqqq", wait=8).text
    assert '"wait": 30' in ask(view, "qqqq", wait=30).text


@pytest.mark.parametrize("phase", ["retrying", "cooling down"])
def test_nobody_is_told_to_wait_for_a_server_that_waits_to_be_tried_again(phase: Phase):
    away = Pending("it exited with 1: no database", 1.0, phase)
    view = view_of({**ALL, "sqlite": away}, now=30.0)

    found = ask(view, "send message").text

    told = f"Not searched, and waiting does not help: sqlite ({phase} for 29 s)."
    assert told in found
    assert found.endswith("\nsqlite | it exited with 1: no database")
    assert ask(view, "server:sqlite").text == (
        f"{told}\n"
        'Nothing was searched for "server:sqlite": its server is not connected.\n'
        f"{FRAME}\nsqlite | it exited with 1: no database"
    )
    assert '"wait"' not in found
    assert '"wait"' not in ask(view, "").text
    both = ask(view_of({**ALL, "sqlite": away, "jira": Pending()}, now=2.0), "qqqq").text
    assert both.startswith("Not searched yet: jira (starting for 2 s). To include it, ask")
    assert f"waiting does not help: sqlite ({phase} for 1 s)." in both


def test_pending_servers_that_cannot_matter_are_not_spoken_of():
    view = view_of({**ALL, "jira": Pending()})

    assert "jira" not in ask(view, "server:slack").text
    assert "jira" in ask(view, "send").text


@pytest.mark.parametrize(
    ("query", "servers"),
    [
        ("anything", ("jira", "wiki")),
        ("", ("jira", "wiki")),
        ("server:jira issue", ("jira",)),
        ("select:jira__create", ("jira",)),
        ("select:mcp__us__jira__create,wiki/read", ("jira", "wiki")),
        ("select:create", ("jira", "wiki")),
        ("select:send_message", ("jira", "wiki")),
        ("select:slack__send_message", ()),
        ("select:slack__send_message,jira__create", ("jira",)),
        ("server:slack", ()),
        ("server:nowhere", ()),
        ("jira__create", ("jira",)),
        ("slack__send_message", ()),
        ("mail__send", ("jira", "wiki")),
    ],
)
def test_only_servers_that_could_change_the_answer_are_waited_for(
    query: str, servers: tuple[str, ...]
):
    states = {"slack": SLACK, "jira": Pending(), "wiki": Pending()}
    view = view_of(states)

    assert awaited(parse_search(query), view.catalog, view.lookup) == servers
