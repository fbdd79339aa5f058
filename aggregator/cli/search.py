"""`aggregator search`: exactly what a model would get, and why."""

import argparse
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from aggregator.cli.environment import Environment, ExitStatus
from aggregator.cli.inspect import as_json
from aggregator.cli.peer import Peer, serving
from aggregator.cli.source import config_path, read_config
from aggregator.cli.starting import await_servers
from aggregator.config import Config
from aggregator.inspection import TOOLS_URI
from aggregator.intake import take_in
from aggregator.search import Hit, Index, Keywords, parse_query
from aggregator.toolsearch import TOOL_SEARCH


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Search as a model does and print the answer it would read."""
    query = " ".join(options.query)
    with serving(config_path(options.config, environment), environment) as peer:
        config = read_config(options, environment)
        await_servers(peer, environment, options.wait)
        limit: int = options.max_results or config.settings.max_results
        result = peer.call(TOOL_SEARCH, {"query": query, "max_results": limit})
        hits = _explained(peer, config, query, limit) if options.explain else None
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


def _explained(peer: Peer, config: Config, query: str, limit: int) -> list[Hit]:
    """Rank once more, over the same definitions, and ask why."""
    index = Index(list(config.enabled))
    tools: list[dict[str, Any]] = peer.read(TOOLS_URI)["tools"]
    for name, own in groupby(tools, key=lambda tool: tool["server"]):
        server = config.servers[name]
        definitions = [peer.read(f"{TOOLS_URI}/{tool['name']}")["definition"] for tool in own]
        entries, _ = take_in(server, definitions)
        index.update(name, entries, description=server.description)
    match parse_query(query):
        case Keywords() as words:
            ranked = index.rank(words, limit)
            return [Hit(hit.entry, hit.score, index.explain(words, hit.entry)) for hit in ranked]
        case _:
            return []


def _why(query: str, hits: Sequence[Hit]) -> str:
    if not hits:
        return f"Nothing was ranked for `{query}`: names and overviews are looked up"
    return "\n".join(["Why these:", *(_reasons(at, hit) for at, hit in enumerate(hits, 1))])


def _reasons(at: int, hit: Hit) -> str:
    lines = [f"{at}. {hit.entry.name}  score {hit.score:.2f}"]
    for (word, term), found in groupby(hit.why, key=lambda each: (each.word, each.term)):
        parts = list(found)
        fields = ", ".join(part.field for part in parts)
        indexed = "" if term == word else f" (indexed as `{term}`)"
        said = f"`{word}`{indexed} in {fields}" if word else f"all words together: {fields}"
        lines.append(f"   {sum(part.score for part in parts):6.2f}  {said}")
    return "\n".join(lines)


def _hit_as_json(hit: Hit) -> dict[str, Any]:
    why = [
        {"word": each.word, "term": each.term, "field": each.field, "score": round(each.score, 3)}
        for each in hit.why
    ]
    return {"name": hit.entry.name, "score": round(hit.score, 3), "why": why}
