"""What one server offers: every page of each of its lists, taken in."""

import logging
from collections.abc import Iterable
from dataclasses import replace

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from aggregator.catalog import Offers, Ready, ToolEntry
from aggregator.config import ServerConfig
from aggregator.connect import Link
from aggregator.intake import (
    RESOURCE,
    TEMPLATE,
    clean,
    take_in,
    take_in_prompts,
    take_in_resources,
)

logger = logging.getLogger(__name__)

MAX_PAGES = 64
"""Pages of a listing that are asked for."""
MAX_INSTRUCTIONS = 16 * 1024
"""Characters kept of a server's instructions."""
LISTING_PATIENCE = 15.0
"""Seconds that a list besides the first one of tools may take."""


async def list_tools(server: ServerConfig, link: Link) -> Ready:
    """List a server's tools and make a state of them.

    Raises:
        MCPError: The server does not list them.
    """
    tools, refused = await list_all(link, "tools")
    entries, more = take_in(server, tools)
    if link.peer.era == "modern":
        entries, invalid = _mirrored(link, entries)
        more = [*more, *invalid]
    complain(server, (*refused, *more))
    capabilities = link.peer.capabilities
    return Ready(
        entries=tuple(entries),
        since=anyio.current_time(),
        era=link.peer.protocol_version,
        version=f"{link.peer.name} {link.peer.version}".strip(),
        instructions=clean(link.peer.instructions)[:MAX_INSTRUCTIONS],
        refused=(*refused, *more),
        offers=Offers(reads="resources" in capabilities, completes="completions" in capabilities),
    )


def _mirrored(link: Link, entries: list[ToolEntry]) -> tuple[list[ToolEntry], list[str]]:
    """Note which arguments are repeated in headers; leave out tools that say it wrongly."""
    kept = [each for each in entries if find_invalid_x_mcp_header(each.input_schema) is None]
    maps = {each.own_name: x_mcp_header_map(each.input_schema) for each in kept}
    link.mirrored = {name: each for name, each in maps.items() if each}
    refused = [each for each in entries if each not in kept]
    return kept, [f"`{each.own_name}` has an invalid `x-mcp-header`" for each in refused]


async def list_prompts(server: ServerConfig, link: Link, known: Offers) -> Offers:
    """List a server's prompts into what else it offers."""
    found, refused = await list_all(link, "prompts")
    prompts, more = take_in_prompts(server, found)
    complain(server, (*refused, *more))
    return replace(known, prompts=prompts)


async def list_resources(server: ServerConfig, link: Link, known: Offers) -> Offers:
    """List a server's resources and their templates into what else it offers."""
    found, refused = await list_all(link, "resources")
    resources, more = take_in_resources(server, found, RESOURCE)
    complain(server, (*refused, *more))
    try:
        found, refused = await list_all(link, "resources", "resources/templates/list")
    except MCPError as error:
        if error.code != types.METHOD_NOT_FOUND:
            raise
        found, refused = [], []
    templates, more = take_in_resources(server, found, TEMPLATE)
    complain(server, (*refused, *more))
    return replace(known, resources=resources, templates=templates)


BESIDES = {"prompts": list_prompts, "resources": list_resources}
"""How each kind of thing besides tools is listed."""


def complain(server: ServerConfig, sentences: Iterable[str]) -> None:
    """Log what of a listing was refused."""
    for sentence in sentences:
        logger.warning("%s: %s", server.name, sentence)


async def list_all(
    link: Link, kind: str, method: str | None = None
) -> tuple[list[object], list[str]]:
    """Ask for every page of a list; also say what was wrong with it.

    Raises:
        MCPError: The server does not list them.
    """
    if link.peer.capabilities and kind not in link.peer.capabilities:
        return [], []
    method = method or f"{kind}/list"
    member = "resourceTemplates" if method == "resources/templates/list" else kind
    items: list[object] = []
    cursor: object = None
    asked: set[object] = set()
    while len(asked) < MAX_PAGES:
        result = await link.request(method, None if cursor is None else {"cursor": cursor})
        page: object = result.get(member)
        if not isinstance(page, list):
            raise MCPError(
                types.INTERNAL_ERROR, f"it answered `{method}` without a list of {member}"
            )
        items.extend(page)  # pyright: ignore[reportUnknownArgumentType] - checked by `intake`
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            return items, []
        if cursor in asked:
            return items, ["Its listing repeats a page; it is taken to end there"]
        asked.add(cursor)
    return items, [f"Its listing has more than {MAX_PAGES} pages; the rest is left out"]
