"""What a search finds beside tools, and how much of it is worth telling."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from aggregator.catalog import ToolEntry
from aggregator.config.kinds import FoundKind
from aggregator.names import ToolName
from aggregator.search.hits import Hit
from aggregator.search.query import Keywords
from aggregator.toolsearch.offers import OFFER_KINDS, Offer, OfferKind, split
from aggregator.toolsearch.wording import counted

MAX_BESIDE = 3
"""Things of other kinds that are told beside tools, where nobody has asked for their kind."""
ANSWERED = 0.6
"""The part of the words of a query that such a thing must have."""


class Beside(Protocol):
    """Where prompts, skills and resources are found."""

    def rank(self, query: Keywords, kind: OfferKind, limit: int, /) -> Sequence[tuple[Offer, Hit]]:
        """Return what of a kind answers a query best, best first."""
        ...

    def find(self, kind: OfferKind, name: ToolName, /) -> Offer | None:
        """Return what of a kind is called by a name."""
        ...

    def every(self, kind: OfferKind, /) -> Iterator[Offer]:
        """Yield all there is of a kind."""
        ...


class NothingBeside:
    """There are only tools."""

    def rank(
        self, _query: Keywords, _kind: OfferKind, _limit: int, /
    ) -> Sequence[tuple[Offer, Hit]]:
        """Return nothing."""
        return ()

    def find(self, _kind: OfferKind, _name: ToolName, /) -> Offer | None:
        """Return nothing."""
        return None

    def every(self, _kind: OfferKind, /) -> Iterator[Offer]:
        """Yield nothing."""
        yield from ()


class Shown(NamedTuple):
    """What a client finds beside tools."""

    beside: Beside = NothingBeside()
    kinds: tuple[FoundKind, ...] = ("tool",)
    """The kinds that are found without asking for them."""
    known: frozenset[ToolName] = frozenset()
    """What its model is shown by the client itself, and is found only when asked for."""

    def asked(self, query: Keywords) -> tuple[FoundKind, ...]:
        """Return the kinds that a query is answered with."""
        return query.kinds or self.kinds

    def named(self, text: str) -> Offer | None:
        """Return what a text is the whole name of."""
        found = split(text)
        return found and self.beside.find(found[0], ToolName(f"{found[0]}:{found[1]}"))

    def matching(self, query: Keywords, offset: int, most: int) -> tuple[tuple[Offer, ...], bool]:
        """Return what answers a query that asks for kinds, and whether there is more of one."""
        found: list[Offer] = []
        is_more = False
        for kind in OFFER_KINDS:
            if kind not in query.kinds:
                continue
            # One beyond the last tells whether there are more.
            ranked = self.beside.rank(query, kind, offset + most + 1)
            found += [offer for offer, _ in ranked[offset : offset + most]]
            is_more = is_more or len(ranked) > offset + most
        return tuple(found), is_more

    def telling(self, query: Keywords) -> tuple[Offer, ...]:
        """Return what is worth telling beside the tools that a query is about."""
        kinds = () if query.kinds or query.marks or not query.terms else self.kinds
        found = [
            each
            for kind in OFFER_KINDS
            if kind in kinds
            for each in self.beside.rank(query, kind, MAX_BESIDE)
            if each[1].called or each[1].answered >= ANSWERED
        ]
        found.sort(key=lambda each: (-each[1].called, -each[1].score))
        told = (offer for offer, _ in found if offer.entry.name not in self.known)
        return tuple(islice(told, MAX_BESIDE))

    def counts(self) -> Iterator[str]:
        """Say how much there is of each kind but resources, which can be anything."""
        for kind in ("prompt", "skill"):
            if number := sum(1 for _ in self.beside.every(kind)):
                yield counted(number, kind)

    def every_told(self) -> Iterator[ToolEntry]:
        """Yield what is named in a list of all there is."""
        for kind in ("prompt", "skill"):
            yield from (offer.entry for offer in self.beside.every(kind))
