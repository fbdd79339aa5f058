"""A search, from the client's arguments to the answer, in the order its surface asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio

from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.json import as_object
from aggregator.search.nearness import Nearness
from aggregator.search.query import Keywords, Query
from aggregator.toolsearch import (
    EXPLAIN,
    Found,
    SearchRequest,
    View,
    awaited,
    parse_search,
    search,
    tell,
)
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.listing import budget, exposure_for, known_names, profile_of, tools_for
from aggregator.upstream.request import Request

MEANING_WAIT = 5.0
"""Seconds that a search which may wait gives to what the tools mean: they are read once."""


class Searching:
    """Answers `ToolSearch`."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def search(self, request: Request) -> dict[str, Any]:
        """Search; where found tools join the list, tell the client before it is answered."""
        conversation = request.conversation
        asked = _read(request)
        await self._wait(asked, request.now)
        near = await self._near(asked.queries)
        # What is known may have changed meanwhile; from here on it is one value.
        now = self._fleet.now
        view = self._view(now, conversation, near)
        found = search(asked, view)
        if view.surface in ("promote", "hybrid"):
            await _promote(now, request, found)
            # What was learned of the client in the meantime decides how it is told to call.
            view = _with_client(view, now, conversation)
        result = _answer(conversation, found, view)
        if profile_of(now, conversation).shows_whole_result:
            # Its model would read the same facts twice.
            del result["_meta"]
        return result

    async def _wait(self, asked: SearchRequest, now: Now) -> None:
        """Give servers that are on their way, and what tools mean, the time that was asked for."""
        if not asked.wait:
            return
        with anyio.move_on_after(asked.wait):
            await self._fleet.until_settled(awaited(asked, now.catalog), asked.wait)
            with anyio.move_on_after(MEANING_WAIT):
                await self._fleet.meaning.until_ready()

    async def _near(self, queries: Sequence[Query]) -> dict[Keywords, Nearness]:
        """Ask what queries mean; those of which it is not known by now are left to their words."""
        asked = [query for query in queries if isinstance(query, Keywords) and query.terms]
        found = [(query, await self._fleet.meaning.nearness(query.text)) for query in asked]
        return {query: near for query, near in found if near}

    def _view(
        self, now: Now, conversation: Conversation, near: Mapping[Keywords, Nearness]
    ) -> View:
        """Put together what this client's search looks at."""
        changes = conversation.changes(now.catalog)
        view = View(
            catalog=now.catalog,
            lookup=now.lookup,
            index=self._fleet.index,
            near=near,
            visible=known_names(now, conversation),
            descriptions=now.descriptions,
            problem=now.problem,
            now=anyio.current_time(),
            changes=changes if conversation.has_memory else None,
            max_chars=budget(now, conversation),
        )
        return _with_client(view, now, conversation)


def _read(request: Request) -> SearchRequest:
    explain = as_object(request.params.get("_meta")).get(EXPLAIN) is True
    usual = request.now.config.settings.max_results
    return parse_search(request.params.get("arguments"), usual, explain=explain)


async def _promote(now: Now, request: Request, found: Found) -> None:
    """Let the found tools join the list and give the client a moment to list again."""
    conversation = request.conversation
    names = [entry.name for entry in found.matches if not entry.always_load]
    if not conversation.load(names):
        return
    conversation.promoted(tools_for(now, conversation))
    await request.caller.tell_list_changed()
    if not profile_of(now, conversation).lists_after_result:
        with anyio.move_on_after(now.config.settings.relist_wait):
            await conversation.until_listed()


def _with_client(view: View, now: Now, conversation: Conversation) -> View:
    """Bring into a view what is known of this client now, and so how it calls tools."""
    relists = profile_of(now, conversation).calls_late_tools
    return replace(
        view,
        surface=exposure_for(now, conversation).surface,
        relists=relists,
        listed=conversation.list_of(relists=relists),
    )


def _answer(conversation: Conversation, found: Found, view: View) -> dict[str, Any]:
    """Make the result, and note what the client has now been sent."""
    answer = tell(found, view)
    for entry in answer.shown:
        conversation.saw(entry)
    conversation.answered()
    return {
        "content": [{"type": "text", "text": answer.text}],
        "_meta": {"aggregator/search": answer.meta},
    }
