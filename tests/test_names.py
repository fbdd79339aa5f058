"""The names clients see."""

import random
import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from aggregator.names import (
    MAX_NAME,
    MAX_PREFIX,
    RESERVED,
    Ambiguous,
    Leads,
    Lookup,
    ServerName,
    ToolName,
    prefixes,
    qualify,
)

LEGAL = re.compile(r"[A-Za-z0-9_]+")
ODD_TOOL_NAMES = st.one_of(
    st.text(max_size=80),
    st.from_regex(r"[a-zA-Z0-9_./-]{1,80}", fullmatch=True),
    st.from_regex(r"(mcp|MCP|_|-|tool|x){1,12}", fullmatch=True),
)
SERVER_NAMES = st.one_of(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", fullmatch=True),
    st.from_regex(r"(mcp|_|-|server|x){1,12}", fullmatch=True),
    st.text(min_size=1, max_size=64),
)


@pytest.mark.parametrize(
    ("server", "prefix"),
    [
        ("github", "github"),
        ("GitHub", "GitHub"),
        ("12306-mcp", "12306"),
        ("osm-mcp-server", "osm_server"),
        ("mcp-server-git", "mcp_server_git"),
        ("mcp", "mcp"),
        ("mcp-mcp", "mcp"),
        ("my.api--v2_", "my_api_v2"),
        ("@scope/name", "scope_name"),
        ("Café", "Cafe"),
        ("GitHub Tools", "GitHub_Tools"),
    ],
)
def test_a_servers_name_becomes_a_clean_prefix(server: str, prefix: str) -> None:
    assert prefixes([server]) == {server: prefix}


def test_a_long_server_name_is_cut_with_a_hash() -> None:
    (prefix,) = prefixes(["a-very-long-name-for-a-server"]).values()
    assert re.fullmatch(r"a_very_long_n_[0-9a-f]{6}", prefix)


def test_a_name_without_letters_still_gets_a_prefix() -> None:
    assert re.fullmatch(r"server_[0-9a-f]{6}", prefixes(["笔记"])[ServerName("笔记")])


def test_the_server_whose_name_is_clean_keeps_it() -> None:
    found = prefixes(["my.api", "my_api", "my-api"])
    assert found[ServerName("my_api")] == "my_api"
    assert len(set(found.values())) == 3


def test_a_prefix_that_is_taken_is_not_given_again() -> None:
    assert prefixes(["notes"], taken=["notes"])[ServerName("notes")].startswith("notes_")


@pytest.mark.parametrize(
    ("prefix", "tool", "name"),
    [
        ("github", "create_issue", "github__create_issue"),
        ("github", "create-issue", "github__create_issue"),
        ("github", "issues.create", "github__issues_create"),
        ("github", "a__b", "github__a__b"),
        ("github", "mcp_list", "github__list"),
        ("github", "get_MCP_info", "github__get_info"),
        ("github", "mcp", "github__mcp"),
        ("github", "über größe", "github__uber_gro_e"),
        ("", "create_issue", "create_issue"),
        ("", "create-issue", "create_issue"),
        ("", "mcp_list", "mcp_list"),
    ],
)
def test_a_tools_name_carries_its_prefix(prefix: str, tool: str, name: str) -> None:
    assert qualify(prefix, [tool]) == {tool: name}


def test_a_long_tool_name_is_cut_with_a_hash() -> None:
    tool = "list_all_the_pull_requests_of_a_repository"
    name = qualify("github", [tool])[tool]
    assert re.fullmatch(r"github__list_all_the_pull_requests_of_[0-9a-f]{6}", name)
    assert len(qualify("github", ["x" * 38])["x" * 38]) == MAX_NAME


def test_a_cut_never_leaves_the_mark_one_client_splits_at() -> None:
    tool = "a" * 26 + "_mcpfoo_and_so_on_and_on"
    assert qualify("github", [tool])[tool].startswith("github__" + "a" * 26 + "_")
    assert "_mcp_" not in qualify("github", [tool])[tool]
    assert all("_mcp_" not in name for name in qualify("x", ["mcp", "mcp!", "mcp?"]).values())


