"""One of several processes that use the same login: calls until its standard input ends.

`python -m tests.downstream.login.worker URL DIRECTORY` says when the first call went well, and at
the end how many did, and what the others were told.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
from mcp import Client

from aggregator.downstream.http.reach import reach
from tests.downstream.login.logins import logins_in, server_at
from tests.peers import aggregating, ready, text_of, visiting

AT_ONCE = 4
"""Calls under way at a time."""


async def main(url: str, directory: str) -> None:
    good, bad = 0, list[str]()
    is_over = anyio.Event()

    def note(text: str) -> None:
        nonlocal good
        if text == "go: {}":
            good += 1
            if good == 1:
                print("begun", flush=True)  # noqa: T201 - a command
        else:
            bad.append(text)

    async with aggregating({"web": reach(server_at(url), logins_in(Path(directory)))}) as upstream:
        await ready(upstream)
        async with visiting(upstream, "modern") as client, anyio.create_task_group() as group:
            for _ in range(AT_ONCE):
                group.start_soon(call, client, note, is_over)
            await anyio.wait_readable(sys.stdin)
            is_over.set()
    print(json.dumps({"good": good, "bad": bad}))  # noqa: T201 - a command


async def call(client: Client, note: Callable[[str], None], is_over: anyio.Event) -> None:
    while not is_over.is_set():
        note(text_of(await client.call_tool("web__go", {})))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
