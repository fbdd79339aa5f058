"""What one server offers: every page of each of its lists, taken in."""

import logging
from collections.abc import Generator, Iterable
from dataclasses import replace

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from aggregator.basics.effort import Turn
from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, as_object, is_array
from aggregator.basics.turns import in_turns
from aggregator.catalog import NOTHING_BESIDES, Offers, Ready, ResourceEntry, ToolEntry
from aggregator.config import ServerConfig
from aggregator.downstream.definition import beginning
from aggregator.downstream.envelope import NOTHING_MIRRORED, Mirrored
from aggregator.downstream.intake import (
    MAX_REFUSALS,
    PROMPT,
    READ,
    RESOURCE,
    RULING,
    SKILL,
    TEMPLATE,
    TOOL,
    Admitted,
    Intake,
    entry_of,
    named_prompts,
    named_tools,
    resources_of,
    skills_among,
    skills_of,
    unmatched,
)
from aggregator.downstream.link import Link
from aggregator.downstream.peer import Peer
from aggregator.downstream.tasks import offers_tasks
from aggregator.downstream.wishes import grant
from aggregator.names import ToolName, extent
from aggregator.secrecy import Redaction

logger = logging.getLogger(__name__)

SKILLS = "io.modelcontextprotocol/skills"
"""The extension by which a server says that it has skills."""
MAX_PAGES = 64
"""Pages of a listing that are asked for."""
MAX_INSTRUCTIONS = 16 * 1024
"""Characters kept of a server's instructions."""
MAX_ABOUT = 300
"""Characters kept of what a server says of itself in a line."""
LISTING_PATIENCE = 15.0
"""Seconds that a list besides the first one of tools may take."""


@frozen
class Inventory:
    """What a server offers, and which arguments of its tools are repeated in headers."""

    state: Ready
    mirrored: Mirrored


async def list_tools(
    server: ServerConfig, link: Link, known: Offers = NOTHING_BESIDES
) -> Inventory:
    """List a server's tools and make a state of them, with what else is known of it.

    Raises:
        MCPError: The server does not list them.
        UndeliveredError: It was not asked, or did not answer.
        ConnectionClosedError: The connection closed meanwhile.
    """
    intake = Intake(TOOL, server.allows)
    admitted = await list_all(link, "tools", intake)
    named, refused = await in_turns(named_tools(server, admitted))
    entries: list[ToolEntry] = []
    await in_turns(_enter(server, named, entries))
    mirrored = NOTHING_MIRRORED
    if link.peer.era == "modern":
        mirror = _Mirror()
        await in_turns(mirror.hold(entries))
        entries, mirrored = mirror.kept, mirror.mirrored
        refused = [*refused, *mirror.refused]
    entries, left = grant(server, entries)
    refused = [*refused, *left]
    complain(server, refused)
    # What else it is given, such as the name of a project, its own words may need to say.
    said = _own_words(link.peer, Redaction(server.confidential()))
    state = Ready(
        entries=tuple(entries),
        since=anyio.current_time(),
        protocol_version=said.protocol_version,
        version=f"{said.name} {said.version}".strip(),
        instructions=beginning(said.instructions, MAX_INSTRUCTIONS),
        about=_in_a_line(said.about) or _in_a_line(said.instructions),
        refused=tuple(refused),
        unmatched=await _unmatched(server, intake),
        offers=_still_offered(known, link.peer),
        is_partial=link.peer.is_told_less,
    )
    return Inventory(state, mirrored)


async def _unmatched(server: ServerConfig, intake: Intake) -> tuple[str, ...]:
    """Say what of a configuration holds for no tool; each entry is tried with thousands."""
    found: list[str] = []
    for sentence in unmatched(server, intake):
        if sentence is not None:
            found.append(sentence)
        await anyio.lowlevel.checkpoint()
    return tuple(found)


def _still_offered(known: Offers, peer: Peer) -> Offers:
    """Return what a server offers besides tools, as far as that is known before it lists it."""
    capabilities = peer.capabilities
    reads = "resources" in capabilities
    return Offers(
        prompts=known.prompts if "prompts" in capabilities else (),
        resources=known.resources if reads else (),
        templates=known.templates if reads else (),
        skills=known.skills if reads else (),
        reads=reads,
        completes="completions" in capabilities,
        tasks=offers_tasks(peer.era, capabilities),
        unlisted=frozenset(BESIDES) & capabilities.keys(),
    )


def _own_words(peer: Peer, redact: Redaction) -> Peer:
    """Return what a server says of itself without what it was given in confidence."""
    return replace(
        peer,
        name=redact.named(peer.name),
        version=redact.named(peer.version),
        # More than is kept, lest half of a secret be left at its end.
        instructions=redact.named(peer.instructions[: 2 * MAX_INSTRUCTIONS]),
        about=redact.named(peer.about[: 2 * MAX_INSTRUCTIONS]),
    )


