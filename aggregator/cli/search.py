"""`aggregator search`: exactly what a model would get, and why."""

import argparse
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from aggregator.catalog import Catalog, Pending
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.opening import opened
from aggregator.cli.pages import as_json
from aggregator.cli.starting import Server, await_servers, is_starting
from aggregator.cli.unready import status_of
from aggregator.config.settings import MAX_RESULTS
from aggregator.names import RESERVED, ServerName
from aggregator.toolsearch import parse_search
from aggregator.toolsearch.concern import asked_of
from aggregator.toolsearch.facts import EXPLAIN

PATIENCE = 5.0
"""Seconds that are given to what tools mean, where the extra for that is installed."""

Explained = dict[str, Any]
"""One tool of an answer as the server explains it: its name, its score, and why."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Search as a model does and print the answer it would read."""
    query = " ".join(options.query)
    limit: int | None = options.max_results
    if limit is not None and limit > MAX_RESULTS:
        raise CommandError(
            f"`--max-results` can be {MAX_RESULTS} at the most, and is {limit}",
            status=ExitStatus.USAGE,
        )
    with opened(options, environment) as peer:
        quiet = options.url is not None
        servers = await_servers(peer, environment, options.wait, quiet=quiet)
        # A model that asks later gets what is not known in the first moment, too; but a server
        # that has not come in all the time there was is not waited for once more.
        patience = 0 if any(map(is_starting, servers)) else min(options.wait, PATIENCE)
        asked = {"query": query, "wait": patience} | ({"max_results": limit} if limit else {})
        asked |= {"offset": options.offset} if options.offset else {}
        # Whatever it is called here, it answers to this name, too.
        result = peer.call(RESERVED.search, asked, meta={EXPLAIN: bool(options.explain)})
        _show(query, result, options, environment)
    return status_of(_asked(query, servers))


def _asked(query: str, servers: Sequence[Server]) -> list[Server]:
    """Return the servers that a query is about: those it names, or all."""
    catalog = Catalog({ServerName(server["name"]): Pending() for server in servers})
    names = asked_of(parse_search({"query": query}), catalog)
    return [server for server in servers if server["name"] in names]


def _show(
    query: str, result: dict[str, Any], options: argparse.Namespace, environment: Environment
) -> None:
    text: str = result["content"][0]["text"]
    facts: dict[str, Any] = result["_meta"]["aggregator/search"]
    explained: list[Explained] | None = facts.pop("explained", None)
    if options.json:
        why = {} if explained is None else {"hits": explained}
        environment.say(as_json({"query": query, "text": text, "facts": facts, **why}))
        return
    environment.say(text)
    if explained is not None:
        environment.tell("\n" + _why(query, explained, is_found=bool(facts["matches"])))


TOGETHER = {
    "coverage": "how much of the query it has",
    "together": "words side by side",
    "named": "words of its name",
    "hosted": "words of its server's name",
    "outdated": "it says that it is deprecated",
    "learned": "it was called after like requests",
}
"""What words bring together, in words."""


def _why(query: str, explained: Sequence[Explained], *, is_found: bool) -> str:
    if not explained:
        looked_up = "they are looked up by their names"
        why = looked_up if is_found else "there is nothing to explain"
        return f"No tool was ranked for `{query}`: {why}"
    return "\n".join(["Why these:", *(_reasons(at, each) for at, each in enumerate(explained, 1))])


def _reasons(at: int, explained: Explained) -> str:
    lines = [f"{at}. {explained['name']}  {_score(explained)}"]
    by_word = groupby(explained["why"], key=lambda each: (each["word"], each["term"]))
    for (word, term), found in by_word:
        parts = list(found)
        names: list[str] = [part["field"] for part in parts]
        fields = ", ".join(TOGETHER.get(name, name) for name in names)
        indexed = "" if term == word else f" (indexed as `{term}`)"
        said = f"`{word}`{indexed} in {fields}" if word else f"all words together: {fields}"
        if names[0] == "called":
            said = "comes first, since the query is its name"
        lines.append(f"   {sum(part['score'] for part in parts):6.2f}  {said}")
    return "\n".join(lines)


def _score(explained: Explained) -> str:
    """Return what a tool was ranked by, and what of that are words and meaning if both rank."""
    score, meaning = explained["score"], explained["meaning"]
    if score is None:
        return "looked up by its name"
    if meaning is None:
        return f"score {score:.2f}"
    return f"score {score:.2f} (words {score - meaning:.2f}, meaning {meaning:.2f})"
