"""A search, from the client's arguments to the answer, in the order its surface asks for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio

from aggregator.basics.json import as_object
from aggregator.basics.turns import in_turns
from aggregator.catalog import ToolEntry
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.fleet.pinning import command
from aggregator.fleet.starting import GRACE
from aggregator.names import ServerName
from aggregator.records.events import Answer
from aggregator.search.nearness import Nearness
from aggregator.search.query import Keywords, Query
from aggregator.toolsearch import SearchRequest, parse_search
from aggregator.toolsearch.answer import tell
from aggregator.toolsearch.concern import asked_of, awaited
from aggregator.toolsearch.facts import EXPLAIN
from aggregator.toolsearch.find import Found, searching
from aggregator.toolsearch.view import View
from aggregator.upstream.calls import withheld
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.listing import (
    budget,
    exposure_for,
    known_names,
    profile_of,
    shown_to,
    tools_for,
)
from aggregator.upstream.observer import Observer
from aggregator.upstream.request import Request

MEANING_WAIT = 5.0
"""Seconds that a search which may wait gives to what the tools mean: they are read once."""
APPLYING = 0.1
"""Seconds a client that has fetched its new list is given to hand it to its model: one was seen
to take 50 ms."""


class Searching:
    """Answers `ToolSearch`."""

    def __init__(self, fleet: Fleet, observer: Observer) -> None:
        self._fleet = fleet
        self._observer = observer

    async def search(self, request: Request) -> dict[str, Any]:
        """Search; where found tools join the list, tell the client before it is answered."""
        conversation, began = request.conversation, anyio.current_time()
        asked = _read(request)
        await self._wait(asked, request)
        near = await self._near(asked.queries, conversation.profile)
        # What is known may have changed meanwhile; from here on it is one value.
        now = request.outlook(self._fleet.now)
        if conversation.profile is not None:
            near = {query: each.among(now.catalog.entries) for query, each in near.items()}
        view = self._view(now, conversation, near)
        found = await in_turns(searching(asked, view))
        if exposure_for(now, conversation).surface in ("promote", "hybrid"):
            await _promote(now, request, tell(found, view).shown)
            # What the client has listed in the meantime decides how it is told to call.
            view = _with_client(view, now, conversation)
        result = _answer(conversation, found, view)
        length = len(result["content"][0]["text"])
        self._observer.see_search(request, _told(found), asked.offset, length, began)
        if profile_of(now, conversation).shows_whole_result:
            # Its model would read the same facts twice.
            del result["_meta"]
        return result

    async def _wait(self, asked: SearchRequest, request: Request) -> None:
        """Give servers that have only just begun to start a moment, and others what is asked.

        What tools mean has what is left of either.
        """
        began, outlook, awaiting = anyio.current_time(), request.outlook, self._fleet.awaiting
        concerned = asked_of(asked, outlook(self._fleet.now).catalog)
        await awaiting.until_read(concerned, request.conversation.profile)
        with anyio.move_on_after(GRACE):
            if await awaiting.until_started(lambda now: _awaited(asked, outlook(now))):
                await self._fleet.meaning.until_ready()
            for kind in asked.unlisted:
                await awaiting.until_started(lambda now: outlook(now).catalog.servers, kind)
        if not asked.wait:
            return
        with anyio.CancelScope(deadline=began + asked.wait):
            await awaiting.until_settled(_awaited(asked, outlook(self._fleet.now)), asked.wait)
            with anyio.move_on_after(MEANING_WAIT):
                await self._fleet.meaning.until_ready()

    async def _near(
        self, queries: Sequence[Query], profile: str | None
    ) -> dict[Keywords, Nearness]:
        """Ask what queries mean; those of which it is not known by now are left to their words."""
        asked = [query for query in queries if isinstance(query, Keywords) and query.terms]
        index = self._fleet.profile_views.of(profile).index
        nearness, mended = self._fleet.meaning.nearness, index.mended
        found = [(query, await nearness(query.text, *mended(query))) for query in asked]
        return {query: near for query, near in found if near}

    def _view(
        self, now: Now, conversation: Conversation, near: Mapping[Keywords, Nearness]
    ) -> View:
        """Put together what this client's search looks at."""
        changes, profile_view = (
            conversation.changes(now.catalog),
            self._fleet.profile_views.of(conversation.profile),
        )
        view = View(
            catalog=now.catalog,
            lookup=now.lookup,
            index=profile_view.index,
            near=near,
            visible=known_names(now, conversation),
            descriptions=now.descriptions,
            withheld=lambda name: str(withheld(now, name)),
            approving=lambda name: command("approve", name, now.config.path),
            problem=now.problem,
            now=anyio.current_time(),
            changes=changes if conversation.has_memory else None,
            max_chars=budget(now, conversation),
            shown=shown_to(now, conversation, profile_view.other_offers),
        )
        return _with_client(view, now, conversation)


def _told(found: Found) -> Iterator[Answer]:
    """Yield what each query found."""
    for each in found.results:
        if not each.overview:
            yield Answer(
                each.query.text, tuple(entry.name for entry in each.entries), len(each.offers)
            )


def _read(request: Request) -> SearchRequest:
    explain = as_object(request.params.get("_meta")).get(EXPLAIN) is True
    usual = request.now.config.settings.max_results
    return parse_search(request.params.get("arguments"), usual, explain=explain)


def _awaited(asked: SearchRequest, now: Now) -> tuple[ServerName, ...]:
    return awaited(asked, now.catalog, now.lookup)


async def _promote(now: Now, request: Request, shown: Sequence[ToolEntry]) -> None:
    """Let tools join the list and give the client a moment to list again.

    Only those whose definition is in the answer: a wide search names many more than a model wants.
    """
    conversation = request.conversation
    if not conversation.load(entry.name for entry in shown if not entry.always_load):
        return
    conversation.promoted(tools_for(now, conversation))
    await request.caller.tell_list_changed()
    if conversation.observed_relist is False:
        return
    with anyio.move_on_after(now.config.settings.relist_wait) as waiting:
        await conversation.until_listed()
    if not waiting.cancelled_caught:
        await anyio.sleep(APPLYING)


def _with_client(view: View, now: Now, conversation: Conversation) -> View:
    """Bring into a view what is known of this client now, and so how it calls tools."""
    relists = profile_of(now, conversation).calls_late_tools
    return replace(
        view,
        relaying=exposure_for(now, conversation).relaying,
        names=now.own_names,
        search=profile_of(now, conversation).shows(now.own_names.search),
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
