"""What the keys of a server mean."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.config import ServerConfig, load_config
from aggregator.config.file_form import FileForm
from aggregator.config.form import ServerForm
from aggregator.config.limits import Limits
from aggregator.names import Lookup, ServerName, qualify
from tests.config.reading import PATH, config_of, refusal, server_of


def test_a_server_that_says_nothing_else_gets_the_defaults() -> None:
    assert server_of("command: notes") == ServerConfig(
        name=ServerName("one"),
        prefix="one",
        type="stdio",
        command="notes",
        args=(),
        env={},
        cwd=PATH.parent,
        url=None,
        headers={},
        description="",
        always_load=False,
        allow=("*",),
        deny=(),
        search_hints={},
        enabled=True,
        connect_timeout=30.0,
        call_timeout=60.0,
        max_call_time=600.0,
        max_message_bytes=16 * 1024 * 1024,
        max_in_flight=32,
        max_queued=256,
        trust_annotations=True,
        honour_always_load=True,
        limits=Limits(),
        detach=False,
        problem=None,
    )


def test_every_key_of_a_program_reaches_its_value() -> None:
    text = """
command: npx
args: [-y, some-server, 8080]
env: {PORT: 8080, VERSION: 1.10, DEBUG: yes, EMPTY: ""}
cwd: data
type: stdio
description: >
  One line
  of text
