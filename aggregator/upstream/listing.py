"""What `tools/list` shows one client now."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject
from aggregator.clients import ClientProfile, profile
from aggregator.exposure import Exposure, Surface, explain_surface, expose, visible
from aggregator.fleet.now import Now
from aggregator.names import MetaTools, ServerName, ToolName
from aggregator.toolsearch import definitions, instructions
from aggregator.toolsearch.beside import Beside, Shown
from aggregator.toolsearch.offers import called
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.request import Request


def answer(request: Request) -> dict[str, Any]:
    """Answer `tools/list`: one page, and note what the client has now seen."""
    now, conversation = request.now, request.conversation
    tools = tools_for(now, conversation)
    known = tools if request.given is None else request.given
    conversation.listed(known)
    for tool in known if known is tools else _unchanged(known, tools):
        if (entry := now.catalog.entries.get(tool["name"])) is not None:
            conversation.saw(entry)
    return request.cacheable({"tools": list(tools)})


def _unchanged(known: Sequence[JsonObject], tools: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the tools that are as the client knows them."""
    by_name = {tool["name"]: tool for tool in known}
    return [tool for tool in tools if by_name.get(tool["name"]) == tool]


def tools_for(now: Now, conversation: Conversation) -> Sequence[JsonObject]:
    """Return the definitions this client would be given now."""
    exposure = exposure_for(now, conversation)
    # A small catalog that is shown whole can still be waited for.
    surface = "relay" if exposure.surface == "full" else exposure.surface
    return visible(
        now.catalog,
        surface=exposure.surface,
        meta_tools=_define(
            tuple(now.descriptions.items()),
            surface,
            now.config.settings.max_results,
            now.own_names,
            relaying=exposure.relaying,
        ),
        loaded=conversation.loaded,
        searching=exposure.searching,
    )


def search_for_hosts(now: Now) -> JsonObject:
    """Return the search as it is defined to a model whose found tools are called by their names."""
    servers, settings = tuple(now.descriptions.items()), now.config.settings
    return _define(servers, "promote", settings.max_results, now.own_names, relaying=False)[0]


@lru_cache(maxsize=64)
def _define(
    servers: tuple[tuple[ServerName, str], ...],
    surface: Surface,
    max_results: int,
    names: MetaTools,
    *,
    relaying: bool,
) -> Sequence[JsonObject]:
    """Define the meta-tools, which follow from the configuration alone, once."""
    return definitions(servers, surface, max_results, names, relaying=relaying)


def exposure_for(now: Now, conversation: Conversation) -> Exposure:
    """Return how entries reach this client, with the tools there are now."""
    return expose(
        now.deferral,
        now.config.settings.surface,
        _era(conversation),
        profile_of(now, conversation),
        conversation.known_relist,
    )


def _era(conversation: Conversation) -> Era:
    """Return whose rules hold for a client's list: a session that keeps it is as good as none."""
    return "modern" if conversation.keeps_list else conversation.era


def profile_of(now: Now, conversation: Conversation) -> ClientProfile:
    """Return what is known of this kind of client."""
    return profile(conversation.client, now.config.settings.clients)


def instructions_for(now: Now, conversation: Conversation) -> str:
    """Return what we tell this client about ourselves when it connects."""
    settings = now.config.settings
    known = profile_of(now, conversation)
    era = _era(conversation)
    choice = explain_surface(settings.surface, era, known, conversation.known_relist)
    surface = "full" if settings.tool_search.never else choice.surface
    servers = list(now.descriptions.items())
    names = MetaTools(*map(known.shows, now.own_names))
    return instructions(servers, surface, names, relaying=choice.relaying)


def shown_to(now: Now, conversation: Conversation, beside: Beside) -> Shown:
    """Return what a client finds beside tools; not twice what it shows its model by itself."""
    if not exposure_for(now, conversation).relaying:
        return Shown()
    places = profile_of(now, conversation).skill_places if conversation.is_alone else ()
    known = (
        called("skill", skill.name)
        for skill in now.routes.local.values()
        if places and str(skill.directory.parent).endswith(places)
    )
    return Shown(beside, now.config.settings.find, frozenset(known))


def known_names(now: Now, conversation: Conversation) -> frozenset[ToolName]:
    """Return the names of the entries that this client's model has in its list."""
    relists = profile_of(now, conversation).calls_late_tools
    listed = conversation.list_of(relists=relists)
    entries = now.catalog.entries
    return frozenset(ToolName(name) for name in listed if name in entries)


def budget(now: Now, conversation: Conversation) -> int:
    """Return how many characters an answer to this client may have."""
    limit = profile_of(now, conversation).max_result_chars
    usual = now.config.settings.max_result_chars
    return usual if limit is None else min(usual, limit)
