"""A search, from the client's arguments to the answer, in the order its surface asks for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio

from aggregator.fleet.fleet import Fleet
from aggregator.json import as_object
from aggregator.search.nearness import Nearness
from aggregator.search.query import Keywords, Query
from aggregator.toolsearch import EXPLAIN, Found, View, awaited, parse_search, search, tell
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
        explain = as_object(params.get("_meta")).get(EXPLAIN) is True
        request = parse_search(params.get("arguments"), settings.max_results, explain=explain)
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
            view = self._with_client(view, conversation)
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

    async def _near(self, queries: Sequence[Query]) -> dict[Keywords, Nearness]:
        """Ask what queries mean; those of which it is not known by now are left to their words."""
        asked = [query for query in queries if isinstance(query, Keywords) and query.terms]
        found = [(query, await self._fleet.meaning.nearness(query.text)) for query in asked]
        return {query: near for query, near in found if near}

    def _view(self, conversation: Conversation, near: Mapping[Keywords, Nearness]) -> View:
        """Put together what this client's search looks at: one catalog, read once."""
        catalog = self._fleet.catalog
        changes = conversation.session.changes(catalog)
        view = View(
            catalog=catalog,
            lookup=self._fleet.lookup,
            index=self._fleet.index,
            near=near,
            visible=self._listing.known_names(conversation),
            descriptions=self._fleet.descriptions,
            now=anyio.current_time(),
            changes=changes if conversation.has_memory else None,
            max_chars=self._listing.budget(conversation),
        )
        return self._with_client(view, conversation)

    def _with_client(self, view: View, conversation: Conversation) -> View:
        """Bring into a view what is known of this client now, and so how it calls tools."""
        relists = self._listing.profile(conversation).calls_late_tools
        return replace(
            view,
            surface=self._listing.exposure(conversation).surface,
            relists=relists,
            listed=conversation.session.list_of(relists=relists),
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
