"""A search, from the client's arguments to the answer, in the order its surface asks for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from aggregator.catalog import ToolEntry
from aggregator.exposure import call_route
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.search import Keywords, parse_query
from aggregator.toolsearch import Call, Found, View, awaited, parse_search, search, tell
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.listing import budget, exposure_for, known_names, profile_of, tools_for
from aggregator.upstream.request import Request

if TYPE_CHECKING:
    from aggregator.search.semantic.fusion import Nearness

MEANING_WAIT = 5.0
"""Seconds that a search which may wait gives to what the tools mean: they are read once."""


class Searching:
    """Answers `ToolSearch`."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def search(self, request: Request) -> dict[str, Any]:
        """Search; where found tools join the list, tell the client before it is answered."""
        conversation = request.conversation
        asked = parse_search(
            request.params.get("arguments"), request.now.config.settings.max_results
        )
        if asked.wait:
            with anyio.move_on_after(asked.wait):
                await self._fleet.until_settled(awaited(asked, request.now.catalog), asked.wait)
                with anyio.move_on_after(MEANING_WAIT):
                    await self._fleet.meaning.until_ready()
        near = await self._near(asked.queries)
        now = self._fleet.now
        view = self._view(now, conversation, near)
        found = search(asked, view)
        if exposure_for(now, conversation).surface in ("promote", "hybrid"):
            await self._promote(now, request, found)
            # What was learned of the client in the meantime decides how it is told to call.
            view = replace(view, call=_caller(now, conversation))
        result = _answer(conversation, found, view)
        if profile_of(now, conversation).shows_whole_result:
            # Its model would read the same facts twice.
            del result["_meta"]
        return result

    async def _promote(self, now: Now, request: Request, found: Found) -> None:
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

    async def _near(self, queries: Sequence[str]) -> "dict[str, Nearness]":
        """Ask what queries mean; those of which it is not known by now are left to their words."""
        parsed = [each for each in map(parse_query, queries) if isinstance(each, Keywords)]
        found = [(each.text, await self._fleet.meaning.nearness(each.text)) for each in parsed]
        return {text: near for text, near in found if near}

    def _view(self, now: Now, conversation: Conversation, near: "Mapping[str, Nearness]") -> View:
        """Put together what this client's search looks at."""
        changes = conversation.changes(now.catalog)
        return View(
            catalog=now.catalog,
            rank=partial(self._rank, near),
            find=now.find,
            namesakes=now.lookup.namesakes,
            call=_caller(now, conversation),
            visible=known_names(now, conversation),
            descriptions=now.descriptions,
            problem=now.problem,
            now=anyio.current_time(),
            changes=changes if conversation.has_memory else None,
            max_chars=budget(now, conversation),
        )

    def _rank(self, near: "Mapping[str, Nearness]", query: Keywords, limit: int) -> list[ToolEntry]:
        index = self._fleet.index
        if query.text in near:
            # Only where the extra is installed.
            from aggregator.search.semantic.fusion import rank  # noqa: PLC0415 - see above

            return [hit.entry for hit in rank(index, query, near[query.text], limit)]
        return [hit.entry for hit in index.rank(query, limit)]


def _caller(now: Now, conversation: Conversation) -> Callable[[ToolEntry], Call]:
    """Return how this client calls a tool, with what is known of it now."""
    surface = exposure_for(now, conversation).surface
    relists = profile_of(now, conversation).calls_late_tools
    return lambda entry: call_route(
        entry,
        surface=surface,
        visible_to_client=conversation.shows(entry.name, relists=relists),
        relists=relists,
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
