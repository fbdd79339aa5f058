"""What definitions cost is counted once for each set of tools, while others go on."""

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import pytest
from anthropic.types import message_count_tokens_params
from openai.types.responses import input_token_count_params

from aggregator.basics.signals import Signal
from aggregator.catalog import BY_LENGTH, Scale, ToolEntry
from aggregator.config import Settings
from aggregator.config.mode import ToolSearchMode
from aggregator.config.tokens import TokenCounter, Tokenizer
from aggregator.fleet import counters
from aggregator.fleet.counters import CountingError, open_counter
from aggregator.fleet.counting import SECTION, Counting, tools_of
from aggregator.fleet.now import Now
from aggregator.fleet.tokenizer import count as tokenized
from aggregator.memory import Memory, NoMemory, Notebook
from aggregator.names import ServerName
from tests.host.shapes import problems
from tests.peers import configured
from tests.toolsearch.views import entry_of, ready, tool

DB, WEB = ServerName("db"), ServerName("web")
SOURCE = Tokenizer("tiktoken", "any")

Json = dict[str, Any]

pytestmark = pytest.mark.anyio


class Shown:
    """What is known, and is told what it weighs."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.now = Now.starting(configured({DB: {}, WEB: {}}, settings), since=0.0)
        self.changed = Signal()
        self.weighed = 0

    def offer(self, server: ServerName, *names: str) -> None:
        each = (tool(name, "Does what its name says") for name in names)
        self.now = self.now.with_state(server, ready(server, *each))
        self.changed.send()

    def weigh(self, scale: Scale, problem: str | None, /) -> None:
        self.now = self.now.with_scale(scale, problem)
        self.weighed += 1
        self.changed.send()

    def tokens(self, server: ServerName) -> float:
        catalog = self.now.catalog
        return round(catalog.scale.cost(catalog.known[server].entries), 6)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.changed.wait()


class Counter:
    """Says that each tool costs so many tokens."""

    def __init__(self, tokens: int, *failures: CountingError) -> None:
        self.asked: list[list[str]] = []
        self._tokens = tokens
        self._failures = list(failures)

    async def __call__(self, entries: Sequence[ToolEntry]) -> int:
        self.asked.append([entry.name for entry in entries])
        await anyio.lowlevel.checkpoint()
        if self._failures:
            raise self._failures.pop(0)
        return self._tokens * len(entries)


def counting(count: Counter, memory: Memory | None = None) -> Counting:
    return Counting(SOURCE, count, memory or NoMemory())


async def test_each_set_of_tools_is_counted_once() -> None:
    shown, count = Shown(), Counter(10)
    shown.offer(DB, "query", "explain")
    async with anyio.create_task_group() as group:
        group.start_soon(counting(count).keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        shown.offer(WEB, "fetch")
        await shown.until(lambda: WEB in shown.now.catalog.scale.counted)
        shown.offer(WEB, "fetch")
        shown.offer(WEB, "fetch", "crawl_deeply")
        await shown.until(lambda: len(count.asked) == 3 and shown.tokens(WEB) == 20)
        group.cancel_scope.cancel()

    assert count.asked == [
        ["db__query", "db__explain"],
        ["web__fetch"],
        ["web__fetch", "web__crawl_deeply"],
    ]
    assert shown.tokens(DB) == 20
    assert not shown.now.catalog.scale.awaits(shown.now.catalog.known)


async def test_what_was_counted_in_another_run_holds_from_the_first_moment_on(
    tmp_path: Path,
) -> None:
    shown, memory = Shown(), Notebook(tmp_path / "state.json")
    shown.offer(DB, "query")
    async with anyio.create_task_group() as group:
        group.start_soon(counting(Counter(7), memory).keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        group.cancel_scope.cancel()
    assert memory.save()

    again = Shown()
    again.offer(DB, "query")
    other = Counter(7)
    counting(other, Notebook(tmp_path / "state.json")).recall(again)
    assert again.tokens(DB) == 7
    assert other.asked == []

    elsewhere = Shown()
    elsewhere.offer(DB, "query")
    by_another = Counting(Tokenizer("tiktoken", "other"), other, Notebook(tmp_path / "state.json"))
    by_another.recall(elsewhere)
    assert elsewhere.now.catalog.scale.awaits([DB])


@pytest.mark.parametrize("junk", [0.0, -3.0, 1e9, "4.0", None, [4.0], True])
async def test_what_nobody_can_have_counted_is_counted_again(junk: object) -> None:
    shown, memory, count = Shown(), Notebook(None), Counter(5)
    shown.offer(DB, "query")
    async with anyio.create_task_group() as group:
        group.start_soon(counting(count, memory).keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        group.cancel_scope.cancel()
    (key,) = memory.take().facts
    memory.put(*key, junk)

    again = Shown()
    again.offer(DB, "query")
    counting(count, memory).recall(again)

    assert key[0] == SECTION
    assert again.now.catalog.scale.awaits([DB])


async def test_what_cannot_be_counted_is_told_by_its_length_and_once_in_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shown = Shown()
    shown.offer(DB, "query")
    shown.offer(WEB, "fetch")
    count = Counter(5, CountingError("it is down"), CountingError("it is down again"))
    by_length = BY_LENGTH.cost(shown.now.catalog.known[DB].entries)
    async with anyio.create_task_group() as group:
        group.start_soon(counting(count).keep, shown)
        await shown.until(lambda: {DB, WEB} <= shown.now.catalog.scale.counted.keys())
        group.cancel_scope.cancel()

    assert shown.tokens(DB) == round(by_length, 6)
    assert shown.now.uncounted == "it is down, so tokens are told by length"
    assert [record.getMessage() for record in caplog.records] == [
        "`tokens`: it is down, so tokens are told by length"
    ]


async def test_nobody_is_asked_again_who_can_count_nothing() -> None:
    shown = Shown()
    shown.offer(DB, "query")
    shown.offer(WEB, "fetch")
    count = Counter(5, CountingError("it is not installed", is_final=True))

    await counting(count).keep(shown)

    assert len(count.asked) == 1
    assert not shown.now.catalog.scale.awaits(shown.now.catalog.known)


async def test_a_count_that_cannot_be_is_none() -> None:
    shown, count = Shown(), Counter(10_000_000)
    shown.offer(DB, "query")
    async with anyio.create_task_group() as group:
        group.start_soon(counting(count).keep, shown)
        await shown.until(lambda: shown.now.uncounted is not None)
        group.cancel_scope.cancel()

    assert "a token is said to have" in str(shown.now.uncounted)


async def test_what_auto_decides_by_a_guess_it_decides_again_once_it_is_counted() -> None:
    """A guess that stays would make whatever is counted later useless."""
    mode = ToolSearchMode.parse("auto:1")
    shown = Shown(Settings(tool_search=mode, context_window=10_000))
    subject = counting(Counter(4))
    subject.recall(shown)
    shown.offer(DB, *(f"tool_{number}" for number in range(20)))
    assert shown.now.deferral.deferring
    async with anyio.create_task_group() as group:
        group.start_soon(subject.keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        group.cancel_scope.cancel()
    assert not shown.now.deferral.deferring
    assert shown.now.deferral.tokens == 80
    assert "about 80 tokens" in shown.now.deferral.why


async def test_what_auto_decides_by_a_count_it_keeps() -> None:
    mode = ToolSearchMode.parse("auto:1")
    shown = Shown(Settings(tool_search=mode, context_window=10_000))
    subject = counting(Counter(50))
    shown.offer(DB, "one", "two", "three")
    async with anyio.create_task_group() as group:
        group.start_soon(subject.keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        assert shown.now.deferral.deferring
        shown.offer(DB)
        await shown.until(lambda: not shown.now.catalog.known[DB].entries)
        group.cancel_scope.cancel()
    assert shown.now.deferral.deferring


def test_another_profile_is_told_nothing_of_servers_it_does_not_see() -> None:
    scale = Scale.of({DB: 2.0, WEB: 4.0}, is_growing=True)

    assert scale.usual == 3.0
    assert scale.only({WEB}) == Scale.of({WEB: 4.0}, is_growing=True)
    assert scale.only({DB, WEB}) is scale
    assert scale.tokens_of_text(7) == 3
    assert not BY_LENGTH.awaits([DB])


ENTRIES = (
    entry_of(tool("query", "Runs a query", table={"type": "string"}), "db"),
    entry_of({"name": "pick", "inputSchema": {"anyOf": [{"type": "object"}]}}, "db"),
)


def vocabulary(path: Path) -> Path:
    """Write a tokenizer down for which each character is a token."""
    splitting = {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated"}
    model = {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"}
    nothing = dict.fromkeys(
        ("truncation", "padding", "normalizer", "post_processor", "decoder"), None
    )
    whole: Json = {"version": "1.0", "added_tokens": [], **nothing, "model": model}
    path.write_text(
        json.dumps({**whole, "pre_tokenizer": {**splitting, "invert": False}}), encoding="utf-8"
    )
    return path


async def test_a_tokenizer_of_a_file_counts_in_a_process_of_its_own(tmp_path: Path) -> None:
    count = open_counter(Tokenizer("tokenizers", str(vocabulary(tmp_path / "each.json"))))

    # Each is told with two ends of lines.
    assert await count(ENTRIES) == sum(each.characters + 2 for each in ENTRIES)


async def test_an_encoding_of_the_other_package_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own would be fetched from elsewhere: another one stands in its place."""
    (tmp_path / "tiktoken.py").write_text(
        "class E:\n def encode_ordinary(self, text): return text.split()\n"
        "def get_encoding(name): return {'words': E()}[name]\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    words = await open_counter(Tokenizer("tiktoken", "words"))(ENTRIES)
    with pytest.raises(CountingError, match="`tiktoken` cannot use `other`: KeyError") as refused:
        await open_counter(Tokenizer("tiktoken", "other"))(ENTRIES)

    texts = [f"{e.name} {e.description} {e.schema_text}" for e in ENTRIES]
    assert words == sum(len(text.split()) for text in texts)
    assert refused.value.is_final


def test_a_package_that_is_not_installed_is_named() -> None:
    assert tokenized("nowhere_to_be_found", "x", []) == {
        "problem": "the package `nowhere_to_be_found` is not installed"
    }


async def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CountingError, match=r"cannot use .*none\.json`: FileNotFoundError"):
        await open_counter(Tokenizer("tokenizers", str(tmp_path / "none.json")))(ENTRIES)


