"""What `tools/list` shows one client now."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from aggregator.clients import ClientProfile, profile
from aggregator.exposure import (
    Deferral,
    Exposure,
    Surface,
    explain_surface,
    expose,
    time_to_live,
    visible,
)
from aggregator.fleet.fleet import Fleet
from aggregator.json import JsonObject
from aggregator.names import ToolName
from aggregator.toolsearch import definitions, instructions
from aggregator.upstream.conversation import Conversation


class Listing:
    """The list of each surface, and what a client makes of it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._begin()

    def _begin(self) -> None:
        """Forget what followed from an earlier configuration."""
        settings = self._fleet.config.settings
        self._configured = self._fleet.config
        self._measured = self._fleet.catalog
        starting = Deferral.starting(settings.tool_search, settings.context_window)
        self._deferral = starting.updated(self._measured)
        self._meta_tools = cache(self._define)

    def profile(self, conversation: Conversation) -> ClientProfile:
        """Return what is known of this kind of client."""
        return profile(conversation.client, self._fleet.config.settings.clients)

    def exposure(self, conversation: Conversation) -> Exposure:
        """Return how entries reach this client, with the tools there are now."""
        if self._configured is not self._fleet.config:
            self._begin()
        if self._measured is not self._fleet.catalog:
            self._measured = self._fleet.catalog
            self._deferral = self._deferral.updated(self._measured)
        return expose(
            self._deferral,
            self._fleet.config.settings.surface,
            conversation.era,
            self.profile(conversation),
            conversation.known_relist,
        )

    def instructions(self, conversation: Conversation) -> str:
        """Return what we tell this client about ourselves when it connects."""
        settings = self._fleet.config.settings
        choice = explain_surface(
            settings.surface,
            conversation.era,
            self.profile(conversation),
            conversation.known_relist,
        )
        surface = "full" if settings.tool_search.never else choice.surface
        return instructions(list(self._fleet.descriptions.items()), surface)

    def tools(self, conversation: Conversation) -> Sequence[JsonObject]:
        """Return the definitions this client would be given now."""
        exposure = self.exposure(conversation)
        return visible(
            self._fleet.catalog,
            surface=exposure.surface,
            meta_tools=self._meta_tools(exposure.surface),
            loaded=conversation.session.loaded,
            searching=exposure.searching,
        )

    def known_names(self, conversation: Conversation) -> frozenset[ToolName]:
        """Return the names of the entries that this client's model has in its list."""
        relists = self.profile(conversation).calls_late_tools
        listed = conversation.session.list_of(relists=relists)
        entries = self._fleet.catalog.entries
        return frozenset(ToolName(name) for name in listed if name in entries)

    def budget(self, conversation: Conversation) -> int:
        """Return how many characters an answer to this client may have."""
        limit = self.profile(conversation).max_result_chars
        usual = self._fleet.config.settings.max_result_chars
        return usual if limit is None else min(usual, limit)

    def answer(self, conversation: Conversation) -> dict[str, Any]:
        """Answer `tools/list`: one page, and note what the client has now seen."""
        tools = self.tools(conversation)
        conversation.lists(tools)
        entries = self._fleet.catalog.entries
        for tool in tools:
            if (entry := entries.get(tool["name"])) is not None:
                conversation.session.saw(entry)
        answer: dict[str, Any] = {"tools": list(tools)}
        if conversation.era == "modern":
            answer["ttlMs"] = time_to_live(self._fleet.catalog)
            answer["cacheScope"] = "private"
        return answer

    def _define(self, surface: Surface) -> tuple[JsonObject, ...]:
        """Define the meta-tools; a small catalog that is shown whole can still be waited for."""
        servers = list(self._fleet.descriptions.items())
        shown = "relay" if surface == "full" else surface
        return definitions(servers, shown, self._fleet.config.settings.max_results)
