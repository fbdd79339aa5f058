"""What a server lists after its first list of tools: how long it may take, and how often."""

import logging
from dataclasses import replace

import anyio

from aggregator.config import ServerConfig
from aggregator.downstream.failure import FAILURES, in_words
from aggregator.downstream.inventory import BESIDES, LISTING_PATIENCE, Inventory, list_tools
from aggregator.downstream.link import Link
from aggregator.secrecy import Redaction

logger = logging.getLogger(__name__)

RELIST_PAUSE = 1.0
"""Seconds between two listings of a server that keeps saying it changed."""
RELIST_PAUSE_MAX = 30.0
"""The same for a server whose listing turns out not to have changed."""


def longer(pause: float) -> float:
    """Return the pause after a listing that changed nothing."""
    return min(pause * 2, RELIST_PAUSE_MAX)


async def list_anew(server: ServerConfig, link: Link, known: Inventory, kind: str) -> Inventory:
    """List one kind of what a server offers; what cannot be listed stays as it is known."""
    try:
        with anyio.fail_after(LISTING_PATIENCE):
            known = await _list_kind(server, link, known, kind)
    except FAILURES as error:
        logger.warning(
            "its %s could not be listed (%s); keeping those known so far",
            kind,
            Redaction(server.given())(in_words(error)),
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