def test_the_tool_whose_name_is_clean_keeps_it_in_any_order() -> None:
    tools = ["create.issue", "create_issue", "create-issue"]
    found = qualify("github", tools)
    assert found["create_issue"] == "github__create_issue"
    assert re.fullmatch(r"github__create_issue_[0-9a-f]{6}", found["create-issue"])
    assert found == qualify("github", tools[::-1])


def test_a_tool_that_claims_anothers_hashed_name_does_not_get_it_twice() -> None:
    hashed = qualify("x", ["a-b", "a_b"])["a-b"].removeprefix("x__")
    found = qualify("x", ["a-b", "a_b", hashed])
    assert found[hashed] == f"x__{hashed}"
    assert len(set(found.values())) == 3


def test_a_tool_without_letters_still_gets_a_name() -> None:
    found = qualify("x", ["创建", "删除", "___", ""])
    assert len(set(found.values())) == 4
    assert all(re.fullmatch(r"x__tool_[0-9a-f]{6}", name) for name in found.values())


@pytest.mark.parametrize(
    "tool",
    [
        *RESERVED,
        "toolsearch",
        "tool_search",
        "Tool-Search",
        "TOOLSEARCH",
        "ToolSearch_",
        "T00lSearch",
        "TooISearch",
        "Too1Search",
        "Tool5earch",
        "Tool\u200bSearch",
        "\uff34\uff4f\uff4f\uff4c\uff33\uff45\uff41\uff52\uff43\uff48",
        "T\u043e\u043elSearch",
        "T\u03bf\u03bflS\u00e9arch",
        "\u4e2dCallTool",
        "Call Read Only Tool",
    ],
)
def test_our_own_names_cannot_be_imitated(tool: str) -> None:
    assert qualify("", [tool, "other"]) == {"other": "other"}
    assert qualify("x", [tool])[tool] not in RESERVED


@settings(deadline=None)
@given(st.lists(SERVER_NAMES, unique=True, max_size=12), st.randoms())
def test_prefixes_are_legal_distinct_and_independent_of_order(
    servers: list[str], shuffler: random.Random
) -> None:
    found = prefixes(servers)
    assert list(found) == servers
    assert len(set(found.values())) == len(servers)
    for prefix in found.values():
        assert LEGAL.fullmatch(prefix)
        assert len(prefix) <= MAX_PREFIX
        assert "__" not in f"{prefix}_"
        assert not prefix.startswith("_")
        assert "_mcp_" not in f"{prefix}__".lower()
    shuffler.shuffle(servers)
    assert prefixes(servers) == found


@settings(deadline=None)
@given(SERVER_NAMES, st.lists(ODD_TOOL_NAMES, unique=True, max_size=20), st.randoms())
@example("x", ["_" * 60 + "a", "mcp", "mcp-"], None)
def test_names_are_legal_distinct_and_independent_of_order(
    server: str, tools: list[str], shuffler: random.Random | None
) -> None:
    prefix = prefixes([server])[ServerName(server)]
    found = qualify(prefix, tools)
    assert list(found) == tools
    assert len(set(found.values())) == len(tools)
    for name in found.values():
        assert LEGAL.fullmatch(name)
        assert len(name) <= MAX_NAME
        assert name.split("__", 1)[0] == prefix
        assert "_mcp_" not in name.lower()
    if shuffler:
        shuffler.shuffle(tools)
    assert qualify(prefix, tools) == found


@settings(deadline=None)
@given(st.lists(ODD_TOOL_NAMES, unique=True, max_size=20))
def test_names_without_a_prefix_are_legal_distinct_and_never_ours(tools: list[str]) -> None:
    found = qualify("", tools)
    assert len(set(found.values())) == len(found)
    for name in found.values():
        assert LEGAL.fullmatch(name)
        assert len(name) <= MAX_NAME
        assert "_mcp_" not in name.lower()
        assert name not in RESERVED


