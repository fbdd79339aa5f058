"""`aggregator serve` as clients start it: real processes, raw lines, both eras."""

import json
import os
import signal
from io import FileIO
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.patience import PATIENCE
from tests.processes.driver import aggregator, faulty, texts

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ERAS = ("handshake", "modern")
SERVERS = {"uri": "catalog://servers"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("era", ERAS)
async def test_a_slow_server_holds_up_nobody_and_is_there_in_the_end(
    tmp_path: Path, era: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    slow = faulty("slow_start", "--until", str(pipe))

    async with aggregator(tmp_path, {"slow": slow}, era=era) as client:
        listed = (await client.ask("tools/list"))["result"]["tools"]
        search = await client.call("ToolSearch", query="echo")
        with pipe.open("r+b", buffering=0) as held:
            held.write(b"begin\n")
            waited = await client.call("ToolSearch", query="echo", wait=15)
        called = await client.call("CallTool", name="slow__echo", arguments={"text": "hello"})

    assert [tool["name"] for tool in listed] == ["ToolSearch", "CallTool", "CallReadOnlyTool"]
    assert "slow" in texts(search)
    assert "slow__echo" in texts(waited)
    assert "hello" in texts(called)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_starts_a_process_for_each_call_finds_and_calls(
    tmp_path: Path, era: str
) -> None:
    servers = {f"s{number}": faulty() for number in range(3)}
    found: dict[str, Any] = {}
    for attempt in range(5):
        # Where nothing is remembered, and again if the machine needs longer to start them than a
        # search waits for it: that says nothing about the search.
        directory = tmp_path / str(attempt)
        directory.mkdir()
        async with aggregator(directory, servers, era=era) as client:
            found = await client.call("ToolSearch", query="echo")
        if not found["_meta"]["aggregator/search"]["pending_mcp_servers"]:
            break
    async with aggregator(tmp_path, servers, era=era) as client:
        called = await client.call("CallTool", name="s2__echo", arguments={"text": "hello"})

    assert all(f"{name}__echo" in texts(found) for name in servers)
    assert "hello" in texts(called)


async def test_the_list_is_announced_before_the_search_is_answered(tmp_path: Path) -> None:
    """Clients that list again do so on the notification; after the answer it is too late."""
    async with aggregator(tmp_path, {"one": faulty()}, surface="promote") as client:
        await client.ask("tools/list")
        await client.call("ToolSearch", query="", wait=15)
        for query in ("echo", "wait release", "environment", "fault"):
            before = len(client.lines)
            await client.call("ToolSearch", query=query, max_results=1)
            written = client.lines[before:]

            assert [line.get("method") for line in written] == [
                "notifications/tools/list_changed",
                None,
            ]


async def test_the_list_of_a_relay_is_the_same_to_the_byte_after_forty_searches(
    tmp_path: Path,
) -> None:
    async with aggregator(tmp_path, {"one": faulty()}, surface="relay") as client:
        await client.call("ToolSearch", query="", wait=15)
        before = (await client.ask("tools/list"))["result"]
        for number in range(40):
            await client.call("ToolSearch", query=f"echo {number}")
        after = (await client.ask("tools/list"))["result"]

    assert json.dumps(after) == json.dumps(before)


@pytest.mark.parametrize("era", ERAS)
async def test_requests_sent_before_the_input_ended_are_answered(tmp_path: Path, era: str) -> None:
    """As in `printf ... | aggregator serve`."""
    async with aggregator(tmp_path, {"one": faulty()}, era=era) as client:
        wanted = await client.send("tools/call", {"name": "one__echo", "arguments": {"text": "x"}})
        await client.end_input()
        answer = await client.read()

        assert await client.rest() == b""
        assert await client.ended() == 0

    assert answer["id"] == wanted
    assert "x" in texts(answer["result"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_quietly(tmp_path: Path, number: signal.Signals) -> None:
    stubborn = faulty("ok", "--ignore-eof", "--ignore-term", "--fork")

    async with aggregator(tmp_path, {"one": faulty(), "two": stubborn}) as client:
        await client.call("ToolSearch", query="", wait=15)
        client.signal(number)

        assert await client.rest() == b""
        assert await client.ended() == 0


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    log = tmp_path / "received"
    os.mkfifo(log)
    stubborn = faulty("ok", "--ignore-eof", "--ignore-term", "--log", str(log))

    with log.open("r+b", buffering=0) as received:
        async with aggregator(tmp_path, {"two": stubborn}) as client:
            await client.call("ToolSearch", query="", wait=15)
            client.signal(signal.SIGTERM)
            await until_read(received, b"end of input\n")
            client.signal(signal.SIGTERM)

            assert await client.ended() == 128 + signal.SIGTERM


async def until_read(pipe: FileIO, words: bytes) -> None:
    """Read a pipe until it has said something."""
    said = b""
    with anyio.fail_after(PATIENCE):
        while words not in said:
            await anyio.wait_readable(pipe)
            said += pipe.read(1 << 16)


@pytest.mark.parametrize("era", ERAS)
async def test_a_line_that_cannot_be_read_is_answered_and_harms_nothing(
    tmp_path: Path, era: str
) -> None:
    async with aggregator(tmp_path, {}, era=era) as client:
        for line in (b"nonsense", b"{", b"[]", b'"text"', b"\xff\xfe", b'{"id": 1}'):
            await client.write(line)
            complaint = await client.read()
            listed = await client.ask("tools/list")

            assert complaint["error"]["code"] == -32700, line
            assert "result" in listed, line


@pytest.mark.parametrize("era", ERAS)
async def test_what_nobody_asked_for_is_harmless(tmp_path: Path, era: str) -> None:
    async with aggregator(tmp_path, {}, era=era) as client:
        await client.notify("notifications/cancelled", {"requestId": 1, "reason": "late"})
        await client.notify("notifications/unheard/of", {"x": 1})
        unknown = await client.ask("tools/unheard_of")
        listed = await client.ask("tools/list")

    assert unknown["error"]["code"] == -32601
    assert "result" in listed


async def test_a_changed_file_is_applied_and_leaves_other_servers_alone(tmp_path: Path) -> None:
    log = tmp_path / "received"
    steady = faulty("ok", "--log", str(log))
    path = tmp_path / "servers.yaml"

    async with aggregator(tmp_path, {"one": steady}) as client:
        await client.call("ToolSearch", query="", wait=15)
        before = await client.call("one__environment")
        path.write_text(json.dumps({"servers": {"one": steady, "two": faulty()}}), encoding="utf-8")
        with anyio.fail_after(PATIENCE):
            while '\\"two\\"' not in json.dumps(await client.ask("resources/read", SERVERS)):
                pass
        await client.call("two__echo", text="there")
        path.write_text("servers: [", encoding="utf-8")
        client.signal(signal.SIGHUP)
        still = await client.call("two__echo", text="still there")
        after = await client.call("one__environment")

    assert "still there" in texts(still)
    assert texts(after) == texts(before)
    assert log.read_text(encoding="utf-8").count('"tools/list"') == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_has_what_programs_need_and_nothing_that_is_not_its_own(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {"HTTPS_PROXY": "http://proxy", "SSL_CERT_FILE": "/ca.pem", "UV_CACHE_DIR": "/cache"}
    for name, value in {**needed, "GITHUB_TOKEN": "canary", "UV_PUBLISH_TOKEN": "canary"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TEAM_NAME", "blue")
    servers = {"plain": faulty(), "team": {**faulty(), "inheritEnv": ["TEAM_*"]}}

    async with aggregator(tmp_path, servers, era=era, env={"LEVEL": "debug"}) as client:
        plain, team = [
            json.loads(texts(await client.call(f"{name}__environment")))["environ"]
            for name in servers
        ]

    for name, value in {**needed, "LEVEL": "debug", "PATH": os.environ["PATH"]}.items():
        assert plain[name] == team[name] == value
    assert "canary" not in {*plain.values(), *team.values()}
    assert "TEAM_NAME" not in plain
    assert team["TEAM_NAME"] == "blue"
