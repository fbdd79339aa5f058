"""A search by meaning, as a client sees it."""

import sys
from pathlib import Path

import anyio
import pytest

from aggregator.search.semantic.index import SemanticIndex
from tests.patience import PATIENCE
from tests.peers import ERAS, Era, Peer, aggregating, connect_to, ready, text_of, visiting

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
pytest.importorskip("numpy")

PROGRAM = str(Path(__file__).with_name("ngrams.py"))


@pytest.mark.parametrize("era", ERAS)
async def test_what_no_word_finds_is_found_once_meanings_are_known(
    era: Era, tmp_path: Path
) -> None:
    """No word of the query is a word of the tool, but three letters in a row are."""
    peer = Peer(umbrella={"description": "Waterproof"}, hammer={"description": "Hits"})
    query = {"query": "waterfall proofread"}
    meaning = SemanticIndex([sys.executable, PROGRAM, str(tmp_path / "vectors.db")])

    async with aggregating({"shop": connect_to(peer, era)}) as upstream:
        upstream.fleet.meaning = meaning
        async with visiting(upstream, era) as client, anyio.create_task_group() as group:
            await ready(upstream)
            before = text_of(await client.call_tool("ToolSearch", query))
            group.start_soon(meaning.run)
            with anyio.fail_after(PATIENCE):
                await meaning.until_ready()
            after = text_of(await client.call_tool("ToolSearch", query))
            assert "shop__umbrella" not in before
            assert "shop__umbrella" in after
            assert "shop__hammer" not in after
            group.cancel_scope.cancel()