def triples(servers: dict[str, list[str]]) -> list[tuple[ToolName, ServerName, str]]:
    return [
        (name, server, tool)
        for server, prefix in prefixes(servers).items()
        for tool, name in qualify(prefix, servers[server]).items()
    ]


LOOKUP = Lookup.of(
    triples(
        {
            "github": ["create_issue", "list-issues", "search"],
            "slack": ["send_message", "search", "Search.All"],
            "osm-mcp-server": ["find-place", "a_tool_whose_name_is_far_too_long_to_be_shown_whole"],
            "笔记": ["创建"],
        }
    )
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("github__create_issue", "github__create_issue"),
        (" github__create_issue\n", "github__create_issue"),
        ("mcp__us__github__create_issue", "github__create_issue"),
        ("mcp_us_github__create_issue", "github__create_issue"),
        ("mcp__my_own_tools__github__create_issue", "github__create_issue"),
        ("mcp--us--github__create_issue", "github__create_issue"),
        ("us-github__create_issue", "github__create_issue"),
        ("us__github__create_issue", "github__create_issue"),
        ("us_github__create_issue", "github__create_issue"),
        ("mcp__github__create_issue", "github__create_issue"),
        ("mcp__github__github__create_issue", "github__create_issue"),
        ("mcp__slack__github__create_issue", "github__create_issue"),
        ("mcp__us__github_create_issue", "github__create_issue"),
        ("mcp_us_slack/search", "slack__search"),
        ("github/create_issue", "github__create_issue"),
        ("github.create_issue", "github__create_issue"),
        ("github:create_issue", "github__create_issue"),
        ("github_create_issue", "github__create_issue"),
        ("create_issue", "github__create_issue"),
        ("Create-Issue", "github__create_issue"),
        ("GITHUB__CREATE_ISSUE", "github__create_issue"),
        ("GitHub/Create.Issue", "github__create_issue"),
        ("list_issues", "github__list_issues"),
        ("github__list-issues", "github__list_issues"),
        ("slack/search", "slack__search"),
        ("search_all", "slack__Search_All"),
        ("osm-mcp-server__find-place", "osm_server__find_place"),
        ("osm-mcp-server/find_place", "osm_server__find_place"),
        ("mcp__us__osm_server__find-place", "osm_server__find_place"),
    ],
)
def test_every_spelling_finds_its_tool(text: str, name: str) -> None:
    assert LOOKUP.find(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "a_tool_whose_name_is_far_too_long_to_be_shown_whole",
        "osm_server__a_tool_whose_name_is_far_too_long_to_be_shown_whole",
        "osm-mcp-server/a_tool_whose_name_is_far_too_long_to_be_shown_whole",
    ],
)
def test_a_shortened_tool_is_found_by_its_whole_name(text: str) -> None:
    assert str(LOOKUP.find(text)).startswith("osm_server__a_tool_whose")


@pytest.mark.parametrize("text", ["创建", "笔记/创建"])
def test_a_tool_in_another_script_is_found_by_its_own_name(text: str) -> None:
    assert str(LOOKUP.find(text)).startswith("server_")


def test_a_bare_name_that_two_servers_have_is_ambiguous() -> None:
    both = Ambiguous((ToolName("github__search"), ToolName("slack__search")))
    assert LOOKUP.find("search") == both
    assert LOOKUP.find("SEARCH") == both


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "___",
        "nothing",
        "issue",
        "delete_create_issue",
        "github",
        "github__",
        "slack__create_issue",
        "mcp__slack__create_issue",
        "mcp__us__slack__github_create_issue",
        "mcp__us__create_issue",
        "x" * 10_000,
        "mcp__" * 10_000 + "github__create_issue",
    ],
)
def test_what_names_no_tool_finds_none(text: str) -> None:
    assert LOOKUP.find(text) is None


