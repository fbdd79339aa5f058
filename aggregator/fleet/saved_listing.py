"""What one server last offered, as the lines of a text: facts first, and then a line for each.

What is shown in every first list comes before the rest, so that it can be read alone.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice, takewhile
from typing import Any, NamedTuple

from aggregator.basics.json import JsonObject, is_plain_object
from aggregator.catalog import Offers, Ready
from aggregator.catalog.lock import veiled
from aggregator.config import ServerConfig
from aggregator.downstream.intake import (
    Admitted,
    entries_of,
    prompts_of,
    resources_of,
    skills_of,
)
from aggregator.secrecy import forms

VERSION = 2
"""The version of the form; any other is not read."""
PINNED, TOOL, PROMPT, RESOURCE, TEMPLATE = "pinned", "tool", "prompt", "resource", "template"
SKILL = "skill"
_KEYS = {
    PINNED: "name",
    TOOL: "name",
    PROMPT: "name",
    RESOURCE: "uri",
    TEMPLATE: "uriTemplate",
    SKILL: "uri",
}
AT_ONCE = 16
"""Lines that are decoded in one go, in which no other thread has its turn."""
ALL = frozenset({"tools", "prompts", "resources"})
"""The kinds of what is not known yet where only the first lines were read."""


class SavedListingError(Exception):
    """It cannot be read as it is."""


class Facts(NamedTuple):
    """What the first line says."""

    rules: str
    """What stands for which tools were allowed when it was written."""
    program: str = ""
    """What stands for the program that offered it."""
    writer: str = ""
    """The version of ours that wrote it."""
    protocol: str = ""
    version: str = ""
    instructions: str = ""
    about: str = ""
    reads: bool = False
    completes: bool = False
    refused: Sequence[str] = ()
    unmatched: Sequence[str] = ()
    unlisted: Sequence[str] = ()
    """The kinds of what it offers that it had no time to list."""
    partial: bool = False
    """Whether it may show more to other clients."""
    tasks: bool = False


class Known(NamedTuple):
    """What a server is known to offer, and what is known of when it did."""

    ready: Ready
    facts: Facts


def source_of(server: ServerConfig) -> str:
    """Return what stands for how a server is reached: with anything else it is another one."""
    parts = (
        server.name,
        server.type,
        server.url,
        server.command,
        server.args,
        str(server.cwd),
        sorted(server.env.items()),
        sorted(server.headers.items()),
        server.proxy,
    )
    return sha256(json.dumps(parts).encode()).hexdigest()


def rules_of(server: ServerConfig) -> str:
    """Return what stands for what is said of single tools: what was not allowed is not there."""
    parts = (
        server.prefix,
        server.allow,
        server.deny,
        server.always_load,
        server.read_only,
        *(sorted(each.items()) for each in (server.rename, server.describe, server.search_hints)),
    )
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]


def written(server: ServerConfig, ready: Ready, program: str, writer: str) -> Iterator[str]:
    """Yield the lines of what a server offers, without what it was given in confidence."""
    secrets = [form for _, value in server.confidential() for form in forms(value)]
    facts = Facts(
        rules_of(server),
        program,
        writer,
        ready.protocol_version,
        ready.version,
        ready.instructions,
        ready.about,
        ready.offers.reads,
        ready.offers.completes,
        list(ready.refused),
        list(ready.unmatched),
        sorted(ready.offers.unlisted),
        ready.is_partial,
        ready.offers.tasks,
    )
    yield _line({"sheet": VERSION, **veiled(facts._asdict(), secrets)})
    for kind, place, definition in _definitions(ready):
        yield _line([kind, place, veiled(definition, secrets)])


def read(lines: Iterator[str], server: ServerConfig, *, pinned_only: bool = False) -> Known:
    """Return what the lines say, as far as the configuration allows it now.

    Raises:
        SheetError: They are damaged, or of another version.
    """
    try:
        facts = _facts(json.loads(next(lines, "")))
        definitions = _sorted_out(lines, pinned_only=pinned_only)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SavedListingError(str(error)) from None
    return Known(_ready(server, facts, definitions, is_whole=not pinned_only), facts)


def _line(value: object) -> str:
    # With escapes, every text can be written, and no line is broken by one.
    return json.dumps(value, separators=(",", ":"), default=dict)


def _definitions(ready: Ready) -> Iterator[tuple[str, int, JsonObject]]:
    """Yield what is offered, of each its kind and its place in the list that it is of."""
    tools = sorted(enumerate(ready.entries), key=lambda each: not each[1].always_load)
    for place, entry in tools:
        yield PINNED if entry.always_load else TOOL, place, entry.tool
    offers = ready.offers
    for place, prompt in enumerate(offers.prompts):
        yield PROMPT, place, prompt.prompt
    for kind, entries in ((RESOURCE, offers.resources), (TEMPLATE, offers.templates)):
        for place, resource in enumerate(entries):
            yield kind, place, resource.resource
    for place, skill in enumerate(offers.skills):
        yield SKILL, place, skill.skill


def _facts(first: object) -> Facts:
    if not is_plain_object(first) or first.get("sheet") != VERSION:
        raise TypeError("it is no listing of this version")
    facts = Facts(**{key: value for key, value in first.items() if key != "sheet"})
    is_ours = all(type(value) is type(own) for value, own in zip(facts, _PLAIN, strict=True))
    if not is_ours or not all(type(each) is str for each in _words(facts)):
        raise TypeError("its first line is none of ours")
    return facts


_PLAIN = Facts("", refused=[], unmatched=[], unlisted=[])


def _words(facts: Facts) -> Iterator[object]:
    yield from (*facts.refused, *facts.unmatched, *facts.unlisted)


def _sorted_out(lines: Iterable[str], *, pinned_only: bool) -> dict[str, list[JsonObject]]:
    """Return the definitions of each kind in the order in which they were listed."""
    found: dict[str, list[tuple[int, JsonObject]]] = {kind: [] for kind in _KEYS}
    if pinned_only:
        lines = takewhile(lambda line: line.startswith(f'["{PINNED}"'), lines)
    for kind, place, definition in _decoded(iter(lines)):
        if not is_plain_object(definition) or not isinstance(definition[_KEYS[kind]], str):
            raise TypeError("a line is none of ours")
        found[kind].append((place, definition))
    tools = sorted(found.pop(PINNED) + found.pop(TOOL), key=lambda each: each[0])
    found[TOOL] = tools
    return {kind: [definition for _, definition in each] for kind, each in found.items()}


def _decoded(lines: Iterator[str]) -> Iterator[Any]:
    """Yield what lines say; so many at a time that neither their number nor their length tells."""
    while some := list(islice(lines, AT_ONCE)):
        yield from json.loads(f"[{','.join(some)}]")


def _ready(
    server: ServerConfig,
    facts: Facts,
    definitions: dict[str, list[JsonObject]],
    *,
    is_whole: bool,
) -> Ready:
    tools = _admitted(tool for tool in definitions[TOOL] if server.allows(tool["name"]))
    return Ready(
        entries=tuple(entries_of(server, tools)[0]),
        protocol_version=facts.protocol,
        version=facts.version,
        instructions=facts.instructions,
        about=facts.about,
        refused=tuple(facts.refused),
        unmatched=tuple(facts.unmatched),
        offers=Offers(
            prompts_of(server, _admitted(definitions[PROMPT]))[0],
            resources_of(server, _admitted(definitions[RESOURCE]))[0],
            resources_of(server, _admitted(definitions[TEMPLATE]))[0],
            skills_of(server, _admitted(definitions[SKILL]))[0],
            facts.reads,
            facts.completes,
            facts.tasks,
            frozenset(facts.unlisted) if is_whole else ALL,
        ),
        is_partial=facts.partial,
    )


def _admitted(definitions: Iterable[JsonObject]) -> Admitted:
    return Admitted(tuple(definitions), ())
