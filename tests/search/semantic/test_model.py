"""The model itself, where the extra is installed."""

import struct

import anyio
import pytest

from aggregator.names import ServerName
from aggregator.search.semantic.encoder import SentenceModel, installed
from aggregator.search.semantic.index import SemanticIndex
from aggregator.search.semantic.meaning import open_meaning
from aggregator.search.semantic.weighing import Commonness
from tests.patience import PATIENCE
from tests.search.tools import entry, names

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not installed(), reason="needs mcp-tool-aggregator[semantic]"),
]


def likeness(one: bytes, other: bytes) -> float:
    numbers = f"<{len(one) // 2}e"
    pairs = zip(struct.unpack(numbers, one), struct.unpack(numbers, other), strict=True)
    return sum(first * second for first, second in pairs)


def test_texts_of_like_meaning_are_near_without_a_word_in_common() -> None:
    model = SentenceModel()
    wanted = model.request("Will I need an umbrella tomorrow?", Commonness())
    weather = model.tool("forecast: Rain and temperature of the coming days")
    files = model.tool("delete file: Remove a file from the disk")

    assert likeness(wanted, weather) > 2 * likeness(wanted, files)
    assert likeness(wanted, wanted) == pytest.approx(1, abs=0.001)
    assert len(wanted) == model.size


@pytest.mark.parametrize("text", ["", " ", "\x00", "a" * 100_000, "天气 예보 🌧"])
def test_any_text_has_a_vector_and_always_the_same(text: str) -> None:
    model = SentenceModel()

    assert model.tool(text) == model.tool(text)
    assert likeness(model.tool(text), model.request(text, Commonness())) > 0.99


def test_what_every_tool_has_says_little_of_a_request() -> None:
    model = SentenceModel()
    texts = ["photos find: Find photos", "photos delete: Delete photos"]
    every, none = Commonness(model.pieces(text) for text in texts * 50), Commonness()
    find = model.request("find", none)

    weighed = likeness(model.request("find photos", every), find)

    assert weighed > likeness(model.request("find photos", none), find)
    assert model.request("", every) == model.request("", none)


def test_what_follows_the_first_sentence_of_a_tool_counts_less() -> None:
    model = SentenceModel()
    other = model.tool("notes: Ask for a key first")
    first = model.tool("notes: Ask for a key first. Writes a note")
    last = model.tool("notes: Writes a note. Ask for a key first")

    assert likeness(first, other) > likeness(last, other)


@pytest.mark.anyio
async def test_the_model_answers_through_its_process() -> None:
    index = open_meaning(None)
    assert isinstance(index, SemanticIndex)
    tools = [
        entry("world__forecast", "Rain and temperature of the coming days"),
        entry("world__rates", "Exchange rates of currencies"),
    ]
    async with anyio.create_task_group() as group:
        group.start_soon(index.run)
        index.update(ServerName("world"), tools)
        with anyio.fail_after(PATIENCE):
            await index.until_ready()
        found = await index.nearness("Will I need an umbrella tomorrow?")
        assert found is not None
        assert names(found.nearest(1, 0.25)) == ["world__forecast"]
        group.cancel_scope.cancel()