def test_the_exact_spelling_wins_over_a_lenient_one() -> None:
    lookup = Lookup.of(triples({"a": ["x_y", "x-y", "X_Y"], "b": ["a_x_y"]}))
    assert lookup.find("a__x_y") == "a__x_y"
    assert lookup.find("a/X_Y") == "a__X_Y"
    assert str(lookup.find("a/x-y")).startswith("a__x_y_")
    assert lookup.find("b/a_x_y") == "b__a_x_y"
    assert isinstance(lookup.find("a.x.y"), Ambiguous)


def test_servers_that_look_alike_are_told_apart_by_their_spelling() -> None:
    lookup = Lookup.of(triples({"my-api": ["x"], "my_api": ["x"]}))
    assert lookup.find("my_api/x") == "my_api__x"
    assert str(lookup.find("my-api/x")).startswith("my_api_")
    assert lookup.find("my-api/x") != "my_api__x"


@pytest.mark.parametrize("text", ["GITHUB__t", "GitHub__t", "Github-t", "mcp__us__GITHUB__t"])
def test_what_may_be_meant_for_one_that_is_absent_is_not_meant_for_its_namesake(text: str) -> None:
    lookup = Lookup.of(triples({"github": ["t"]}), absent={ServerName("GitHub"): "GitHub"})
    assert lookup.find(text) is None
    assert lookup.absent(text) == "GitHub"
    assert lookup.find("github__t") == lookup.find("github/t") == "github__t"


@pytest.mark.parametrize("text", ["board__t", "board/t", "Board__T", "mcp__us__board__t"])
def test_the_prefix_of_one_that_is_absent_is_not_the_name_of_another(text: str) -> None:
    tools = [(ToolName("other__t"), ServerName("board"), "t")]
    lookup = Lookup.of(tools, absent={ServerName("x"): "board"})
    assert lookup.find(text) is None
    assert lookup.absent(text) == "x"


def test_a_tool_without_prefix_is_found_behind_a_clients_prefix() -> None:
    github = triples({"github": ["search"]})
    lookup = Lookup.of([(ToolName("echo"), ServerName("everything"), "echo"), *github])
    assert lookup.find("echo") == "echo"
    assert lookup.find("mcp__us__echo") == "echo"
    assert lookup.find("everything/echo") == "echo"
    assert lookup.find("mcp__github__echo") is None
    assert lookup.find("re-echo") is None


@settings(deadline=None)
@given(st.dictionaries(SERVER_NAMES, st.lists(ODD_TOOL_NAMES, unique=True, max_size=8), max_size=5))
def test_every_name_leads_back_to_its_tool(servers: dict[str, list[str]]) -> None:
    # What a client would put before a name is then that of a server.
    assume("us" not in [re.sub(r"[\W_]", "", name).lower() for name in servers])
    known = triples(servers)
    lookup = Lookup.of(known)
    for name, _, _ in known:
        assert lookup.find(name) == name
        assert lookup.find(f"mcp__us__{name}") == name
        assert lookup.find(f"us-{name}") == name


@given(st.text(max_size=400))
def test_any_text_may_be_asked_for(text: str) -> None:
    found = LOOKUP.find(text)
    names = {each.name for register in LOOKUP.registers for each in register.tools}
    match found:
        case Ambiguous(candidates):
            assert len(candidates) > 1
            assert set(candidates) <= names
        case None:
            pass
        case name:
            assert name in names


@pytest.mark.parametrize("between", ["_", "_" * 200])
def test_a_name_is_claimed_however_far_behind_the_mark_and_however_long(between: str) -> None:
    leads = Leads({ServerName("my_db"): "my_db"})

    assert leads.claims("mcp_" + "a_" * 50 + f"my{between}db{between}drop" + "_b" * 50) == "my_db"
    assert leads.claims("mcp_" + "a_" * 50 + f"my{between}db") is None
