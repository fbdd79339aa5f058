"""What a server offers, as another configuration has it, as far as it was admitted before."""

from collections.abc import Generator, Mapping
from dataclasses import replace
from operator import is_
from types import MappingProxyType
from typing import NamedTuple

from aggregator.basics.effort import Turn, finished
from aggregator.basics.json import JsonObject
from aggregator.catalog import PromptEntry, Ready, ToolEntry
from aggregator.config import ServerConfig
from aggregator.downstream.intake import (
    READ,
    RULING,
    Admitted,
    entry_of,
    named_prompts,
    named_tools,
)
from aggregator.downstream.wishes import grant
from aggregator.names import NAMING_ALONE, Leads, ServerName, extent


class Review(NamedTuple):
    """What comes of one state of a server under another configuration."""

    state: Ready
    restricted: Ready
    """What holds at once: the same without what is forbidden."""
    reviewed: Ready
    """All that follows."""


Reviews = Mapping[ServerName, Review]
NO_REVIEWS: Reviews = MappingProxyType({})


def review(server: ServerConfig, state: Ready) -> Generator[None, None, Review]:
    """Work out all that another configuration means for a server; yield where a turn is over."""
    restricted = yield from restricting(server, state)
    # What is withheld was listed all the same, and is what whoever asks the server goes by.
    whole = replace(state, entries=state.whole, listed=())
    return Review(state, restricted, (yield from reviewing(server, whole)))


def reviewed(server: ServerConfig, state: Ready, known: Review | None = None) -> Ready:
    """Treat what a server offers as another configuration says, as far as it was admitted."""
    # What is known beside the same listing, such as how it differs, is no reason to begin anew.
    if known is None or not _lists_same(known.state, state):
        return finished(reviewing(server, state))
    return _put(state, known.reviewed)


def restricted(server: ServerConfig, state: Ready, known: Review | None = None) -> Ready:
    """Take from what a server offers only what another configuration forbids."""
    if known is None or not _offers_same(known.state, state):
        return finished(restricting(server, state))
    return state if known.restricted is known.state else _put(state, known.restricted)


def _lists_same(one: Ready, other: Ready) -> bool:
    return one.whole is other.whole and one.offers.prompts is other.offers.prompts


def _offers_same(one: Ready, other: Ready) -> bool:
    return _lists_same(one, other) and one.entries is other.entries


def _put(state: Ready, found: Ready) -> Ready:
    """Return a state with what was worked out of another that lists the same."""
    offers = replace(state.offers, prompts=found.offers.prompts)
    return replace(state, entries=found.entries, listed=found.listed, offers=offers)


def reviewing(server: ServerConfig, state: Ready) -> Generator[None, None, Ready]:
    """Treat what a server offers as another configuration says; yield where a turn is over."""
    turn = Turn()
    allowed: list[JsonObject] = []
    for each in state.entries:
        if server.allows(each.own_name):
            allowed.append(each.tool)
        if turn.is_over(RULING, cleaned=READ * extent(each.own_name)):
            yield
    named, _ = yield from named_tools(server, Admitted(tuple(allowed), ()))
    entries: list[ToolEntry] = []
    # What is as it was stays the same, with what has been found out about it.
    known = {each.own_name: each for each in state.entries}
    for name, tool in named:
        entries.append(entry_of(server, name, tool))
        if turn.is_over(RULING, cleaned=READ * extent(tool["name"])):
            yield
    granted, _ = grant(server, entries)
    entries = [old if (old := known[each.own_name]) == each else each for each in granted]
    offered = Admitted(tuple(each.prompt for each in state.offers.prompts), ())
    prompts, _ = yield from named_prompts(server, offered)
    return replace(state, entries=tuple(entries), offers=replace(state.offers, prompts=prompts))


def restricting(server: ServerConfig, state: Ready) -> Generator[None, None, Ready]:
    """Take from what a server offers what is forbidden; yield where a turn is over."""
    leads, turn = Leads(server.others), Turn()
    steps = NAMING_ALONE if server.others else RULING
    entries: list[ToolEntry] = []
    prompts: list[PromptEntry] = []
    for each in state.entries:
        if server.allows(each.own_name) and leads.claims(each.name) is None:
            entries.append(_trusted(server, each))
        if turn.is_over(steps, cleaned=READ * extent(each.own_name)):
            yield
    for each in state.offers.prompts:
        if leads.claims(each.name) is None:
            prompts.append(each)
        if turn.is_over(steps):
            yield
    listed = tuple(each for each in state.listed if server.allows(each.own_name))
    is_same = all(map(is_, entries, state.entries)) and len(entries) == len(state.entries)
    left = len(prompts) + len(listed)
    if is_same and left == len(state.offers.prompts) + len(state.listed):
        return state
    offers = replace(state.offers, prompts=tuple(prompts))
    return replace(state, entries=tuple(entries), listed=listed, offers=offers)


def _trusted(server: ServerConfig, entry: ToolEntry) -> ToolEntry:
    """Return an entry that is taken to only read for no other reason than there is now."""
    is_put_right = "annotations" in entry.put_right
    is_sure = server.reads_only(entry.own_name) or (server.trust_annotations and not is_put_right)
    return replace(entry, read_only=False) if entry.read_only and not is_sure else entry
