"""What `tools/list` shows one client now."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from aggregator.clients import ClientProfile, profile
from aggregator.exposure import Exposure, Surface, explain_surface, expose, visible
from aggregator.fleet.now import Now
from aggregator.json import JsonObject
from aggregator.names import ServerName, ToolName
from aggregator.toolsearch import definitions, instructions
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.request import Request


def answer(request: Request) -> dict[str, Any]:
    """Answer `tools/list`: one page, and note what the client has now seen."""
    now, conversation = request.now, request.conversation
    tools = tools_for(now, conversation)
    conversation.listed(tools)
    for tool in tools:
        if (entry := now.catalog.entries.get(tool["name"])) is not None:
            conversation.saw(entry)
    return request.cacheable({"tools": list(tools)})


def tools_for(now: Now, conversation: Conversation) -> Sequence[JsonObject]:
    """Return the definitions this client would be given now."""
    exposure = exposure_for(now, conversation)
    # A small catalog that is shown whole can still be waited for.
    surface = "relay" if exposure.surface == "full" else exposure.surface
    return visible(
        now.catalog,
        surface=exposure.surface,
        meta_tools=_define(
            tuple(now.descriptions.items()), surface, now.config.settings.max_results
        ),
        loaded=conversation.loaded,
        searching=exposure.searching,
    )


@lru_cache(maxsize=16)
def _define(
    servers: tuple[tuple[ServerName, str], ...], surface: Surface, max_results: int
) -> Sequence[JsonObject]:
    """Define the meta-tools, which follow from the configuration alone, once."""
    return definitions(servers, surface, max_results)


def exposure_for(now: Now, conversation: Conversation) -> Exposure:
    """Return how entries reach this client, with the tools there are now."""
    return expose(
        now.deferral,
        now.config.settings.surface,
        conversation.era,
        profile_of(now, conversation),
        conversation.known_relist,
    )


def profile_of(now: Now, conversation: Conversation) -> ClientProfile:
    """Return what is known of this kind of client."""
    return profile(conversation.client, now.config.settings.clients)


def instructions_for(now: Now, conversation: Conversation) -> str:
    """Return what we tell this client about ourselves when it connects."""
    settings = now.config.settings
    choice = explain_surface(
        settings.surface,
        conversation.era,
        profile_of(now, conversation),
        conversation.known_relist,
    )
    surface = "full" if settings.tool_search.never else choice.surface
    return instructions(list(now.descriptions.items()), surface)


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
