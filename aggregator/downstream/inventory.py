"""What one server offers: every page of each of its lists, taken in."""

import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TypeVar

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from aggregator.catalog import Offers, Ready, ToolEntry
from aggregator.config import ServerConfig
from aggregator.downstream.envelope import NOTHING_MIRRORED, Mirrored
from aggregator.downstream.intake import (
    MAX_REFUSALS,
    PROMPT,
    RESOURCE,
    TEMPLATE,
    TOOL,
    Admitted,
    Intake,
    clean,
    entry_of,
    named_tools,
    prompts_of,
    resources_of,
    unmatched,
)
from aggregator.downstream.link import Link
from aggregator.json import is_array

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_PAGES = 64
"""Pages of a listing that are asked for."""
MAX_INSTRUCTIONS = 16 * 1024
"""Characters kept of a server's instructions."""
TAKEN_IN_AT_ONCE = 20
"""Definitions that are taken in before others have their turn."""
LISTING_PATIENCE = 15.0
"""Seconds that a list besides the first one of tools may take."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a server offers, and which arguments of its tools are repeated in headers."""

    state: Ready
    mirrored: Mirrored


async def list_tools(server: ServerConfig, link: Link) -> Inventory:
    """List a server's tools and make a state of them.

    Raises:
        MCPError: The server does not list them.
        UndeliveredError: It was not asked, or did not answer.
        ConnectionClosedError: The connection closed meanwhile.
    """
    intake = Intake(TOOL, server.allows)
    admitted = await list_all(link, "tools", intake)
    named, refused = named_tools(server, admitted)
    entries = [_measure(entry_of(server, *each)) async for each in _in_turns(named)]
    mirrored = NOTHING_MIRRORED
    if link.peer.era == "modern":
        entries, mirrored, invalid = await _mirror(entries)
        refused = [*refused, *invalid]
    complain(server, refused)
    capabilities = link.peer.capabilities
    state = Ready(
        entries=tuple(entries),
        since=anyio.current_time(),
        protocol_version=link.peer.protocol_version,
        version=f"{link.peer.name} {link.peer.version}".strip(),
        instructions=clean(link.peer.instructions)[:MAX_INSTRUCTIONS],
        refused=tuple(refused),
        unmatched=unmatched(server, intake),
        offers=Offers(reads="resources" in capabilities, completes="completions" in capabilities),
    )
    return Inventory(state, mirrored)


def _measure(entry: ToolEntry) -> ToolEntry:
    """Have an entry know how long it is, before somebody waits for the sum of thousands."""
    _ = entry.characters
    return entry


async def _mirror(entries: list[ToolEntry]) -> tuple[list[ToolEntry], Mirrored, list[str]]:
    """Find which arguments are repeated in headers; leave out tools that say it wrongly."""
    kept, refused = list[ToolEntry](), list[str]()
    mirrored = dict[object, dict[tuple[str, ...], str]]()
    async for entry in _in_turns(entries):
        if find_invalid_x_mcp_header(entry.input_schema):
            refused.append(f"`{entry.own_name}` has an invalid `x-mcp-header`")
            continue
        kept.append(entry)
        if headers := x_mcp_header_map(entry.input_schema):
            mirrored[entry.own_name] = headers
    return kept, mirrored, refused[:MAX_REFUSALS]


async def list_prompts(server: ServerConfig, link: Link, known: Offers) -> Offers:
    """List a server's prompts into what else it offers."""
    admitted = await list_all(link, "prompts", Intake(PROMPT))
    prompts, refused = prompts_of(server, admitted)
    complain(server, refused)
    return replace(known, prompts=prompts)


async def list_resources(server: ServerConfig, link: Link, known: Offers) -> Offers:
    """List a server's resources and their templates into what else it offers."""
    admitted = await list_all(link, "resources", Intake(RESOURCE))
    resources, refused = resources_of(server, admitted)
    complain(server, refused)
    templates, refused = resources_of(server, await _list_templates(link))
    complain(server, refused)
    return replace(known, resources=resources, templates=templates)


async def _list_templates(link: Link) -> Admitted:
    try:
        return await list_all(link, "resources", Intake(TEMPLATE), "resources/templates/list")
    except MCPError as error:
        if error.code != types.METHOD_NOT_FOUND:
            raise
        return Intake(TEMPLATE).admitted


BESIDES = {"prompts": list_prompts, "resources": list_resources}
"""How each kind of thing besides tools is listed."""


def complain(server: ServerConfig, sentences: Iterable[str]) -> None:
    """Log what of a listing was refused."""
    for sentence in sentences:
        logger.warning("%s", sentence, extra={"server": server.name})


async def list_all(link: Link, kind: str, intake: Intake, method: str | None = None) -> Admitted:
    """Ask for every page of a list, and take each in before the next is asked for.

    Raises:
        MCPError: The server does not list them.
        UndeliveredError: It was not asked, or did not answer.
        ConnectionClosedError: The connection closed meanwhile.
    """
    if link.peer.capabilities and kind not in link.peer.capabilities:
        return intake.admitted
    method = method or f"{kind}/list"
    member = "resourceTemplates" if method == "resources/templates/list" else kind
    cursor: object = None
    asked: set[object] = set()
    while not intake.is_full:
        result = await link.request(method, None if cursor is None else {"cursor": cursor})
        page: object = result.get(member)
        if not is_array(page):
            raise MCPError(
                types.INTERNAL_ERROR, f"it answered `{method}` without a list of {member}"
            )
        await _take_in(intake, page)
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            break
        if cursor in asked:
            intake.end("Its listing repeats a page; it is taken to end there")
        elif len(asked) + 1 >= MAX_PAGES:
            intake.end(f"Its listing has more than {MAX_PAGES} pages; the rest is left out")
        asked.add(cursor)
    return intake.admitted


async def _take_in(intake: Intake, page: list[object]) -> None:
    async with aclosing(_in_turns(page)) as turns:
        async for item in turns:
            intake.add(item)
            if intake.is_full:
                return


async def _in_turns(found: list[T]) -> AsyncGenerator[T, None]:
    """Yield what there may be thousands of, and let others have their turn meanwhile."""
    for number, each in enumerate(found):
        if number % TAKEN_IN_AT_ONCE == 0:
            await anyio.lowlevel.checkpoint()
        yield each