def _in_a_line(text: str) -> str:
    """Return the beginning of what a server says of itself."""
    return beginning(text.lstrip(), MAX_ABOUT).strip().partition("\n")[0]


def _enter(
    server: ServerConfig, named: Iterable[tuple[ToolName, JsonObject]], entries: list[ToolEntry]
) -> Generator[None, None, None]:
    """Make entries that know how long they are, before somebody waits for the sum of thousands."""
    turn = Turn()
    for each in named:
        entries.append(entry_of(server, *each))
        name = entries[-1].own_name
        if turn.is_over(RULING, cleaned=entries[-1].characters + READ * extent(name)):
            yield


class _Mirror:
    """Which arguments are repeated in headers; tools that say it wrongly are left out."""

    def __init__(self) -> None:
        self.kept: list[ToolEntry] = []
        self.mirrored: dict[object, dict[tuple[str, ...], str]] = {}
        self.refused: list[str] = []

    def hold(self, entries: Iterable[ToolEntry]) -> Generator[None, None, None]:
        """Look at each tool; yield where a turn is over."""
        turn = Turn()
        for entry in entries:
            if turn.is_over(1, cleaned=entry.characters):
                yield
            if find_invalid_x_mcp_header(entry.input_schema):
                self._refuse(f"`{entry.own_name}` has an invalid `x-mcp-header`")
                continue
            self.kept.append(entry)
            if headers := x_mcp_header_map(entry.input_schema):
                self.mirrored[entry.own_name] = headers

    def _refuse(self, sentence: str) -> None:
        if len(self.refused) < MAX_REFUSALS:
            self.refused.append(sentence)


async def list_prompts(server: ServerConfig, link: Link, known: Offers) -> Offers:
    """List a server's prompts into what else it offers."""
    admitted = await list_all(link, "prompts", Intake(PROMPT))
    prompts, refused = await in_turns(named_prompts(server, admitted))
    complain(server, refused)
    return replace(known, prompts=prompts)


async def list_resources(server: ServerConfig, link: Link, known: Offers) -> Offers:
    """List a server's resources and their templates into what else it offers."""
    admitted = await list_all(link, "resources", Intake(RESOURCE))
    resources, refused = resources_of(server, admitted)
    complain(server, refused)
    templates, refused = resources_of(server, await _list_templates(link))
    complain(server, refused)
    skills, refused = skills_of(server, await _list_skills(link, resources))
    complain(server, refused)
    offers = replace(known, resources=resources, templates=templates, skills=skills)
    # While it is the turn of this server, and not of whoever first asks for those of all.
    _ = offers.resource_addresses, offers.template_addresses
    return offers


async def _list_skills(link: Link, resources: Iterable[ResourceEntry]) -> Admitted:
    """List the skills of a server: those it says it has, or else what it lists like one."""
    if SKILLS not in as_object(link.peer.capabilities.get("extensions")):
        return Admitted(tuple(skills_among(resources)), ())
    return await list_all(link, "skills", Intake(SKILL), declared=True)


async def _list_templates(link: Link) -> Admitted:
    try:
        return await list_all(link, "resources", Intake(TEMPLATE), "resources/templates/list")
    except MCPError as error:
        if error.code != types.METHOD_NOT_FOUND:
            raise
        return Intake(TEMPLATE).admitted


BESIDES = {"prompts": list_prompts, "resources": list_resources}
"""How each kind of thing besides tools is listed."""


def complain(server: ServerConfig, sentences: Iterable[str], level: int = logging.WARNING) -> None:
    """Log what of a listing was refused, or what of the configuration does not fit it."""
    for sentence in sentences:
        logger.log(level, "%s", sentence, extra={"server": server.name})


async def list_all(
    link: Link, kind: str, intake: Intake, method: str | None = None, *, declared: bool = False
) -> Admitted:
    """Ask for every page of a list, and take each in before the next is asked for.

    Of a kind that is not among the capabilities nothing is asked, unless it is declared elsewhere.

    Raises:
        MCPError: The server does not list them.
        UndeliveredError: It was not asked, or did not answer.
        ConnectionClosedError: The connection closed meanwhile.
    """
    if link.peer.capabilities and not (declared or kind in link.peer.capabilities):
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
        await in_turns(intake.take_in(page))
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            break
        if cursor in asked:
            intake.end("Its listing repeats a page; it is taken to end there")
        elif len(asked) + 1 >= MAX_PAGES:
            intake.end(f"Its listing has more than {MAX_PAGES} pages; the rest is left out")
        asked.add(cursor)
    return intake.admitted
