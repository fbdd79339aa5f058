"""What replicas do with a store that is not one, or that others write to."""

import json
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import coredis
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import JSONRPCResponse

from aggregator.basics.json import JsonObject
from aggregator.upstream.http.questions import Questions
from aggregator.upstream.http.replicas.mail import Mail
from aggregator.upstream.http.replicas.store import MAX_VALUE, MAX_WAITING, SCOPE, Store
from aggregator.upstream.seal import OwnCipher
from tests.downstream.login.logins import login
from tests.loopback.door import door
from tests.patience import PATIENCE
from tests.replicas.cluster import STORE, storehouse
from tests.upstream.http.replicas.pair import common, until_up
from tests.upstream.http.test_endpoint import http

pytestmark = pytest.mark.anyio

HELLO = (
    b"%4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n"
    b"$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n"
)
"""What a store says of itself."""
MAIL = f"{SCOPE}:mail".encode()


@pytest.mark.slow
@pytest.mark.skipif(STORE is None, reason="there is neither Redis nor Valkey here")
async def test_a_login_is_found_by_who_has_the_token_it_renews_and_read_by_nobody(
    tmp_path: Path,
) -> None:
    before, after = login(), login(access_token="access-2", refresh_token="refresh-2")  # noqa: S106
    async with storehouse(tmp_path) as running:
        here, there = (common(tmp_path / "state-key", name, running.url) for name in ("a", "b"))
        assert isinstance(here.mail, Mail)
        assert isinstance(there.mail, Mail)
        assert here.replica.shared_renewal is not None
        assert there.replica.shared_renewal is not None
        async with anyio.create_task_group() as group:
            for each in (here.mail, there.mail):
                group.start_soon(each.run, _ignore, _nothing)
                await until_up(each)
            async with here.replica.shared_renewal.turn(before) as known:
                assert known == before
                async with coredis.Redis.from_url(running.url) as direct:
                    assert len([key async for key in direct.scan_iter(f"{SCOPE}:renewing:*")]) == 1
                await here.replica.shared_renewal.renewed(before, after)
            async with there.replica.shared_renewal.turn(before) as known:
                assert known == after
            async with coredis.Redis.from_url(running.url) as direct:
                keys = [key async for key in direct.scan_iter("*")]
                values = [await direct.get(key) or b"" for key in keys]
            written = b"".join((*keys, *values))
            assert len(keys) == 1
            assert not any(word in written for word in (b"access", b"refresh", b"http"))
            group.cancel_scope.cancel()


@pytest.mark.slow
@pytest.mark.skipif(STORE is None, reason="there is neither Redis nor Valkey here")
async def test_what_others_write_where_something_is_kept_says_nothing(tmp_path: Path) -> None:
    loaded = json.dumps(["one__secret"])
    async with storehouse(tmp_path) as running:
        here = common(tmp_path / "state-key", "one", running.url)
        assert isinstance(here.mail, Mail)
        async with anyio.create_task_group() as group:
            group.start_soon(here.mail.run, _ignore, _nothing)
            await until_up(here.mail)
            for session in ("mine", "other"):
                here.mail.loaded(session, ["one__tool"])

            async def kept() -> dict[bytes, bytes]:
                async with coredis.Redis.from_url(running.url) as direct:
                    keys = [key async for key in direct.scan_iter(f"{SCOPE}:loaded:*")]
                    return {key: await direct.get(key) or b"" for key in keys}

            with anyio.fail_after(PATIENCE):
                while len(written := await kept()) < 2:  # noqa: ASYNC110 - it is asked
                    await anyio.sleep(0.02)
            before = await here.mail.recall("mine")
            first, second = written
            async with coredis.Redis.from_url(running.url) as direct:
                await direct.set(first, loaded)
                await direct.set(second, b"x" * (MAX_VALUE + 1))
            forged = await here.mail.recall("mine", "other")
            async with coredis.Redis.from_url(running.url) as direct:
                await direct.set(first, written[second])
                await direct.set(second, written[first])
            swapped = await here.mail.recall("mine", "other")
            assert before[0].loaded == ("one__tool",)
            assert not any(b"one__tool" in each for each in written.values())
            assert not any(each.loaded for each in (*forged, *swapped))
            group.cancel_scope.cancel()


async def test_a_store_whose_answers_hold_each_other_without_end_is_as_none() -> None:
    """Each is told in another, deeper than anybody can follow; it is left, and tried again."""
    tries = list[int]()
    again = anyio.Event()

    async def answer(stream: anyio.abc.SocketStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
            async with stream:
                await stream.receive()
                await stream.send(HELLO)
                while b"SUBSCRIBE" not in await stream.receive():
                    pass
                heard = b">3\r\n$9\r\nsubscribe\r\n$%d\r\n%b\r\n:1\r\n" % (len(MAIL), MAIL)
                await stream.send(heard)
                await stream.send(b">1\r\n" * 3000 + b":1\r\n")
                await stream.receive()

    async def catch_up() -> None:
        tries.append(1)
        if len(tries) > 1:
            again.set()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no query
        store = Store(f"redis://127.0.0.1:{port}", OwnCipher())
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, answer)
            group.start_soon(store.run, _ignore, catch_up)
            with anyio.fail_after(PATIENCE):
                await again.wait()
            group.cancel_scope.cancel()


