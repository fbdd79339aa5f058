"""A child carries messages both ways, and whatever it does wrong costs at most one call."""

import json
import os
import resource
import sys
from pathlib import Path

import anyio
import pytest
from mcp_types import JSONRPCNotification

from aggregator.config import ServerConfig
from aggregator.downstream.failure import Failure
from aggregator.downstream.reach import way_to
from aggregator.downstream.stdio.child import ChildSpec, open_child
from aggregator.downstream.stdio.process import SpawnError
from aggregator.downstream.stdio.watchdog import COOKIE
from aggregator.downstream.transport import ConnectionClosedError, Line
from aggregator.names import ServerName
from tests.census import Census
from tests.downstream.stdio.running import FAULTY, Running, faulty, linked, running, until, watched
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

FLOOD = (str(FAULTY), "flood", "--size", "1000")
"""Lines so long that a busy machine, too, reads more of them in a second than it can afford."""


@pytest.mark.parametrize("era", ["handshake", "modern", "both"])
async def test_a_link_speaks_with_a_child_in_either_era(era: str, census: Census):
    async with watched(census) as watchdog:
        spec = faulty("ok", "--era", era)
        async with open_child(spec, log=print, watchdog=watchdog) as child:
            with anyio.fail_after(PATIENCE):
                async with linked(child) as link:
                    tools = (await link.request("tools/list"))["tools"]
                    assert "echo" in [tool["name"] for tool in tools]
                    called = {"name": "echo", "arguments": {"text": "hello"}}
                    result = await link.request("tools/call", called)
                    assert result["content"][0]["text"] == "hello"


@pytest.mark.parametrize(
    ("kind", "size", "text"),
    [
        ("nonutf8", 0, "caf\ufffd"),
        ("surrogate", 0, "cut \ufffd"),
        ("noise", 900, "after the noise"),
        ("trickle", 500, "x" * 500),
        ("batch", 0, "in a batch"),
        ("glued", 0, "glued"),
        ("bom", 0, "marked"),
        ("twice", 0, "first"),
        ("stranger", 0, "for you"),
        ("odd_notices", 1, "after what was odd"),
        ("storm", 2000, "after the storm"),
        ("stderr", 10_000, "after the flood"),
        ("hugeline", 100_000, "x" * 99_927),
    ],
)
async def test_an_odd_answer_is_understood(kind: str, size: int, text: str, census: Census):
    async with watched(census) as watchdog:
        spec = faulty(max_message_bytes=100_000)
        async with running(spec, watchdog) as server:
            with anyio.fail_after(PATIENCE):
                assert await server.text("fault", kind=kind, size=size) == text
                assert await server.text("echo", text="still there") == "still there"


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        ("null", 0, "its `result` is not an object"),
        ("text_result", 0, "its `result` is not an object"),
        ("garbage", 0, "it is not valid JSON"),
        ("deep", 0, "nested too deeply"),
        ("bigint", 0, "it is not valid JSON"),
        ("hugeline", 2_000_001, "its 2,000,001 bytes are more than the 2,000,000"),
        ("hugeline", 20_000_000, "its 20,000,000 bytes are more than the 2,000,000"),
        ("hugetail", 3_000_000, "are more than the 2,000,000"),
    ],
)
async def test_an_unusable_answer_fails_its_call_at_once_and_no_other(
    kind: str, size: int, message: str, census: Census
):
    async with watched(census) as watchdog:
        spec = faulty(max_message_bytes=2_000_000)
        async with running(spec, watchdog) as server:
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as group:
                    group.start_soon(server.text, "wait")
                    error = await server.error("fault", kind=kind, size=size)
                    assert message in str(error)
                    assert await server.text("release") == "released"