async def test_a_tokenizer_that_dies_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiktoken.py").write_text("import os; os._exit(9)", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with pytest.raises(CountingError, match="`tiktoken` cannot use `any`: it ended with 9"):
        await open_counter(SOURCE)(ENTRIES)


async def test_a_tokenizer_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiktoken.py").write_text("import time; time.sleep(600)", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(counters, "PATIENCE", 0.5)

    with pytest.raises(CountingError, match="took longer than"):
        await open_counter(SOURCE)(ENTRIES)


@contextmanager
def vendor(
    path: str, answer: Callable[[Json], tuple[int, bytes]]
) -> Generator[tuple[str, list[tuple[Json, Json]]], None, None]:
    """Serve a counter; give its address, and what it was sent."""
    sent: list[tuple[Json, Json]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent.append(({key.lower(): value for key, value in self.headers.items()}, body))
            status, text = answer(body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{path}", sent
        finally:
            server.shutdown()
            thread.join()


def weight(body: Json) -> tuple[int, bytes]:
    """Answer as vendors do: so much for any tools at all, and so much for each."""
    tokens = 480 + 100 * len(body["tools"])
    return 200, json.dumps({"input_tokens": tokens}).encode()


async def test_a_counter_of_anthropic_counts_what_tools_add() -> None:
    with vendor("/v1/messages/count_tokens", weight) as (url, sent):
        count = open_counter(TokenCounter(url, "claude-opus-5", "the-key"))

        assert await count(ENTRIES) == 200
        assert await count(ENTRIES[:1]) == 100

    assert len(sent) == 3
    for headers, body in sent:
        assert headers["x-api-key"] == "the-key"
        assert headers["anthropic-version"]
        assert problems(body, message_count_tokens_params.MessageCountTokensParams) == []


async def test_a_counter_of_openai_counts_what_tools_add() -> None:
    with vendor("/v1/responses/input_tokens", weight) as (url, sent):
        assert await open_counter(TokenCounter(url, "gpt-5.4", "the-key"))(ENTRIES) == 200

    for headers, body in sent:
        assert headers["authorization"] == "Bearer the-key"
        assert problems(body, input_token_count_params.InputTokenCountParams) == []


async def test_thousands_of_tools_are_counted_some_at_a_time() -> None:
    many = [entry_of(tool(f"tool_{number}"), "db") for number in range(1_100)]
    with vendor("/count_tokens", weight) as (url, sent):
        assert await open_counter(TokenCounter(url, "m"))(many) == 110_000

    assert [len(body["tools"]) for _, body in sent] == [1, 501, 501, 101]
    assert "x-api-key" not in sent[0][0]


@pytest.mark.parametrize(
    ("status", "text", "words", "is_final"),
    [
        (400, b'{"error": "tool db__query is odd"}', "answered 400", False),
        (401, b"", "answered 401", True),
        (302, b"", "answered 302", False),
        (200, b"<html>", "does not say `input_tokens`", True),
        (200, b'{"input_tokens": "5"}', "does not say `input_tokens`", True),
        (200, b"x" * 70_000, "sent more than 65,536 bytes", False),
    ],
)
async def test_what_a_counter_refuses_is_told_without_its_words(
    status: int, text: bytes, words: str, *, is_final: bool
) -> None:
    with vendor("/count_tokens", lambda _body: (status, text)) as (url, _sent):
        with pytest.raises(CountingError) as refused:
            await open_counter(TokenCounter(url, "m", "the-key"))(ENTRIES)

    assert str(refused.value) == f"`127.0.0.1` {words}"
    assert refused.value.is_final is is_final


async def test_a_counter_that_is_not_there_is_told_of() -> None:
    with vendor("/count_tokens", weight) as (url, _sent):
        pass

    with pytest.raises(CountingError, match=r"`127\.0\.0\.1` cannot be reached"):
        await open_counter(TokenCounter(url, "m"))(ENTRIES)


def test_tools_are_known_of_servers_that_are() -> None:
    shown = Shown()
    shown.offer(DB, "query")

    assert [*tools_of(shown.now.catalog)] == [DB]
