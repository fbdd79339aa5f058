"""What prompts and skills cost the search for tools, and whether each is found by its own words.

    python -m benchmarks.offers

Beside the 527 tools of one public catalog stand 200 prompts and 50 skills, made of the names and
descriptions of tools of another one: nothing was written to be told apart. The catalogs are read
from `../shared/retrieval`, beside the project.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import anyio

from aggregator.basics.signals import Signal
from aggregator.catalog import Offers, PromptEntry, Ready, ToolEntry
from aggregator.config import Config, ServerConfig
from aggregator.config.kinds import FOUND
from aggregator.fleet.now import Now
from aggregator.fleet.other_offers import OtherOffers
from aggregator.names import ServerName, plain_name
from aggregator.search.index import Index
from aggregator.toolsearch import SearchRequest, parse_search
from aggregator.toolsearch.answer import tell
from aggregator.toolsearch.beside import Shown
from aggregator.toolsearch.find import search
from aggregator.toolsearch.offers import OFFER_KINDS
from aggregator.toolsearch.offers.skills import Skill
from aggregator.toolsearch.view import View
from benchmarks.retrieval import entries, evaluation

Tool = Mapping[str, Any]
Score = Callable[[list[tuple[str, str]], Mapping[str, Any]], Mapping[str, float]]

PROMPTS, SKILLS = 200, 50
TASKS = ("livemcpbench/steps", "livemcpbench/route", "livemcpbench/route_tool")
OWN_WORDS = 12
"""Words of its description that a thing is asked for by."""


def others(found: Mapping[str, Any]) -> tuple[list[PromptEntry], list[Skill]]:
    """Return prompts and skills with the names and descriptions of other tools."""
    described = _described(found["load_tools"]("toucan"))
    drawn = Random(7).sample(described, PROMPTS + SKILLS)  # noqa: S311 - no secret
    prompts = [
        PromptEntry(f"prompts__{number}_{plain_name(each['name'])}", ServerName("prompts"), prompt)
        for number, each in enumerate(drawn[:PROMPTS])
        if (prompt := {"name": each["name"], "description": each["description"]})
    ]
    skills = [
        Skill(f"{plain_name(each['name']).replace('_', '-')}-{number}", each["description"], Path())
        for number, each in enumerate(drawn[PROMPTS:])
    ]
    return prompts, skills


def _described(tools: Sequence[Tool]) -> list[Tool]:
    """Return one tool for each description that says something."""
    by_words = {each["description"]: each for each in tools if len(each["description"]) > 40}  # noqa: PLR2004
    return list(by_words.values())


def known(tools: Sequence[Tool], prompts: Sequence[PromptEntry], skills: Sequence[Skill]) -> Now:
    """Return what is known once all of it is."""
    by_server = entries(tools)
    states = {name: Ready(tuple(each)) for name, each in by_server.items()}
    states[ServerName("prompts")] = Ready(offers=Offers(tuple(prompts)))
    servers = {name: ServerConfig(name, name) for name in states}
    return Now.starting(Config(Path("servers.yaml"), servers), 0.0, states).with_skills(skills)


async def filled(now: Now) -> OtherOffers:
    """Return what is found beside tools, once all of it can be."""
    changed = Signal()
    other_offers = OtherOffers(now, changed)
    async with anyio.create_task_group() as group:
        group.start_soon(other_offers.run)
        while not other_offers.is_ready(now.catalog.servers):
            await changed.wait()
        group.cancel_scope.cancel()
    return other_offers


def view_of(now: Now, shown: Shown) -> View:
    """Return how a client sees it."""
    index = Index(list(now.catalog.servers))
    for server, state in now.catalog.known.items():
        index.update(server, state.entries)
    return View(catalog=now.catalog, lookup=now.lookup, index=index, shown=shown)


def recall(view: View, queries: Sequence[Any], score: Score) -> tuple[float, float, float]:
    """Return how much of what is wanted is found, how much defined, and what is told beside it."""
    found = defined = beside = 0.0
    for query in queries:
        result = search(_asked(query["query"]), view)
        answer = tell(result, view)
        found += score(_names(answer.matches), query)["recall@5"]
        defined += score(_names(answer.shown), query)["recall@5"]
        beside += len(result.offers)
    return found / len(queries), defined / len(queries), beside / len(queries)


def _names(entries: Sequence[ToolEntry]) -> list[tuple[str, str]]:
    return [(entry.server, entry.own_name) for entry in entries]


def _asked(query: str) -> SearchRequest:
    return parse_search({"query": query})


def own_words(view: View, other_offers: OtherOffers) -> Iterator[tuple[str, float, float]]:
    """Yield of each kind how much is found by its own words, unasked and asked for by kind."""
    for kind in OFFER_KINDS:
        offers = list(other_offers.every(kind))
        unasked = asked = 0
        for offer in offers:
            words = " ".join(offer.entry.description.split()[:OWN_WORDS]).replace(":", " ")
            unasked += offer in search(_asked(words), view).offers
            asked += offer in search(_asked(f"kind:{kind} {words}"), view).offers
        if offers:
            yield kind, unasked / len(offers), asked / len(offers)


def main() -> None:
    """Print what it costs and what it brings."""
    found = evaluation()
    prompts, skills = others(found)
    print(f"{'task':26}{'tools alone':>24}{'with 250 beside':>24}{'told beside':>14}")
    for task in TASKS:
        tools, queries = found["load_task"](task)
        now = known(tools, prompts, skills)
        other_offers = anyio.run(filled, now)
        alone = recall(view_of(now, Shown()), queries, found["score"])
        view = view_of(now, Shown(other_offers, FOUND))
        both = recall(view, queries, found["score"])
        cells = [f"{one[0]:.3f} ({one[1]:.3f})" for one in (alone, both)]
        print(f"{task:26}{cells[0]:>24}{cells[1]:>24}{both[2]:>14.2f}", flush=True)
        if task == TASKS[-1]:
            print("recall@5, and in brackets how much of it with its definition\n")
            for kind, unasked, asked in own_words(view, other_offers):
                print(f"{kind}s by their own words: {unasked:.3f}; with kind:{kind} {asked:.3f}")


if __name__ == "__main__":
    main()