alwaysLoad: [search_*]
tools: {allow: [search_*, drop_*], deny: drop_*}
searchHints: {create_note: memo journal, list_notes: [all, overview]}
enabled: false
prefix: n
connectTimeout: 500ms
callTimeout: 2m
maxCallTime: 1h
maxMessageBytes: 1 MiB
maxInFlight: 4
maxQueued: 0
trustAnnotations: no
honourAlwaysLoad: off
limits: {memory: 4GiB, processes: 500, files: 1024}
detach: yes
"""
    assert server_of(text) == ServerConfig(
        name=ServerName("one"),
        prefix="n",
        type="stdio",
        command="npx",
        args=("-y", "some-server", "8080"),
        env={"PORT": "8080", "VERSION": "1.10", "DEBUG": "yes", "EMPTY": ""},
        cwd=PATH.parent / "data",
        description="One line of text",
        always_load=("search_*",),
        allow=("search_*", "drop_*"),
        deny=("drop_*",),
        search_hints={"create_note": "memo journal", "list_notes": "all overview"},
        enabled=False,
        connect_timeout=0.5,
        call_timeout=120.0,
        max_call_time=3600.0,
        max_message_bytes=1 << 20,
        max_in_flight=4,
        max_queued=0,
        trust_annotations=False,
        honour_always_load=False,
        limits=Limits(4 << 30, 500, 1024),
        detach=True,
    )


def test_a_server_with_an_address_is_reached_over_http() -> None:
    server = server_of("url: https://h/mcp\nheaders: {Authorization: 'Bearer ${T}'}", T="t0ken")
    assert (server.type, server.url, server.command, server.cwd) == (
        "http",
        "https://h/mcp",
        None,
        None,
    )
    assert server.headers == {"Authorization": "Bearer t0ken"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("abc\n", "has a line break in it"),
        ("abc ", "begins or ends with a space"),
        ("\u201cabc\u201d", "has `\u201c` in it, which no header may have"),
        ("a\x07c", "has a control character in it"),
        ("a\tc~", None),
    ],
)
def test_a_header_that_cannot_be_sent_is_the_problem_of_its_server(
    value: str, said: str | None
) -> None:
    server = server_of("url: https://h/mcp\nheaders: {X-Key: 'k ${T}'}", T=value)

    found = said and (
        f"its header `X-Key` {said}: look at the value, or the variable it comes from"
    )
    assert server.problem == found


def test_a_header_whose_variable_is_empty_names_the_variable() -> None:
    text = "url: https://h/mcp\nheaders: {Authorization: 'Bearer ${GITHUB_TOKEN}'}"
    server = server_of(text, GITHUB_TOKEN="", OTHER="")

    assert server.problem == (
        "the variable `GITHUB_TOKEN` is empty, and its header `Authorization` needs it"
    )


@pytest.mark.parametrize(
    ("text", "places"),
    [("command: x", 32), ("url: https://h/mcp", 100), ("url: https://h/mcp\nmaxInFlight: 4", 4)],
)
def test_what_is_reached_over_http_works_on_more_at_a_time(text: str, places: int) -> None:
    assert server_of(text).max_in_flight == places


@pytest.mark.parametrize(
    ("written", "kind"), [("sse", "sse"), ("http", "http"), ("streamable-http", "http")]
)
def test_the_type_of_an_address_can_be_said(written: str, kind: str) -> None:
    assert server_of(f"url: http://h\ntype: {written}").type == kind


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ("npx", "npx"),
        ("./bin/server", "/etc/aggregator/bin/server"),
        ("bin/server", "/etc/aggregator/bin/server"),
        ("../server", "/etc/aggregator/../server"),
        ("/usr/bin/env", "/usr/bin/env"),
        ("/opt/my tools/server", "/opt/my tools/server"),
        ("my tools/server", "/etc/aggregator/my tools/server"),
        ("~/server", str(Path.home() / "server")),
        ("~nobody-of-that-name/x", "/etc/aggregator/~nobody-of-that-name/x"),
        ("[npx, -y]", "npx"),
    ],
)
def test_a_command_with_a_slash_is_relative_to_the_file(written: str, resolved: str) -> None:
    assert server_of(f"command: {written}").command == resolved


def test_a_command_may_carry_its_arguments() -> None:
    assert server_of("command: [npx, -y, x]\nargs: [z]").args == ("-y", "x", "z")


def test_arguments_reach_the_program_literally() -> None:
    server = server_of('command: x\nargs: ["$(id)", "; rm -rf /", "a\\nb", "`id`", "$HOME"]')
    assert server.args == ("$(id)", "; rm -rf /", "a\nb", "`id`", "$HOME")


def test_the_interpreter_of_the_aggregator_can_be_named() -> None:
    assert server_of("command: ${AGGREGATOR_PYTHON}").command == sys.executable


def test_a_person_can_choose_another_interpreter() -> None:
    server = server_of("command: ${AGGREGATOR_PYTHON}", AGGREGATOR_PYTHON="/opt/python")
    assert server.command == "/opt/python"


LONG = "list_all_the_pull_requests_of_a_repository_and_more"
HASHED = qualify("one", [LONG])[LONG]
"""The name that clients see, since the whole one is too long."""


@pytest.mark.parametrize(
    ("rules", "tool", "allowed"),
    [
        ("{}", "anything", True),
        ("{allow: [read_*]}", "read_file", True),
        ("{allow: [read_*]}", "write_file", False),
        ("{deny: [write_*]}", "write_file", False),
        ("{allow: ['*'], deny: ['*_file']}", "read_file", False),
        ("{allow: []}", "read_file", False),
        ("{deny: [READ_*]}", "read_file", False),
        ("{deny: ['delete_*']}", "Delete_Note", False),
        ("{deny: ['delete_*']}", "DELETE-NOTE", False),
        ("{deny: ['delete_*']}", "deleteNote", False),
        ("{deny: ['delete_*']}", "delete.note", False),
        ("{deny: ['delete_*']}", "_delete_note", False),
        ("{deny: ['delete_*']}", "\uff44elete_note", False),
        ("{deny: ['delete_*']}", "undelete_note", True),
        ("{deny: ['delete_*']}", "deleted", True),
        ("{deny: [deleteNote]}", "delete_note", False),
        ("{deny: ['*Note']}", "delete-note", False),
        ("{deny: ['delete[-_]note']}", "Delete_Note", False),
        ("{deny: ['one__delete_*']}", "Delete_Note", False),
        ("{deny: ['ONE__delete_*']}", "deleteNote", False),
        ("{deny: ['*__delete_*']}", "delete_note", False),
        ("{deny: [one__get_sum_2fb224]}", "get-sum", False),
        ("{deny: [one__get_sum_2fb224]}", "get_sum", True),
        ("{deny: [one_get_sum_2fb224]}", "get-sum", False),
        ("{deny: [ONE-get-sum-2FB224]}", "get-sum", False),
        ("{deny: [get_sum_2fb224]}", "get-sum", False),
        ("{deny: [get_sum_2fb224]}", "get_sum", True),
        ("{deny: [mcp__us__one__get_sum_2fb224]}", "get-sum", False),
        ("{deny: [mcp_us_one_get_sum_2fb224]}", "get-sum", False),
        ("{deny: [mcp_us_one_delete_note]}", "deleteNote", False),
        ("{deny: ['mcp_us_one_*']}", "delete_note", True),
        ("{deny: ['*_2*']}", "get-sum", True),
        ("{deny: ['one/delete_*']}", "delete_note", False),
        ("{deny: [one_delete_note]}", "delete-note", False),
        ("{deny: ['one.*']}", "delete_note", True),
        ("{deny: ['one__*']}", "delete_note", False),
        (f"{{deny: [{HASHED}]}}", LONG, False),
        (f"{{deny: [{HASHED.upper()}]}}", LONG, False),
        (f"{{deny: [{HASHED[:-1]}]}}", LONG, True),
        (f"{{allow: [{HASHED}]}}", LONG, True),
        ("{deny: ['other__delete_*']}", "delete_note", True),
        ("{deny: ['mcp__us__one__delete_*']}", "delete_note", False),
        ("{deny: ['delete_*']}", "D\u00e9lete_Note", False),
        ("{deny: ['delete_*']}", "mcp_delete_note", False),
        ("{deny: ['delete_*']}", "one_delete_note", False),
        ("{deny: ['delete_*']}", "ONE__delete-note", False),
        ("{deny: ['delete_*']}", "oneDeleteNote", False),
        ("{deny: ['delete_*']}", "one_undelete", True),
        ("{deny: ['delete_*']}", "two_delete_note", True),
        ("{deny: ['delete_*']}", "one", True),
        ("{allow: ['read_*']}", "one_read_file", False),
        ("{allow: ['read_*']}", "Read-File", True),
        ("{allow: ['read_*']}", "readFile", False),
        ("{allow: ['one_read*']}", "read_file", False),
        ("{allow: ['one.*']}", "read_file", False),
        ("{allow: ['one_*']}", "read_file", False),
        ("{allow: ['one__read_*']}", "read_file", True),
        ("{allow: ['one__read_*']}", "write_file", False),
        ("{allow: ['[rR]ead_*']}", "Read_file", True),
        ("{deny: [get-sum]}", "get-sum", False),
        ("{deny: [get_sum]}", "get-sum", False),
        ("{deny: ['get_*']}", "get.sum", False),
        ("{deny: [one__get_sum]}", "get-sum", False),
        ("{deny: ['one_*']}", "get-sum", True),
        ("{allow: [get_sum]}", "get-sum", True),
        ("{allow: [get_sum]}", "get-product", False),
    ],
)
def test_deny_wins_over_allow(rules: str, tool: str, allowed: bool) -> None:
    assert server_of(f"command: x\ntools: {rules}").allows(tool) is allowed


SEPARATED = st.lists(st.text("abAB", min_size=1, max_size=3), min_size=1, max_size=3)


@settings(deadline=None)
@given(
    SEPARATED, st.sampled_from("_-./ "), st.sampled_from(["", "one__", "ONE/", "mcp__us__one__"])
)
def test_what_a_call_would_accept_can_be_denied(parts: list[str], sign: str, lead: str) -> None:
    own = "_".join(parts)
    name = qualify("one", [own])[own]
    lookup = Lookup.of([(name, ServerName("one"), own)])
    for written in (own, own.upper(), own.swapcase(), sign.join(parts), f"{own}_"):
        text = f"{lead}{written}"
        denied = ServerConfig(ServerName("one"), "one", deny=(text,))
        assert lookup.find(text) == name
        assert not denied.allows(own)


@pytest.mark.parametrize(
    ("written", "loaded"),
    [
        ("true", True),
        ("yes", True),
        ("false", False),
        ("search_notes", True),
        ("[list_*, search_*]", True),
        ("[list_*]", False),
        ("[]", False),
    ],
)
def test_always_load_is_a_switch_or_names_or_globs(written: str, loaded: bool) -> None:
    server = server_of(f"command: x\nalwaysLoad: {written}")
    assert server.loads_always("search_notes") is loaded


def test_hints_are_kept_by_tool() -> None:
    server = server_of("command: x\nsearchHints: {create_note: memo}")
    assert (server.hint("create_note"), server.hint("other")) == ("memo", "")
    assert server.hint("create-note") == "memo"


def test_a_tool_may_be_written_as_its_server_does_or_as_clients_see_it() -> None:
    server = server_of(
        "command: x\nalwaysLoad: [get_sum, one__get_sum, gone]\n"
        "searchHints: {get-sum: add, get_sum: plus, away: x}"
    )

    assert server.loads_always("get-sum")
    assert server.hint("get-sum") == "add"
    found = list(filter(None, server.unmatched(["get-sum"])))
    assert found == [("alwaysLoad", "gone"), ("searchHints", "away")]


def test_a_call_may_always_take_as_long_as_it_may_be_silent() -> None:
    assert server_of("command: x\ncallTimeout: 1h").max_call_time == 3600.0


def test_an_empty_key_is_as_if_it_were_not_there() -> None:
    assert server_of("command: x\nargs:\nenv:\ndescription:") == server_of("command: x")


def test_servers_keep_the_order_of_the_file() -> None:
    config = config_of("servers: {b: {command: x}, a: {command: x}, c: {command: x}}")
    assert list(config.servers) == ["b", "a", "c"]
    assert config.path == PATH


def test_only_enabled_servers_are_to_be_started() -> None:
    config = config_of("servers: {a: {command: x, enabled: false}, b: {command: x}}")
    assert list(config.servers) == ["a", "b"]
    assert list(config.enabled) == ["b"]


def test_a_file_without_servers_is_fine_but_worth_a_word() -> None:
    assert config_of("servers:").warnings == ("no servers are configured",)


def test_prefixes_do_not_collide() -> None:
    config = config_of(
        "servers: {my-api: {command: x}, my_api: {command: x}, my-db: {command: x}, "
        "my_db: {command: x, prefix: db}, Git: {command: x, prefix: Git}, git: {command: x}, "
        "other: {command: x, prefix: third}, third-: {command: x}, bare: {command: x, prefix: ''}}"
    )
    prefixes = {str(name): server.prefix for name, server in config.servers.items()}
    assert prefixes["my_api"] == "my_api"
    assert prefixes["my-api"].startswith("my_api_")
    assert prefixes["my-db"].startswith("my_db_")
    assert (prefixes["Git"], prefixes["git"]) == ("Git", "git")
    assert prefixes["other"] == "third"
    assert prefixes["third-"].startswith("third_")
    assert prefixes["bare"] == ""


def test_a_merge_key_fills_in_what_is_not_said() -> None:
    text = """