async def test_what_was_missed_is_asked_for_until_the_store_says_it() -> None:
    """One that is read from its disk lets itself be listened to before it can be asked."""
    digest, told, again = "digest", list[frozenset[str]](), anyio.Event()

    async def answer(stream: anyio.abc.SocketStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
            async with stream:
                while asked := await stream.receive():
                    if b"MGET" in asked:
                        is_loading = len(told) < 2
                        await stream.send(
                            b"-LOADING wait\r\n" if is_loading else b"*1\r\n$1\r\nx\r\n"
                        )
                    elif b"SUBSCRIBE" in asked:
                        heard = b">3\r\n$9\r\nsubscribe\r\n$%d\r\n%b\r\n:1\r\n" % (len(MAIL), MAIL)
                        await stream.send(heard)
                    else:
                        await stream.send(HELLO)

    async def catch_up() -> None:
        told.append(frozenset())
        told[-1] = await mail.were_revoked([digest])
        again.set()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no query
        mail = Mail(Store(f"redis://127.0.0.1:{port}", OwnCipher()), "one")
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, answer)
            group.start_soon(mail.run, _ignore, catch_up)
            with anyio.fail_after(PATIENCE):
                await again.wait()
            group.cancel_scope.cancel()
    assert told == [frozenset(), {digest}]


@pytest.mark.slow
@pytest.mark.skipif(STORE is None, reason="there is neither Redis nor Valkey here")
async def test_one_of_the_same_name_is_heard_and_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two containers may be given the same host name."""
    heard, told = list[str](), anyio.Event()

    async def hear(message: JsonObject) -> None:
        heard.append(message["session"])
        if message["session"] == "last":
            told.set()

    async with storehouse(tmp_path) as running:
        one, two = (common(tmp_path / "state-key", "same", running.url).mail for _ in range(2))
        assert isinstance(one, Mail)
        assert isinstance(two, Mail)
        async with anyio.create_task_group() as group:
            group.start_soon(one.run, hear, _nothing)
            group.start_soon(two.run, _ignore, _nothing)
            for each in (one, two):
                await until_up(each)
            one.ended("own")
            two.ended("first")
            two.ended("last")
            with anyio.fail_after(PATIENCE):
                await told.wait()
            group.cancel_scope.cancel()
    assert heard == ["first", "last"]
    # Each of the two says so, once.
    assert caplog.text.count("another replica is called `same`") == 2


async def _ignore(_message: object) -> None:
    """Hear nothing."""


async def _nothing() -> None:
    """Miss nothing."""


async def test_an_answer_that_is_told_again_answers_nothing_that_is_asked_later() -> None:
    answers: list[JSONRPCResponse] = []

    async def ask(questions: Questions, *, is_answered: bool) -> None:
        async def tell(message: bytes) -> bool:
            number = json.loads(message)["id"]
            if is_answered:
                accepted = {"action": "accept"}
                answers.append(JSONRPCResponse(jsonrpc="2.0", id=number, result=accepted))
            questions.answer(answers[0])
            await anyio.lowlevel.checkpoint()
            if not is_answered:
                questions.close()
            return True

        await questions.ask(tell, "elicitation/create", None)

    await ask(Questions("one"), is_answered=True)
    # The same replica, started again, counts from the beginning.
    with pytest.raises(MCPError):
        await ask(Questions("one"), is_answered=False)
    assert Questions("two").asker(answers[0]) == "one"


async def test_an_address_of_no_store_is_told_of_without_its_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store("rediss://:pass-word@127.0.0.1:1/0?ssl_cert_reqs=what", OwnCipher())

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(store.run, _ignore, _nothing)
            while "cannot be reached" not in caplog.text:  # noqa: ASYNC110 - it tells nobody else
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    assert "pass-word" not in caplog.text


def test_what_waits_for_a_store_that_is_away_has_an_end() -> None:
    store = Store("redis://127.0.0.1:1", OwnCipher())
    mail = Mail(store, "one")

    for _ in range(100):
        mail.cancelled("session", "x" * (1 << 20))
    for number in range(100):
        mail.cancelled("session", f"{number}" * (1 << 17))
    assert 0 < store.waiting <= MAX_WAITING // 2
    mail.ended("session")
    told = store.waiting
    mail.cancelled("session", "x" * (1 << 18))
    assert store.waiting == told


@pytest.mark.slow
@pytest.mark.skipif(STORE is None, reason="there is neither Redis nor Valkey here")
async def test_what_others_have_counted_is_missing_where_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = anyio.Event()

    class Threads:
        @staticmethod
        async def run_sync(*_call: object) -> None:
            refused.set()
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr("aggregator.upstream.http.replicas.message_handling.to_thread", Threads)
    async with storehouse(tmp_path) as running:
        here, there = (common(tmp_path / "state-key", name, running.url) for name in ("a", "b"))
        assert isinstance(there.mail, Mail)
        async with (
            door({}, tmp_path, common=here, stats=tmp_path / "stats") as opened,
            anyio.create_task_group() as group,
        ):
            group.start_soon(there.mail.run, _ignore, _nothing)
            for each in (here.mail, there.mail):
                await until_up(each)
            there.mail.counted("elsewhere", [b'{"at":1}'])
            with anyio.fail_after(PATIENCE):
                await refused.wait()
            async with http(opened) as client:
                answer = await client.get(f"{opened.origin}/healthz")
            assert answer.status_code == HTTPStatus.OK
            group.cancel_scope.cancel()
