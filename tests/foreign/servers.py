"""Compare published servers, direct and through the aggregator, and write down what was found.

    python -m tests.foreign.servers [NAME ...]

Installs what is missing into `$FOREIGN_CACHE`, asks each server by itself in the eras it speaks,
then all of them through one aggregator, as a client of either era. Every definition of a tool,
prompt, resource and template must come out as it went in, but for the name, and each call must
have the very result; what does not fit a definition is sent twice, as we answer it ourselves once.
Without names, the table goes into `docs/compatibility.md`.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio

from aggregator.errors import ERROR_META
from tests.foreign.installing import NotInstalledError, install, ready_node, variables
from tests.foreign.published import SERVERS, Json, Published
from tests.foreign.scratch import fill
from tests.foreign.wire import Wire, talking
from tests.peers import ERAS, Era
from tests.raw import without_envelope

Installed = tuple[Published, Path]
"""A server, and its program."""

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
TABLE = re.compile(
    r"(?<=<!-- servers: written by tests/foreign/servers.py -->\n).*?(?=<!-- end)", re.DOTALL
)

LISTS = {
    "tools": ("tools/list", "tools"),
    "prompts": ("prompts/list", "prompts"),
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
}
FAILURES = (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead, TimeoutError)
STARTING = 240.0
"""Seconds that all servers together may take to start on a busy machine."""


class Offer(NamedTuple):
    """What one server offers, and how it answers its two calls."""

    lists: dict[str, list[Json]]
    answers: list[Json]


class Row(NamedTuple):
    """What was found of one server."""

    server: Published
    direct: dict[Era, Offer]
    differences: dict[Era, list[str]]
    """By the era of the client that looked through the aggregator."""
    chosen: Era = "handshake"
    """The era in which the aggregator speaks with it."""


def main(names: Sequence[str]) -> int:
    """Compare the servers named, or all; return the exit status."""
    ready_node()
    programs = list(_installed([each for each in SERVERS if not names or each.name in names]))
    rows = anyio.run(compare, programs)
    sys.stdout.write(table(rows))
    for row in rows:
        for era, found in row.differences.items():
            for each in found:
                sys.stderr.write(f"{row.server.name}, {era} client: {each}\n")
    if not names:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(TABLE.sub(lambda _: table(rows), page), encoding="utf-8")
    return 1 if any(found for row in rows for found in row.differences.values()) else 0


def _installed(servers: Sequence[Published]) -> Iterator[Installed]:
    for server in servers:
        try:
            yield server, install(server)
        except NotInstalledError as error:
            sys.stderr.write(f"{server.name}: left out, {error}\n")


async def compare(programs: Sequence[Installed]) -> list[Row]:
    """Ask every server by itself, then all of them through one aggregator, in both eras."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        direct = [await _direct(server, program, work) for server, program in programs]
        through: dict[Era, dict[str, Offer]] = {}
        chosen: dict[str, Era] = {}
        for era in ERAS:
            through[era], chosen = await _through(programs, era, work)
    return [
        Row(
            server,
            offers,
            {
                era: differences(
                    offers.get(chosen.get(server.name, "handshake")),
                    through[era].get(server.name),
                )
                for era in ERAS
            },
            chosen.get(server.name, "handshake"),
        )
        for (server, _program), offers in zip(programs, direct, strict=True)
    ]


async def _direct(server: Published, program: Path, work: Path) -> dict[Era, Offer]:
    offers: dict[Era, Offer] = {}
    for era in ERAS:
        fill(work)
        command = [str(program), *(each.format(work=work) for each in server.args)]
        # One that ends when it is spoken to in an era it does not know has said so, too.
        with suppress(*FAILURES):
            async with talking(command, era, variables(server, work), work) as wire:
                if await wire.open():
                    lists = {kind: await wire.listed(*each) for kind, each in LISTS.items()}
                    offers[era] = Offer(lists, await _answers(wire, server, {}, work))
    return offers


