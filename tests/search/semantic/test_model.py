"""The model itself, where the extra is installed."""

import struct

import anyio
import pytest

from aggregator.names import ServerName
from aggregator.search.semantic.encoder import SentenceModel, installed
from aggregator.search.semantic.index import SemanticIndex
from aggregator.search.semantic.meaning import open_meaning
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
    wanted = model.encode("Will I need an umbrella tomorrow?")
    weather = model.encode("forecast: Rain and temperature of the coming days")
    files = model.encode("delete file: Remove a file from the disk")

    assert likeness(wanted, weather) > 2 * likeness(wanted, files)
    assert likeness(wanted, wanted) == pytest.approx(1, abs=0.001)
    assert len(wanted) == model.size


@pytest.mark.parametrize("text", ["", " ", "\x00", "a" * 100_000, "天气 예보 🌧"])
def test_any_text_has_a_vector_and_always_the_same(text: str) -> None:
    model = SentenceModel()

    assert model.encode(text) == model.encode(text)


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