async def test_results_pass_unchanged(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        with anyio.fail_after(PATIENCE):
            assert await server.call("fault", kind="wrong_shape") == {"content": 7}
            odd = await server.call("fault", kind="nan")
            assert repr(odd["structuredContent"]) == "{'n': nan, 'm': -inf}"


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        ("die", "it was ended by SIGKILL"),
        ("exit", "it exited with status 3"),
        ("partial", "it exited with status 0"),
        ("close_stdout", "it closed its output"),
        ("fork_and_die", "it was ended by SIGKILL"),
    ],
)
async def test_a_child_that_goes_away_is_noticed_at_once(kind: str, end: str, census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(_expect_closed, server, "wait")
                group.start_soon(_expect_any_error, server, kind)
            assert server.child.closed.is_set()
            assert server.child.describe_end() == end
            assert repr(server.child) == f"<Child {server.child.pid} {end}>"
            assert isinstance(await server.error("echo"), ConnectionClosedError)


async def _expect_closed(server: Running, tool: str) -> None:
    assert isinstance(await server.error(tool), ConnectionClosedError)


async def _expect_any_error(server: Running, kind: str) -> None:
    assert str(await server.error("fault", kind=kind))


async def test_a_child_that_closes_its_input_is_given_up_at_the_next_message(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        with anyio.fail_after(PATIENCE):
            await server.text("fault", kind="close_stdin")
            assert isinstance(await server.error("echo"), ConnectionClosedError)
            await server.child.closed.wait()
            assert server.child.describe_end() == "it stopped reading"


@pytest.mark.no_cover
async def test_only_noise_that_does_not_let_up_ends_the_connection(
    census: Census, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("aggregator.jsonrpc.flood.LASTING", 0.1)
    monkeypatch.setattr("aggregator.jsonrpc.flood.AT_ONCE", 16 << 20)
    server = ServerConfig(ServerName("loud"), "loud", command=sys.executable, args=FLOOD)
    async with watched(census) as watchdog:
        connect = way_to(server, watchdog)
        for said in ("it wrote thousands of lines", "it is flooding: started anew, again it wrote"):
            async with connect() as child:
                with pytest.raises(anyio.EndOfStream):
                    await child.receive()
                assert child.describe_end().startswith(said)
                assert child.is_barred() == said.startswith("it is")
                assert child.noise_count >= 4096


async def test_chatter_costs_a_child_nothing(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        for _ in range(2):
            text = await server.text("fault", kind="noise", size=20_000)
            assert text == "after the noise"
        assert server.child.noise_count == 40_000
        assert len(server.logged) == 5


async def test_what_a_child_prints_in_place_of_messages_is_among_its_last_words(census: Census):
    prints = ChildSpec("sh", ["-c", "echo ' hello world'; exec cat >&2"])
    async with watched(census) as watchdog, running(prints, watchdog) as server:
        with anyio.fail_after(PATIENCE):
            await until(lambda: server.child.noise_count == 1)
        assert Line("hello world", is_noise=True) in server.child.last_words()


async def test_what_a_child_prints_between_messages_is_not_among_its_last_words(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        with anyio.fail_after(PATIENCE):
            await server.text("echo", text="x")
            await server.text("fault", kind="noise")
        assert server.child.noise_count
        assert not server.child.last_words()


SPEAKS_BETWEEN = r"""
echo before >&2; read -r _; echo '{"jsonrpc":"2.0","method":"notifications/progress"}'
read -r _; [ -n "$1" ] && echo "$1" >&2; read -r _; kill -9 $$
"""


@pytest.mark.parametrize("after", ["", "out of memory"])
async def test_what_a_child_wrote_before_its_last_message_does_not_tell_of_a_signal(
    after: str, census: Census
):
    speaks = ChildSpec("bash", ["-c", SPEAKS_BETWEEN, "speaks", after])
    said = ["before", after] if after else ["before"]
    go_on = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")

    async with watched(census) as watchdog, running(speaks, watchdog) as server:
        with anyio.fail_after(PATIENCE):
            await until(lambda: len(server.child.last_words()) == 1)
            await server.child.send(go_on)
            await until(lambda: bool(server.notified))
            await server.child.send(go_on)
            await until(lambda: len(server.child.last_words()) == len(said))
            await server.child.send(go_on)
            await server.child.closed.wait()

        ended = Failure(server.child.describe_end()).with_words(server.child.last_words())
    told = f"; its last words: {after}" if after else ""
    assert ended.reason == f"it was ended by SIGKILL{told}"
    assert list(ended.last_words) == said


async def test_a_blocked_write_is_seen_and_holds_up_no_caller(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        with anyio.fail_after(PATIENCE):
            await server.text("fault", kind="stop_reading")
            assert server.child.write_blocked_since is None
            for _ in range(3):
                with anyio.move_on_after(0.05) as scope:
                    await server.text("echo", text="x" * 1_000_000)
                assert scope.cancelled_caught
            since = server.child.write_blocked_since
            assert since is not None
            assert since <= anyio.current_time()


async def test_large_messages_go_both_ways_at_once(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        texts = [str(number) * 300_000 for number in range(10)]
        answers = dict[str, str]()

        async def echo(text: str) -> None:
            answers[text] = await server.text("echo", text=text)

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                for text in texts:
                    group.start_soon(echo, text)
        assert answers == {text: text for text in texts}


async def test_a_child_gets_what_it_was_given_and_nothing_else(
    census: Census, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET_OF_SOMEBODY_ELSE", "canary")
    leaked = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(leaked, True)
    odd = ["$(touch x)", "; touch x", "a\nb", "--", ""]
    async with watched(census) as watchdog:
        env, inherited = {"API_KEY": "value", "PATH": "/bin"}, {"PATH": "/sbin", "LANG": "C.UTF-8"}
        spec = faulty("ok", "--x", *odd, env=env, inherited=inherited, cwd=tmp_path)
        async with running(spec, watchdog) as server:
            with anyio.fail_after(PATIENCE):
                given = json.loads(await server.text("environment"))
    os.close(leaked)
    assert given["arguments"][2:] == odd
    assert given["cwd"] == str(tmp_path)
    assert given["leads_session"]
    assert given["descriptors"] in ([0, 1, 2], [0, 1, 2, 3])
    # The interpreter may add its own locale.
    assert set(given["environ"]) - {"LC_CTYPE"} == {"API_KEY", "PATH", "LANG", COOKIE}
    assert given["environ"]["PATH"] == "/bin"
    assert given["environ"][COOKIE] == watchdog.cookie


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (ChildSpec("no-such-command"), "the command `no-such-command` was not found on PATH"),
        (ChildSpec("uvx", env={"PATH": "/nowhere"}), "on PATH; it comes with uv"),
        (ChildSpec("npx", env={"PATH": "/nowhere"}), "on PATH; it comes with Node.js"),
        (ChildSpec("/no/such"), "the command `/no/such` does not exist"),
        (ChildSpec("/etc/passwd"), "the command `/etc/passwd` is not executable"),
        (ChildSpec("cat", cwd="/no/such"), "the working directory `/no/such` does not exist"),
        (ChildSpec("a\0b"), "could not be started: embedded null byte"),
    ],
)
async def test_a_child_that_cannot_be_started_says_why(
    spec: ChildSpec, reason: str, census: Census
):
    async with watched(census) as watchdog:
        with pytest.raises(SpawnError) as caught:
            async with open_child(spec, log=print, watchdog=watchdog):
                raise AssertionError
        assert str(caught.value).endswith(reason)


async def test_a_child_that_ends_without_a_message_is_said_not_to_speak_mcp(census: Census):
    async with watched(census) as watchdog:
        async with open_child(ChildSpec("true"), log=print, watchdog=watchdog) as child:
            with anyio.fail_after(PATIENCE):
                await until(lambda: "exited" in child.describe_end())
            assert child.describe_end() == "it exited with status 0 without speaking MCP"


async def test_a_child_for_which_there_is_no_thread_says_why(
    census: Census, monkeypatch: pytest.MonkeyPatch
):
    async def refuse(*_arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("anyio.to_thread.run_sync", refuse)
    async with watched(census) as watchdog:
        with pytest.raises(SpawnError, match="could not be started: can't start new thread"):
            async with open_child(ChildSpec("cat"), log=print, watchdog=watchdog):
                raise AssertionError


async def test_a_child_that_finds_no_descriptor_leaves_none(census: Census):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reasons = list[str]()
    async with watched(census) as watchdog:
        for spare in range(12):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit_leaving(spare), hard))
            try:
                async with open_child(ChildSpec("cat"), log=print, watchdog=watchdog):
                    break
            except SpawnError as error:
                reasons.append(str(error))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert set(reasons) == {"the command `cat` could not be started: Too many open files"}
    assert len(reasons) < 12


def limit_leaving(spare: int) -> int:
    """Return the limit under which so many descriptors more can be opened."""
    opened = [os.dup(0) for _ in range(spare + 1)]
    for each in opened:
        os.close(each)
    return max(opened)