async def _through(
    programs: Sequence[Installed], era: Era, work: Path
) -> tuple[dict[str, Offer], dict[str, Era]]:
    """Return what each server offers through an aggregator, and the era it is spoken to in."""
    fill(work)
    path = work.parent / "servers.json"
    entries = {
        server.name: {
            "command": str(program),
            "args": [each.format(work=work) for each in server.args],
            "env": variables(server, work),
            "cwd": str(work),
            "connectTimeout": f"{STARTING:g}s",
        }
        for server, program in programs
    }
    path.write_text(json.dumps({"toolSearch": False, "servers": entries}), encoding="utf-8")
    command = [sys.executable, "-m", "aggregator", "serve", "--config", str(path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(work.parent / "state")}
    async with talking(command, era, env, work) as wire:
        await wire.open()
        states = await _settled(wire)
        lists = {kind: await wire.listed(*each) for kind, each in LISTS.items()}
        owners = (await wire.read_document("catalog://tools"))["tools"]
        offers: dict[str, Offer] = {}
        for server, _program in programs:
            names = {each["tool"]: each["name"] for each in owners if each["server"] == server.name}
            if names:
                answers = await _answers(wire, server, names, work)
                offers[server.name] = Offer(_own(lists, names), answers)
    return offers, {
        name: "modern" if state.get("protocol") == "2026-07-28" else "handshake"
        for name, state in states.items()
    }


async def _settled(wire: Wire) -> dict[str, Json]:
    """Wait until every server is ready or has failed, and return what is said of each."""
    await wire.listed(*LISTS["tools"])
    servers: list[Json] = []
    with anyio.move_on_after(STARTING):
        while True:
            servers = (await wire.read_document("catalog://servers"))["servers"]
            if all(each["state"] != "pending" for each in servers):
                break
            await anyio.sleep(0.5)
    return {each["name"]: each for each in servers}


def _own(lists: Mapping[str, list[Json]], names: Mapping[str, str]) -> dict[str, list[Json]]:
    """Return of all lists what could be one server's, its tools by the names it has for them."""
    back = {name: tool for tool, name in names.items()}
    tools = [
        {**tool, "name": back[tool["name"]]} for tool in lists["tools"] if tool["name"] in back
    ]
    return {**lists, "tools": tools}


async def _answers(
    wire: Wire, server: Published, names: Mapping[str, str], work: Path
) -> list[Json]:
    answers: list[Json] = []
    for call in server.calls:
        arguments = json.loads(json.dumps(call.arguments).replace("{work}", str(work)))
        asked = {"name": names.get(call.tool, call.tool), "arguments": arguments}
        answer = await wire.ask("tools/call", asked)
        if _is_told_first(answer):
            answer = await wire.ask("tools/call", asked)
        answers.append(
            {"error": answer["error"]} if "error" in answer else without_envelope(answer["result"])
        )
    return answers


def _is_told_first(answer: Json) -> bool:
    """Whether we say that arguments do not fit; who insists has the word of the server."""
    told = answer.get("result", {}).get("_meta", {}).get(ERROR_META, {})
    return told.get("kind") == "invalid-arguments"


def differences(direct: Offer | None, through: Offer | None) -> list[str]:
    """Say what is not the same through the aggregator."""
    if direct is None or through is None:
        return [f"it cannot be compared: {'direct' if direct is None else 'through us'} is nothing"]
    return [*_definitions(direct, through), *_results(direct, through)]


def _definitions(direct: Offer, through: Offer) -> Iterator[str]:
    if direct.lists["tools"] != through.lists["tools"]:
        theirs = {tool["name"]: tool for tool in direct.lists["tools"]}
        ours = {tool["name"]: tool for tool in through.lists["tools"]}
        for name in theirs | ours:
            if theirs.get(name) != ours.get(name):
                yield f"tool `{name}`: {theirs.get(name)} became {ours.get(name)}"
    for kind in ("prompts", "resources", "templates"):
        ours = through.lists[kind]
        for each in direct.lists[kind]:
            # Prompts of several servers stand beside each other, under longer names.
            if not any(each == ({**other, "name": each["name"]}) for other in ours):
                yield f"{kind}: {each} is missing"


def _results(direct: Offer, through: Offer) -> Iterator[str]:
    for theirs, ours in zip(direct.answers, through.answers, strict=True):
        if theirs != ours:
            yield f"result: {theirs} became {ours}"


def table(rows: Sequence[Row]) -> str:
    """Return what was found, as Markdown."""
    head = (
        "server",
        "package",
        "eras",
        "tools",
        "prompts",
        "resources",
        "handshake client",
        "modern client",
    )
    lines = [f"| {' | '.join(head)} |", "| --- | --- | --- | ---: | ---: | ---: | --- | --- |"]
    tools = 0
    for row in rows:
        offer = row.direct.get(row.chosen) or Offer({kind: [] for kind in LISTS}, [])
        counts = {kind: len(found) for kind, found in offer.lists.items()}
        cells = (
            row.server.name,
            f"`{row.server.pin}`",
            ", ".join(row.direct),
            counts["tools"],
            counts["prompts"],
            counts["resources"] + counts["templates"],
            *(_verdict(row.differences[era]) for era in ERAS),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
        tools += counts["tools"]
    return "\n".join([*lines, "", f"{len(rows)} servers, {tools} tools.", ""])


def _verdict(found: Sequence[str]) -> str:
    return f"{len(found)} differ" if found else "the same"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
