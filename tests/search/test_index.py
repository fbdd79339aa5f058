"""The index follows the catalog, whatever happens and in whatever order."""

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName
from aggregator.search.index import Index, warm_up
from aggregator.search.query import Keywords, parse_query
from aggregator.search.repair import nearest
from tests.search.tools import entry, index_of, search

Tools = dict[str, dict[str, str]]
"""The descriptions of the tools of each server, by name."""

WORDS = ["get", "list", "create", "delete", "issue", "user", "file", "page", "message", "price"]
names = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("_".join)
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
tools = st.dictionaries(names, texts, min_size=1, max_size=4)
catalogs = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), tools, min_size=1)
queries = st.lists(st.sampled_from([*WORDS, "isue", "wether"]), min_size=1, max_size=5).map(
    " ".join
)


def entries_of(server: str, own: dict[str, str]) -> list[ToolEntry]:
    return [entry(f"{server}__{name}", text) for name, text in own.items()]


def filled(catalog: Tools, arrival: list[str]) -> Index:
    index = Index([ServerName(server) for server in ("b", "a")])
    for server in arrival:
        index.update(ServerName(server), entries_of(server, catalog[server]))
    return index


@pytest.mark.no_cover
@given(catalogs, queries, st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing(catalog: Tools, query: str, random: Random):
    arrival = sorted(catalog)
    shuffled = random.sample(arrival, len(arrival))
    assert search(filled(catalog, arrival), query) == search(filled(catalog, shuffled), query)


@given(catalogs, queries)
def test_a_server_that_left_and_came_back_was_never_away(catalog: Tools, query: str):
    index = filled(catalog, sorted(catalog))
    before = search(index, query)
    server = max(catalog)
    index.remove(ServerName(server))
    index.update(ServerName(server), entries_of(server, catalog[server]))
    assert search(index, query) == before


@pytest.mark.no_cover
@given(catalogs, queries)
def test_removing_everything_leaves_nothing(catalog: Tools, query: str):
    index = filled(catalog, sorted(catalog))
    assert len(index) == sum(map(len, catalog.values()))
    for server in catalog:
        index.remove(ServerName(server))
    assert len(index) == 0
    assert search(index, query) == []
    assert not any(search(index, word) for word in WORDS)


@given(catalogs, names, texts, names, texts)
def test_an_exact_name_stays_first_whatever_joins(
    catalog: Tools, name: str, text: str, other: str, also: str
):
    servers = {**catalog, "d": {name: text}}
    alone = filled(servers, sorted(servers))
    wanted = search(alone, name.replace("_", " "))[0].partition("__")[2]
    assert {*wanted.split("_")} == {*name.split("_")}
    alone.update(ServerName("e"), [entry(f"e__{other}_zebra", also)])
    assert search(alone, name.replace("_", " "))[0].partition("__")[2] == wanted


@given(catalogs, queries, st.integers(-1, 8))
def test_the_limit_is_respected(catalog: Tools, query: str, limit: int):
    found = search(filled(catalog, sorted(catalog)), query, limit)
    assert len(found) <= max(0, limit)
    assert len(found) == len(set(found))


@settings(deadline=None)
@given(st.text(max_size=300) | st.text(alphabet='+"_: getisu中文ไทย\u0301\x00', max_size=300))
def test_no_query_fails(text: str):
    index = index_of(entry("a__get_issue", "Get an issue"), entry("b__中文工具", "获取天气信息"))
    query = parse_query(text)
    if isinstance(query, Keywords):
        for hit in index.rank(query, 5):
            demands = query.servers or query.required
            assert index.explain(query, hit.entry) or demands


def test_an_update_replaces_what_the_server_had():
    index = index_of(entry("a__old_tool"), entry("b__blue_tool"))
    index.update(ServerName("a"), [entry("a__new_tool")])
    assert search(index, "old") == []
    assert search(index, "tool") == ["a__new_tool", "b__blue_tool"]
    index.update(ServerName("a"), [])
    assert search(index, "tool") == ["b__blue_tool"]
    assert len(index) == 1


def test_the_same_twice_is_there_once():
    index = Index()
    index.update(ServerName("a"), [entry("a__ping")], description="Network things")
    index.update(ServerName("a"), [entry("a__ping")], description="Network things")
    assert search(index, "network ping") == ["a__ping"]
    assert len(index) == 1


def test_an_empty_index_finds_nothing():
    assert search(Index(), "anything at all") == []


def test_the_nearest_names_are_suggested():
    known = ["github__create_issue", "github__list_issues", "slack__send_message"]
    assert nearest("github__creat_isue", known)[0] == "github__create_issue"
    assert nearest("Slack send", known, limit=1) == ["slack__send_message"]
    assert nearest("qqqq", known) == []
    assert nearest("gti", ["github", "gitlab", "git"])[0] == "git"
    assert nearest("x" * 10_000, known) == []


def test_a_name_that_shares_but_some_letters_is_no_suggestion():
    known = ["git__git_branch", "git__git_status", "time__get_current_time", "test__echo"]

    assert nearest("nosuch", known) == []
    assert nearest("list", [*known, "github__create_pull_request"]) == []
    assert nearest("brnach", known) == ["git__git_branch"]
    assert nearest("ecoh", known) == ["test__echo"]
    files = [f"files__{each}_file" for each in ("edit", "read", "write")]
    assert nearest("wrtie_file", files)[0] == "files__write_file"
    assert nearest("git_statsu", known)[0] == "git__git_status"
    assert nearest("get_time", known)[0] == "time__get_current_time"


def test_warming_up_loads_the_spelling_matcher():
    warm_up()
    assert "rapidfuzz" in sys.modules


def test_the_spelling_matcher_is_loaded_only_when_needed():
    program = "import sys, aggregator.search; sys.exit('rapidfuzz' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_another_order_of_servers_decides_ties_in_another_way():
    index = index_of(entry("a__ping"), entry("b__ping"))
    index.reorder([ServerName("b"), ServerName("a")])
    assert search(index, "ping")[0] == "b__ping"
