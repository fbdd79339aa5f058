"""Who counts what definitions cost: a tokenizer in a process of its own, or a vendor."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from anthropic.types import message_count_tokens_params
from openai.types.responses import input_token_count_params

from aggregator.config.tokens import TokenCounter, Tokenizer
from aggregator.fleet import counters
from aggregator.fleet.counters import CountingError, open_counter
from aggregator.fleet.tokenizer import count as tokenized
from tests.fleet.test_counting import SOURCE
from tests.host.shapes import problems
from tests.toolsearch.views import entry_of, tool

Json = dict[str, Any]


pytestmark = pytest.mark.anyio


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


async def test_what_a_tokenizer_says_at_length_is_cut_as_one_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = "raise OSError('cannot be fetched: ' + 'very ' * 100)"
    (tmp_path / "tiktoken.py").write_text(failing, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with pytest.raises(CountingError, match=r"cannot be fetched: (very )+v?e?r?y?…$"):
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