servers:
  a: &base {command: x, args: [one], callTimeout: 5s}
  b: {<<: *base, args: [two]}
  c: {<<: [*base, {description: more}]}
"""
    _, b, c = config_of(text).servers.values()
    assert (b.command, b.args, b.call_timeout) == ("x", ("two",), 5.0)
    assert (c.args, c.description) == (("one",), "more")


def test_an_alias_is_what_it_refers_to() -> None:
    text = "servers: {a: &a {command: x, args: &args [y]}, b: *a, c: {command: z, args: *args}}"
    a, b, c = config_of(text).servers.values()
    assert (b.command, b.args, c.args) == (a.command, a.args, ("y",))


def test_an_error_inside_an_alias_points_at_the_alias() -> None:
    problem = refusal("servers:\n  a: &a {command: x}\n  b:\n    <<: *a\n    tools: *a\n")
    assert problem.line == 5


def test_secrets_do_not_show_in_a_representation() -> None:
    server = server_of("url: http://u:canary@h\nheaders: {A: canary}")
    program = server_of("command: x\nargs: [canary]\nenv: {A: canary}")
    assert "canary" not in f"{server}{program}"


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    path.write_bytes(b"\xef\xbb\xbfservers: {a: {command: x}}\r\n")
    assert list(load_config(path, {}).servers) == ["a"]


def test_a_file_that_anyone_can_change_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text("servers: {a: {command: x}}", encoding="utf-8")
    path.chmod(0o666)
    assert load_config(path, {}).warnings == (
        f"`{path}` can be changed by every user of this machine",
    )


def test_the_default_file_starts_the_examples_beside_it() -> None:
    path = Path(__file__).parents[2] / "servers.yaml"
    config = load_config(path, {})
    assert list(config.servers) == ["notes", "files", "board", "text", "units"]
    for server in config.servers.values():
        assert server.command == sys.executable
        assert (path.parent / server.args[0]).is_file()
        assert server.description
        assert server.problem is None
    assert config.servers[ServerName("notes")].loads_always("search_notes")


def test_the_well_known_servers_in_the_default_file_can_be_used() -> None:
    text = (Path(__file__).parents[2] / "servers.yaml").read_text(encoding="utf-8")
    _, _, commented = text.partition("# Well-known servers")
    entries = [line[1:] for line in commented.splitlines() if line.startswith("#  ")]
    variables = {"GITHUB_TOKEN": "t", "HOME": "/home/me"}
    config = config_of("\n".join(["servers:", *entries]), **variables)
    assert list(config.servers) == ["github", "filesystem", "fetch", "playwright"]
    assert all(server.description and not server.problem for server in config.servers.values())


def test_every_key_is_described_for_editors() -> None:
    schema = FileForm.model_json_schema()
    keys = schema["properties"] | schema["$defs"]["ServerForm"]["properties"]
    assert {"servers", "toolSearch", "connectTimeout"} <= keys.keys()
    assert all(key["description"].endswith(".") for key in keys.values())
    assert ServerForm.model_fields["args"].description == "Arguments of the program."
