"""What 20 turns with 150 real tools cost in input tokens, by how found tools are carried.

    python -m benchmarks.conversation

The tools are the first of `livemcpbench`; the counter is the one of the model API in the tests.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aggregator.host.gates import Carry
from aggregator.host.messages.staging import MessagesStaging
from aggregator.host.options import Options
from aggregator.host.pool import Pool, Tool, read_pool
from aggregator.host.results import Finding, Result
from aggregator.names import RESERVED, ServerName
from aggregator.toolsearch import definitions
from tests.host.vendors import CHARACTERS_PER_TOKEN, MessagesApi, say, use

TOOLS = Path(__file__).parents[2] / "shared/retrieval/livemcpbench/tools.jsonl"
COUNT = 150
MODEL = "claude-opus-5"
CALLED = (3, 40, 77, 120)
"""The tools that the four tasks of the conversation need."""
RESULT = "A result of a usual length. " * 20


def pool() -> Pool:
    """Return the tools as an aggregator describes them."""
    lines = [json.loads(line) for line in TOOLS.read_text(encoding="utf-8").splitlines()[:COUNT]]
    for line in lines:
        line["server"] = "".join(c if c.isalnum() else "_" for c in line["server"])
        line["name"] = f"{line['server']}__{line['name'].replace('.', '_')}"[:60]
    servers = dict.fromkeys(line["server"] for line in lines)
    search = definitions([(ServerName(each), "") for each in servers], "promote", 5, RESERVED)[0]
    described = [{"name": each, "state": "ready"} for each in servers]
    return read_pool({"search": search, "tools": lines, "servers": described})


def conversation(carry: Carry) -> tuple[int, int]:
    """Have a conversation, and return its input tokens, and how many of them are not cached."""
    known, api, staging = pool(), MessagesApi(), MessagesStaging(Options(carry))
    history: list[Any] = []
    for script in turns(list(known.tools.values()), carry):
        if not history or history[-1]["role"] == "assistant":
            history.append({"role": "user", "content": "The next task, in a sentence or two."})
        request = staging.request(history, (), (), known, deferring=carry != "all")
        response = api.create([script], model=MODEL, **request)
        outcomes = [
            (each, outcome(each.name, each.arguments, known)) for each in staging.uses(response)
        ]
        history += staging.answered(response, outcomes)
    fresh = [len(api.prompts[0]), *map(int.__sub__, map(len, api.prompts[1:]), api.kept)]
    return sum(map(len, api.prompts)) // CHARACTERS_PER_TOKEN, sum(fresh) // CHARACTERS_PER_TOKEN


def turns(tools: list[Tool], carry: Carry) -> Iterator[dict[str, Any]]:
    """Yield what the model does: for each task a search, three calls and a word at the end."""
    for at in CALLED:
        name = tools[at].name
        first = say("Let me see.") if carry == "all" else use("ToolSearch", query=f"select:{name}")
        yield from (first, *(use(name, text="something") for _ in range(3)), say("Done."))


def outcome(name: str, arguments: Any, known: Pool) -> Finding | Result:
    """Return what a search finds, with four others beside the one that is meant."""
    if name != known.search.name:
        return Result((RESULT,))
    tools = list(known.tools.values())
    at = next(n for n, tool in enumerate(tools) if arguments["query"].endswith(tool.name))
    return Finding(tuple(tools[at : at + 5]))


if __name__ == "__main__":
    ways: tuple[Carry, ...] = ("all", "plain", "reference", "inline")
    for way in ways:
        total, fresh = conversation(way)
        print(f"| `{way}` | {total:,} | {fresh:,} |")
