"""What is told beside tools takes nothing from them, and is found by its own words."""

import anyio
import pytest

from aggregator.config.kinds import FOUND
from aggregator.toolsearch.beside import NothingBeside, Shown
from benchmarks.offers import filled, known, others, own_words, recall, view_of
from benchmarks.retrieval import DATA, evaluation
from tests.toolsearch.views import GITHUB, SLACK, ask, names
from tests.toolsearch.views import view_of as small_view


@pytest.mark.no_cover
@pytest.mark.skipif(not DATA.exists(), reason="needs the catalogs beside the project")
def test_prompts_and_skills_take_nothing_from_tools_and_are_found_by_their_own_words():
    found = evaluation()
    tools, queries = found["load_task"]("livemcpbench/steps")
    now = known(tools, *others(found))
    other_offers = anyio.run(filled, now)
    view = view_of(now, Shown(other_offers, FOUND))

    alone = recall(view_of(now, Shown()), queries, found["score"])
    beside = recall(view, queries, found["score"])

    assert beside[0] >= alone[0] - 0.005
    assert beside[1] >= alone[1] - 0.005
    assert beside[2] < 1
    kinds = {kind: (unasked, asked) for kind, unasked, asked in own_words(view, other_offers)}
    assert kinds.keys() == {"prompt", "skill"}
    assert all(min(each) >= 0.99 for each in kinds.values())


def test_where_there_are_only_tools_a_kind_finds_nothing_else():
    view = small_view({"slack": SLACK, "github": GITHUB})

    assert names(ask(view, "kind:tool send message")) == ["slack__send_message"]
    assert "No prompt matches" in ask(view, "kind:prompt send").text
    assert ask(view, "select:prompt:x").meta["missing"] == [{"name": "prompt:x", "nearest": []}]
    assert list(NothingBeside().every("prompt")) == []
