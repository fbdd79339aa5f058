"""What servers offer beside tools, and skills on this machine, so that a search finds it.

It has indexes of its own, one for each kind: how tools are ranked does not depend on it.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import anyio.lowlevel
from anyio import to_thread

from aggregator.basics.signals import Signal
from aggregator.basics.turns import in_turns
from aggregator.catalog import NOTHING_BESIDES, Offers
from aggregator.fleet.indexing import Growing, take_steps
from aggregator.fleet.now import Now
from aggregator.names import ServerName, ToolName
from aggregator.search.hits import Hit
from aggregator.search.query import Keywords
from aggregator.toolsearch.offers import (
    OFFER_KINDS,
    OURS,
    Offer,
    OfferKind,
    by_kind,
    called,
    local_skill,
    offers_of,
)
from aggregator.toolsearch.offers.skills import Skill, Skills, read_skills

logger = logging.getLogger(__name__)

Given = Offers | Mapping[str, Skill]
"""What offers are made of, the same object as long as it is the same."""
NONE: Mapping[ToolName, Offer] = {}


class OtherOffers:
    """Keeps what is found beside tools in step with what is known."""

    def __init__(self, now: Now, changed: Signal, *, has_read: bool = False) -> None:
        self._now = now
        self._changed = changed
        """Sent when something else is known, and when something can be found that could not be."""
        self._staged: dict[ServerName, Given] = {}
        """What each server's offers were made of."""
        self._offers: dict[OfferKind, dict[ServerName, Mapping[ToolName, Offer]]] = {
            kind: {} for kind in OFFER_KINDS
        }
        self._indexes: dict[OfferKind, Growing] = {}
        self._settled: Now | None = None
        """What was known when all of it could be found: it is asked by every search."""
        self._is_read = has_read or not now.config.settings.skills
        """Whether the skills on this machine have been read."""

    def follow(self, now: Now) -> None:
        """Take note of what is known now; whoever does that sends the signal."""
        self._now = now

    def is_ready(self, servers: Collection[ServerName]) -> bool:
        """Whether something of what these servers are known to offer can be found."""
        due = self._due().keys() - self._staged.keys()
        return self._is_read and not any(each == OURS or each in servers for each in due)

    async def read(self, show: Callable[[Sequence[Skill]], None]) -> None:
        """Read the skills on this machine, and again whenever the configuration is."""
        while True:
            config = self._now.config
            skills = await _read_local(config.settings.skills)
            if skills != tuple(self._now.routes.local.values()):
                show(skills)
            self._is_read = True
            self._changed.send()
            while self._now.config is config:
                await self._changed.wait()

    async def run(self) -> None:
        """Make whatever is offered findable, a little at a time."""
        while True:
            due = self._due()
            if not due:
                await self._changed.wait()
                continue
            server, given = next(iter(due.items()))
            await self._stage(server, given)
            await anyio.lowlevel.checkpoint()
            self._changed.send()

    def rank(self, query: Keywords, kind: OfferKind, limit: int) -> Sequence[tuple[Offer, Hit]]:
        """Return what of a kind answers a query best, best first."""
        known = self._offers[kind]
        if not (query.terms or query.required or query.servers):
            return [(each, Hit(each.entry, 0.0)) for each in islice(self.every(kind), limit)]
        index = self._indexes.get(kind)
        hits = () if index is None else index.rank(query._replace(marks=()), limit)
        found = ((known.get(hit.entry.server, NONE).get(hit.entry.name), hit) for hit in hits)
        return [(offer, hit) for offer, hit in found if offer is not None and self._leads(offer)]

    def find(self, kind: OfferKind, name: ToolName) -> Offer | None:
        """Return what of a kind is called by a name, if it is offered."""
        found = (each[name] for each in self._offers[kind].values() if name in each)
        return next(filter(self._leads, found), None)

    def every(self, kind: OfferKind) -> Iterator[Offer]:
        """Yield all that is offered of a kind, in the order of the configuration."""
        for server in self._order(kind):
            yield from filter(self._leads, self._offers[kind][server].values())

    def _leads(self, offer: Offer) -> bool:
        """Whether what an offer is called by still means that of its server.

        Another that comes before it in the configuration may have listed the same URI since, and
        it may no longer be there, or not for those who look.
        """
        routes, name = self._now.routes, offer.entry.name.removeprefix(called(offer.kind, ""))
        match offer.kind:
            case "prompt":
                return name in routes.prompts
            case "skill":
                return name in (routes.local if offer.entry.server == OURS else routes.skills)
            case "resource":
                return routes.leads_to(offer.entry.server, name)

    def _order(self, kind: OfferKind) -> Iterator[ServerName]:
        """Yield who offers something of a kind: this machine first, then the servers."""
        known = self._offers[kind]
        yield from (each for each in (OURS, *self._now.catalog.servers) if each in known)

    def _due(self) -> dict[ServerName, Given]:
        """Return what is not as it can be found, by whose it is."""
        if self._settled is self._now:
            return {}
        known = self._now.catalog.known
        given: dict[ServerName, Given] = {OURS: self._now.routes.local}
        given |= {name: state.offers for name, state in known.items()}
        gone = self._staged.keys() - given.keys()
        due = {name: each for name, each in given.items() if self._differs(name, each)}
        due |= dict.fromkeys(gone, NOTHING_BESIDES)
        self._settled = None if due else self._now
        return due

    def _differs(self, server: ServerName, given: Given) -> bool:
        pairs = zip(_parts(given), _parts(self._staged.get(server, NOTHING_BESIDES)), strict=False)
        return any(now is not before and (now or before) for now, before in pairs)

    async def _stage(self, server: ServerName, given: Given) -> None:
        if isinstance(given, Offers):
            offers = offers_of(given, self._now.routes.shown_uri)
        else:
            offers = map(local_skill, given.values())
        for kind, named in (await in_turns(by_kind(offers))).items():
            if named:
                index = self._indexes.get(kind) or self._begin(kind)
                entries = [offer.entry for offer in named.values()]
                await take_steps(index.stage(server, entries))
                self._offers[kind][server] = named
            elif self._offers[kind].pop(server, None) is not None:
                self._indexes[kind].hide(server)
            if kind in self._indexes:
                await take_steps(self._indexes[kind].tidy())
        # What is known may have changed meanwhile, and be another than this.
        self._settled = None
        if given is NOTHING_BESIDES:
            self._staged.pop(server, None)
        else:
            self._staged[server] = given

    def _begin(self, kind: OfferKind) -> Growing:
        # Where nothing but tools is offered, none is needed.
        from aggregator.search.index import Index  # noqa: PLC0415 - see above

        self._indexes[kind] = Index((OURS, *self._now.config.enabled))
        return self._indexes[kind]


def _parts(given: Given) -> tuple[object, ...]:
    """Return what offers are made of."""
    if isinstance(given, Offers):
        return given.prompts, given.skills, given.resources
    return (given,)


async def _read_local(directories: Sequence[Path]) -> tuple[Skill, ...]:
    """Read the skills that a configuration names while others have their turn."""
    try:
        found = await to_thread.run_sync(read_skills, directories) if directories else Skills()
    except RuntimeError:
        # There is no thread to be had: everybody waits.
        found = read_skills(directories)
    for problem in found.problems:
        logger.warning("%s", problem)
    return found.skills
