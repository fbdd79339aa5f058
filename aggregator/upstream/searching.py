"""A search, from the client's arguments to the answer, in the order its surface asks for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from aggregator.catalog import ToolEntry
from aggregator.exposure import call_route
from aggregator.fleet.fleet import Fleet
from aggregator.search import Keywords, parse_query
from aggregator.search.nearness import Nearness
from aggregator.toolsearch import Call, Found, View, awaited, parse_search, search, tell
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.listing import Listing

MEANING_WAIT = 5.0
"""Seconds that a search which may wait gives to what the tools mean: they are read once."""

Announce = Callable[[], Awaitable[None]]
"""Tells this client, now, that its list changed."""


class Searching:
    """Answers `ToolSearch`."""

    def __init__(self, fleet: Fleet, listing: Listing) -> None:
        self._fleet = fleet
        self._listing = listing

    async def search(
        self, conversation: Conversation, params: Mapping[str, Any], announce: Announce
    ) -> dict[str, Any]:
        """Search; where found tools join the list, tell the client before it is answered."""
        settings = self._fleet.config.settings
        request = parse_search(params.get("arguments"), settings.max_results)
        if request.wait:
            with anyio.move_on_after(request.wait):
                await self._fleet.until_settled(awaited(request, self._fleet.catalog), request.wait)
                with anyio.move_on_after(MEANING_WAIT):
                    await self._fleet.meaning.until_ready()
        near = await self._near(request.queries)
        view = self._view(conversation, near)
        found = search(request, view)
        if self._listing.exposure(conversation).surface in ("promote", "hybrid"):
            await self._promote(conversation, found, announce)
            # What was learned of the client in the meantime decides how it is told to call.
            view = replace(view, call=self._caller(conversation))
        result = _answered(conversation, found, view)
        if self._listing.profile(conversation).shows_whole_result:
            # Its model would read the same facts twice.
            del result["_meta"]
        return result

    async def _promote(self, conversation: Conversation, found: Found, announce: Announce) -> None:
        """Let the found tools join the list and give the client a moment to list again."""
        names = [entry.name for entry in found.matches if not entry.always_load]
        if not conversation.session.load(names):
            return
        conversation.shown.tools = self._listing.tools(conversation)
        conversation.relisted = anyio.Event()
        conversation.session.announced()
        await announce()
        if not self._listing.profile(conversation).lists_after_result:
            with anyio.move_on_after(self._fleet.config.settings.relist_wait):
                await conversation.relisted.wait()

    async def _near(self, queries: Sequence[str]) -> dict[str, Nearness]:
        """Ask what queries mean; those of which it is not known by now are left to their words."""
        parsed = [each for each in map(parse_query, queries) if isinstance(each, Keywords)]
        found = [(each.text, await self._fleet.meaning.nearness(each.text)) for each in parsed]
        return {text: near for text, near in found if near}

    def _view(self, conversation: Conversation, near: Mapping[str, Nearness]) -> View:
        """Put together what this client's search looks at: one catalog, read once."""
        catalog = self._fleet.catalog
        changes = conversation.session.changes(catalog)
        return View(
            catalog=catalog,
            rank=partial(self._rank, near),
            find=self._fleet.find,
            namesakes=self._fleet.lookup.namesakes,
            call=self._caller(conversation),
            visible=self._listing.known_names(conversation),
            descriptions=self._fleet.descriptions,
            now=anyio.current_time(),
            changes=changes if conversation.has_memory else None,
            max_chars=self._listing.budget(conversation),
        )

    def _rank(self, near: Mapping[str, Nearness], query: Keywords, limit: int) -> list[ToolEntry]:
        index = self._fleet.index
        return [hit.entry for hit in index.rank(query, limit, near.get(query.text))]

    def _caller(self, conversation: Conversation) -> Callable[[ToolEntry], Call]:
        """Return how this client calls a tool, with what is known of it now."""
        surface = self._listing.exposure(conversation).surface
        session = conversation.session
        relists = self._listing.profile(conversation).calls_late_tools
        return lambda entry: call_route(
            entry,
            surface=surface,
            visible_to_client=session.shows(entry.name, relists=relists),
            relists=relists,
        )


def _answered(conversation: Conversation, found: Found, view: View) -> dict[str, Any]:
    """Make the result, and note what the client has now been sent."""
    answer = tell(found, view)
    for entry in answer.shown:
        conversation.session.saw(entry)
    conversation.session.answered()
    return {
        "content": [{"type": "text", "text": answer.text}],
        "_meta": {"aggregator/search": answer.meta},
    }
