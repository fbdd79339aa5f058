"""What is wrong with a file is said together with what would be right."""

from pathlib import Path

import pytest

from aggregator.config import load_config
from aggregator.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("servers: {a: {command: x, limits: {mem: 1GB}}}", "Did you mean `memory`?"),
        ("servers: {a: {command: x, tools: {allw: [a]}}}", "Did you mean `allow`?"),
        ("{servers: {}, names: {serch: x}}", "Did you mean `search`?"),
        ("servers: {a: {command: x, start: Lazy}}", "Did you mean `lazy`?"),
        ("servers: {a: {command: x, start: never}}", "`enabled: false` under a server"),
        ("servers: {a: {command: x, start: off}}", "`enabled: false` under a server"),
        ("{servers: {}, drift: Block}", "Did you mean `block`?"),
        ("servers: {a: {comand: x}}", "Did you mean `command`?"),
        ("servers: {a: b}", "`fetch: {command: uvx, args: [mcp-server-fetch]}`"),
        ("mcpServers: {a: 5}", "`fetch: {command: uvx, args: [mcp-server-fetch]}`"),
        ("servers: {a: {command: x, env: [A=1]}}", "`env: {NAME: value}`"),
        ("servers: {a: {command: x, limits: 1GB}}", "`limits: {memory: 4GiB, files: 256}`"),
        ("servers: {a: {command: x, tools: [a]}}", "`tools: {allow: [read_*]}`"),
        ("servers: {a: {command: x, tools: {rename: [a]}}}", "`rename: {get_it: get_issue}`"),
        ("{servers: {}, clients: [a]}", "`clients: {claude-code: relay}`"),
        ("{servers: {}, names: x}", "`names: {search: FindTools}`"),
    ],
)
def test_a_mistake_is_told_with_what_was_meant(tmp_path: Path, text: str, hint: str) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        load_config(path, {})

    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "servers: {a: {command: x, start: early}}",
        "servers: {a: {command: x, era: deny}}",
        "{servers: {}, drift: never}",
    ],
)
def test_a_value_like_none_that_is_known_is_told_with_all_of_them(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        load_config(path, {})

    assert " must be " in caught.value.problem
    assert caught.value.hint is None


@pytest.mark.parametrize(
    "example",
    [
        "env: {NAME: value}",
        "limits: {memory: 4GiB, files: 256}",
        "limits: {memory: 2GB}",
        "tools: {allow: [read_*]}",
        "searchHints: {get_issue: bug ticket}",
    ],
)
def test_what_is_given_as_an_example_can_be_used(tmp_path: Path, example: str) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text(f"servers: {{a: {{command: x, {example}}}}}", encoding="utf-8")

    assert load_config(path, {}).warnings == ()


@pytest.mark.parametrize("never", ["0", "false", "never"])
def test_who_wants_a_server_never_stopped_is_told_how(tmp_path: Path, never: str) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text(f"servers: {{a: {{command: x, idleTimeout: {never}}}}}", encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        load_config(path, {})

    assert "`start: eager` keeps a server running" in caught.value.problem


def test_a_day_is_a_duration(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text("{servers: {a: {command: x}}, idleTimeout: 1d}", encoding="utf-8")

    (server,) = load_config(path, {}).servers.values()

    assert server.idle_timeout == 86_400


def test_what_is_said_of_all_does_not_stop_one_that_starts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    entries = "a: {command: x}, b: {command: x, start: eager}, c: {command: x, idleTimeout: 5m}"
    path.write_text(f"{{idleTimeout: 1h, servers: {{{entries}}}}}", encoding="utf-8")

    times = [each.idle_timeout for each in load_config(path, {}).servers.values()]

    assert times == [3600, None, 300]
