"""What a server lists after its first list of tools: how long it may take, and how often."""

import logging
from collections.abc import Callable, Collection
from dataclasses import replace

import anyio

from aggregator.basics.signals import Signal
from aggregator.basics.turns import in_turns
from aggregator.catalog import Ready
from aggregator.config import ServerConfig
from aggregator.downstream.failure import FAILURES, in_words, shown
from aggregator.downstream.inventory import BESIDES, LISTING_PATIENCE, Inventory, list_tools
from aggregator.downstream.link import Link
from aggregator.downstream.need import Need
from aggregator.downstream.news import LinkNews
from aggregator.downstream.requests import Requests
from aggregator.downstream.review import reviewing
from aggregator.downstream.status import ServerStatus
from aggregator.secrecy import Redaction

logger = logging.getLogger(__name__)

RELIST_PAUSE = 1.0
"""Seconds between two listings of a server that keeps saying it changed."""
RELIST_PAUSE_MAX = 30.0
"""The same for a server whose listing turns out not to have changed."""


class Following:
    """Lists again, while a link lives, whenever its server says that something has changed."""

    def __init__(
        self,
        link: Link,
        news: LinkNews,
        *,
        configured: Callable[[], ServerConfig],
        status: ServerStatus,
        requests: Requests,
        need: Need,
    ) -> None:
        self._link = link
        self._news = news
        self._configured = configured
        """Returns the server as it is configured by now."""
        self._status = status
        self._requests = requests
        self._need = need
        self._is_due = False
        self._reviewed = Signal()

    def review(self) -> None:
        """List without a pause what another configuration may treat in another way."""
        self._news.changed(("tools", "prompts"))
        self._is_due = True
        self._reviewed.send()

    async def run(self) -> None:
        """List what there is besides tools, and then whatever changes, within reason."""
        for kind in BESIDES:
            await self._list([kind])
        pause = RELIST_PAUSE
        while True:
            stale = await self._news.take_stale()
            # Whoever has news of itself may have more.
            self._need.stir()
            self._is_due = False
            is_changed = await self._list(stale)
            pause = RELIST_PAUSE if is_changed else min(pause * 2, RELIST_PAUSE_MAX)
            with anyio.move_on_after(pause):
                while not self._is_due:
                    await self._reviewed.wait()

    async def _list(self, kinds: Collection[str]) -> bool:
        """List these kinds and report what differs; say whether anything does."""
        server, state = self._configured(), self._status.ready or Ready()
        for kind in kinds:
            known = Inventory(state, self._requests.mirrored)
            inventory = await _list_anew(self._configured(), self._link, known, kind)
            state = inventory.state
            self._requests.mirror(inventory.mirrored)
        while server is not self._configured():
            server = self._configured()
            state = await in_turns(reviewing(server, state))
        before = self._status.ready or state
        is_over = self._requests.link is not self._link
        if is_over or replace(state, since=before.since) == before:
            return False
        self._status.offer(state)
        self._need.look()
        return True


async def _list_anew(server: ServerConfig, link: Link, known: Inventory, kind: str) -> Inventory:
    """List one kind of what a server offers; what cannot be listed stays as it is known."""
    try:
        with anyio.fail_after(LISTING_PATIENCE):
            known = await _list_kind(server, link, known, kind)
    except FAILURES as error:
        logger.warning(
            "its %s could not be listed (%s); keeping those known so far",
            kind,
            shown(in_words(error), Redaction(server.given())),
            extra={"server": server.name},
        )
    return replace(known, state=known.state.with_listed(kind))


async def _list_kind(server: ServerConfig, link: Link, known: Inventory, kind: str) -> Inventory:
    state = known.state
    if kind == "tools":
        inventory = await list_tools(server, link)
        return replace(inventory, state=replace(inventory.state, offers=state.offers))
    if kind not in link.peer.capabilities:
        return known
    offers = await BESIDES[kind](server, link, state.offers)
    return replace(known, state=replace(state, offers=offers))
