"""`aggregator search`: exactly what a model would get, and why."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import anyio

from aggregator.catalog import Catalog, Ready, ServerState
from aggregator.cli.environment import Environment, ExitStatus
from aggregator.cli.inspect import as_json
from aggregator.cli.peer import Peer, serving
from aggregator.cli.source import config_path, read_config
from aggregator.cli.starting import await_servers, is_starting
from aggregator.config import Config
from aggregator.downstream.intake import take_in
from aggregator.inspection import TOOLS_URI
from aggregator.memory import state_path
from aggregator.names import ServerName
from aggregator.search import Contribution, Hit, Index, Keywords, parse_query
from aggregator.search.nearness import Nearness
from aggregator.search.semantic.index import ask_once
from aggregator.search.semantic.meaning import open_meaning
from aggregator.toolsearch import TOOL_SEARCH

PATIENCE = 5.0
"""Seconds that are given to what tools mean, where the extra for that is installed."""


BLENDED = ("words", "meaning")
"""The two parts of a score where the extra is installed."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Search as a model does and print the answer it would read."""
    query = " ".join(options.query)
    with serving(config_path(options.config, environment), environment) as peer:
        config = read_config(options, environment)
        servers = await_servers(peer, environment, options.wait)
        limit: int = options.max_results or config.settings.max_results
        # A model that asks later gets what is not known in the first moment, too; but a server
        # that has not come in all the time there was is not waited for once more.
        patience = 0 if any(map(is_starting, servers)) else min(options.wait, PATIENCE)
        asked = {"query": query, "max_results": limit, "wait": patience}
        result = peer.call(TOOL_SEARCH, asked)
        catalog = _catalog(peer, config) if options.explain else None
    hits = None if catalog is None else _explained(catalog, config, environment, query, limit)
    text: str = result["content"][0]["text"]
    if options.json:
        facts = result["_meta"]["aggregator/search"]
        why = {} if hits is None else {"hits": [_hit_as_json(hit) for hit in hits]}
        environment.say(as_json({"query": query, "text": text, "facts": facts, **why}))
        return ExitStatus.FINE
    environment.say(text)
    if hits is not None:
        environment.say("\n" + _why(query, hits))
    return ExitStatus.FINE


def _catalog(peer: Peer, config: Config) -> Catalog:
    """Return the tools there are, as their servers define them."""
    found: dict[ServerName, ServerState] = {}
    tools: list[dict[str, Any]] = peer.read(TOOLS_URI)["tools"]
    for name, own in groupby(tools, key=lambda tool: tool["server"]):
        definitions = [peer.read(f"{TOOLS_URI}/{tool['name']}")["definition"] for tool in own]
        entries, _ = take_in(config.servers[name], definitions)
        found[name] = Ready(tuple(entries))
    return Catalog(found)


def _explained(
    catalog: Catalog, config: Config, environment: Environment, query: str, limit: int
) -> "list[_Explained]":
    """Rank once more, over the same definitions, and ask why."""
    wanted = parse_query(query)
    if not isinstance(wanted, Keywords):
        return []
    index = Index(list(config.enabled))
    for name, state in catalog.servers.items():
        entries = state.entries if isinstance(state, Ready) else ()
        index.update(name, entries, description=config.servers[name].description)
    ranked = _ranked(index, wanted, limit, _near(catalog, config, environment, wanted.text))
    return [_Explained(hit, index.explain(wanted, hit.entry)) for hit in ranked]


@dataclass(frozen=True, slots=True)
class _Explained:
    """A hit, and which words brought it how much."""

    hit: Hit
    by_word: tuple[Contribution, ...]

    @property
    def why(self) -> tuple[Contribution, ...]:
        """All that is to be said of it: what words and meaning are, where both rank, first."""
        if self.hit.meaning is None:
            return self.by_word
        words = Contribution("", "", "words", self.hit.score - self.hit.meaning)
        meaning = Contribution("", "", "meaning", self.hit.meaning)
        return words, meaning, *self.by_word


def _near(catalog: Catalog, config: Config, environment: Environment, text: str) -> Nearness | None:
    settings = config.settings
    state = state_path(environment.variables) if settings.state else None
    meaning = open_meaning(state, wanted=settings.semantic)
    return anyio.run(ask_once, meaning, catalog, text, PATIENCE)


def _ranked(index: Index, query: Keywords, limit: int, near: Nearness | None) -> list[Hit]:
    return index.rank(query, limit, near)


TOGETHER = {
    "coverage": "how much of the query it has",
    "together": "words side by side",
    "named": "words of its name",
    "hosted": "words of its server's name",
}
"""What words bring together, in words."""


def _why(query: str, hits: Sequence[_Explained]) -> str:
    if not hits:
        return f"Nothing was ranked for `{query}`: names and overviews are looked up"
    return "\n".join(["Why these:", *(_reasons(at, hit) for at, hit in enumerate(hits, 1))])


def _reasons(at: int, hit: _Explained) -> str:
    lines = [f"{at}. {hit.hit.entry.name}  score {hit.hit.score:.2f}{_blended(hit)}"]
    by_word = [each for each in hit.why if each.field not in BLENDED]
    for (word, term), found in groupby(by_word, key=lambda each: (each.word, each.term)):
        parts = list(found)
        fields = ", ".join(TOGETHER.get(part.field, part.field) for part in parts)
        indexed = "" if term == word else f" (indexed as `{term}`)"
        said = f"`{word}`{indexed} in {fields}" if word else f"all words together: {fields}"
        if parts[0].field == "called":
            said = "comes first, since the query is its name"
        lines.append(f"   {sum(part.score for part in parts):6.2f}  {said}")
    return "\n".join(lines)


def _blended(hit: _Explained) -> str:
    """Return what words and meaning are of a score, where both rank."""
    parts = [f"{each.field} {each.score:.2f}" for each in hit.why if each.field in BLENDED]
    return f" ({', '.join(parts)})" if parts else ""


def _hit_as_json(hit: _Explained) -> dict[str, Any]:
    why = [
        {"word": each.word, "term": each.term, "field": each.field, "score": round(each.score, 3)}
        for each in hit.why
    ]
    return {"name": hit.hit.entry.name, "score": round(hit.hit.score, 3), "why": why}
