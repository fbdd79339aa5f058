"""Ranking must not rot: floors on public catalogs, where they are at hand."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aggregator.search.query import Keywords, parse_query
from aggregator.search.words import words
from benchmarks.retrieval import DATA, build, evaluation, index_of

pytestmark = [
    pytest.mark.no_cover,
    pytest.mark.skipif(not DATA.exists(), reason="needs the catalogs beside the project"),
]

FLOORS = {
    "livemcpbench/steps": 0.88,
    "livemcpbench/route": 0.91,
    "livemcpbench/route_tool": 0.90,
    "azure_mcp": 0.97,
    "metatool": 0.71,
}
STYLES: tuple[Callable[[list[str]], str], ...] = (
    " ".join,
    "_".join,
    "-".join,
    lambda parts: parts[0] + "".join(part.capitalize() for part in parts[1:]),
    lambda parts: " ".join(parts).upper(),
)


@pytest.mark.parametrize(("task", "floor"), FLOORS.items(), ids=FLOORS.keys())
def test_recall_does_not_fall(task: str, floor: float):
    assert evaluation()["run_task"](build, task)["recall@5"] >= floor


@pytest.mark.parametrize("with_server", [True, False], ids=["with its server", "alone"])
@pytest.mark.parametrize("catalog", ["livemcpbench", "azure_mcp", "metatool", "toucan"])
def test_a_misspelt_name_in_any_order_and_style_is_found_first(catalog: str, with_server: bool):
    tools, random = read(DATA / catalog / "tools.jsonl")[:10_000], Random(4)  # noqa: S311 - slips
    index = index_of(tools)
    some = random.sample(tools, min(500, len(tools)))
    right = 0
    for tool in some:
        name = f"{tool['server']} {tool['name']}" if with_server else tool["name"]
        query = parse_query(misspelt(words(name), random))
        hits = index.rank(query, 1) if isinstance(query, Keywords) else ()
        # Where several servers have a tool of that name, any of them is right.
        right += any({*words(hit.entry.own_name)} == {*words(tool["name"])} for hit in hits)
    assert right >= 0.97 * len(some)


def misspelt(name: list[str], random: Random) -> str:
    """Return the words of a name shuffled, with one slip, in some style."""
    parts = list(dict.fromkeys(name))
    random.shuffle(parts)
    at = random.randrange(len(parts))
    parts[at] = slipped(parts[at], random)
    return random.choice(STYLES)([part for part in parts if part])


def slipped(word: str, random: Random) -> str:
    """Return a word with a letter left out, added, replaced or swapped with the next."""
    at, letter = random.randrange(len(word)), random.choice("abcdefghijklmnopqrstuvwxyz")
    return random.choice(
        (
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
        )
    )


def read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
