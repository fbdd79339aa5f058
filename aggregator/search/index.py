"""The index: what each word leads to, kept in step with the catalog server by server."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.search.analysis import LEVELS, Document, documents
from aggregator.search.concepts import Reader, Request
from aggregator.search.explain import Contribution, contributions
from aggregator.search.filters import Filter
from aggregator.search.name_index import Roll
from aggregator.search.naming import (
    UNTELLING,
    Called,
    Spelling,
    as_written,
    called,
    namesakes,
    spelling,
)
from aggregator.search.origins import Origins, Suspicion
from aggregator.search.query import Keywords
from aggregator.search.rarity import Rarity, Tally
from aggregator.search.repair import Vocabulary
from aggregator.search.scoring import Place, Score, best, complete, promising
from aggregator.search.spread import spread
from aggregator.search.weights import WEIGHTS, Weights

SHORTLIST = 48
"""Tools of which the score is worked out in full."""

ENOUGH = 4
"""Tools to choose from for each hit that is wanted, at least."""

Allowed = Callable[[ToolEntry], bool]


@dataclass(frozen=True, slots=True)
class Hit:
    """One tool that a search found."""

    document: Document
    score: float
    why: tuple[Contribution, ...] = ()
    """Filled by `Index.explain`; a search itself does not take the time."""
    part: float = 0.0
    """The score as a part of what all words of the query are worth."""
    called: bool = False
    """Whether the query is its name."""
    echo: bool = False
    """Whether it repeats the query nearly word for word."""
    stuffed: bool = False
    """Whether the query is in the midst of its text, and it begins with something else."""

    @property
    def entry(self) -> ToolEntry:
        """The tool."""
        return self.document.entry


@dataclass(slots=True, eq=False)
class _Leaving:
    """Tools that are no longer to be found, and how far forgetting them has come."""

    slots: list[int]
    """The first of them last."""
    is_counted: bool = True
    """Whether they have been counted in."""
    tally: Tally = field(default_factory=Tally)


class Index:
    """An inverted index over the tools of all servers."""

    def __init__(self, order: Sequence[ServerName] = (), *, weights: Weights = WEIGHTS) -> None:
        self._order = {server: at for at, server in enumerate(order)}
        self._weights = weights
        self._postings: dict[str, dict[int, float]] = {}
        self._documents: dict[int, Document] = {}
        self._places: dict[int, Place] = {}
        self._slots: dict[ServerName, tuple[int, ...]] = {}
        self._hidden: set[int] = set()
        """What is just coming or going, and not to be found."""
        self._leaving: list[_Leaving] = []
        self._free: list[int] = []
        self._vocabulary = Vocabulary()
        self._rarity = Rarity(weights.prior)
        self._roll = Roll()
        self._origins = Origins()

    def __len__(self) -> int:
        return len(self._documents) - len(self._hidden)

    def update(
        self, server: ServerName, entries: Sequence[ToolEntry], *, description: str = ""
    ) -> None:
        """Replace what one server had, at once."""
        _exhaust(self.stage(server, documents(server, entries, description, self._weights)))
        _exhaust(self.tidy())

    def remove(self, server: ServerName) -> None:
        """Forget the tools of one server."""
        self.hide(server)
        _exhaust(self.tidy())

    def stage(self, server: ServerName, read: Iterable[Document]) -> Generator[None, None, None]:
        """Replace what one server had in small steps.

        Until the last step what it had is found, and after it what it has now. Whoever closes
        the steps before has the server keep what it had.
        """
        slots, tally = list[int](), Tally()
        try:
            for document in read:
                slots.append(self._take_slot())
                self._hidden.add(slots[-1])
                self._add(slots[-1], document)
                tally.count(document)
                yield
        except GeneratorExit:
            self._leaving.append(_Leaving(slots, is_counted=False))
            raise
        self.hide(server)
        if slots:
            self._hidden.difference_update(slots)
            self._slots[server] = tuple(slots)
            self._place(server)
            self._rarity.add(tally.having, tally.tools)

    def hide(self, server: ServerName) -> None:
        """Find the tools of one server no more; `tidy` does the rest."""
        slots = self._slots.pop(server, ())
        self._hidden.update(slots)
        self._leaving.append(_Leaving([*reversed(slots)]))

    def tidy(self) -> Generator[None, None, None]:
        """Forget what is not to be found any more, in small steps."""
        while self._leaving:
            leaving = self._leaving[-1]
            while leaving.slots:
                slot = leaving.slots.pop()
                leaving.tally.count(self._documents[slot])
                self._drop(slot)
                yield
            self._leaving.remove(leaving)
            if leaving.is_counted:
                self._rarity.discard(leaving.tally.having, leaving.tally.tools)

    def reorder(self, order: Sequence[ServerName]) -> None:
        """Have the order of servers decide ties in another way."""
        self._order = {server: at for at, server in enumerate(order)}
        for server in self._slots:
            self._place(server)

    def rank(self, query: Keywords, limit: int, *, among: Allowed | None = None) -> list[Hit]:
        """Return the tools that answer a query best, best first."""
        allowed = self._allowed(query)
        request = self._read(query)
        if limit <= 0 or (allowed is not None and not allowed):
            return []
        asked = self._spelling(request)
        slots = self._shortlist(request, asked, limit, allowed)
        if not slots and not request.concepts:
            return self._in_order(allowed, limit, among)
        if among is not None:
            kept = [slot for slot in slots if among(self._documents[slot].entry)]
            if len(kept) < len(slots) and len(kept) < ENOUGH * limit:
                # What may be shown is far down the list: begin with what may.
                everything = self._documents.keys() if allowed is None else allowed
                passing = {slot for slot in everything if among(self._documents[slot].entry)}
                kept = self._shortlist(request, asked, limit, passing)
            slots = kept
        return self._picked(self._scored(slots, request, asked), request, limit)

    def weigh(self, query: Keywords, entries: Sequence[ToolEntry]) -> list[Hit]:
        """Return what each of some tools has of a query, however little."""
        wanted = {entry.name for entry in entries}
        servers = dict.fromkeys(entry.server for entry in entries)
        own = (slot for server in servers for slot in self._slots.get(server, ()))
        slots = [slot for slot in own if self._documents[slot].entry.name in wanted]
        request = self._read(query)
        scores = self._scored(slots, request, self._spelling(request))
        return [_hit(score, request.gain or 1.0) for score in scores.values()]

    def explain(self, query: Keywords, entry: ToolEntry) -> tuple[Contribution, ...]:
        """Return which words of a query a tool matches, in which fields, and for how much."""
        for slot in self._slots.get(entry.server, ()):
            if self._documents[slot].entry.name == entry.name:
                request = self._read(query)
                score = self._scored([slot], request, self._spelling(request))[slot]
                return contributions(request, score, self._weights)
        return ()

    def suspicion(self, document: Document) -> Suspicion:
        """Return what speaks against a tool being the original."""
        return self._origins.suspicion(document)

    def _allowed(self, query: Keywords) -> set[int] | None:
        """Return the tools that may be found, `None` if all of them may."""
        passing = Filter(self._postings, self._documents, self._slots, self._vocabulary).passing(
            query
        )
        if not self._hidden:
            return passing
        return (self._documents.keys() if passing is None else passing) - self._hidden

    def _take_slot(self) -> int:
        """Return a number that no tool has, a used one if there is any."""
        # Once none is free, the numbers in use are 0, 1, 2 ... without a gap.
        return self._free.pop() if self._free else len(self._documents)

    def _place(self, server: ServerName) -> None:
        # Servers nobody ordered come last, by name, so that arrival decides nothing.
        rank = self._order.get(server, len(self._order))
        for position, slot in enumerate(self._slots[server]):
            self._places[slot] = (rank, server, position)

    def _add(self, slot: int, document: Document) -> None:
        self._documents[slot] = document
        self._vocabulary.add(document.spelled)
        self._roll.add(slot, document.parts)
        self._origins.add(document)
        for term, level in zip(document.terms, document.levels, strict=True):
            holders = self._postings.get(term)
            if holders is None:
                holders = self._postings[term] = {}
            holders[slot] = LEVELS[level]

    def _drop(self, slot: int) -> None:
        document = self._documents.pop(slot)
        self._places.pop(slot, None)
        self._hidden.discard(slot)
        self._free.append(slot)
        self._vocabulary.discard(document.spelled)
        self._roll.discard(slot, document.parts)
        self._origins.discard(document)
        for term in document.terms:
            holders = self._postings[term]
            del holders[slot]
            if not holders:
                del self._postings[term]

    def _read(self, query: Keywords) -> Request:
        reader = Reader(self._postings, self._rarity, self._vocabulary, self._weights)
        return reader.read(query)

    def _shortlist(
        self, request: Request, asked: Spelling, limit: int, allowed: set[int] | None
    ) -> list[int]:
        """Return the tools that are worth to be scored in full."""
        guesses = promising(request, self._postings, allowed)
        least = max(SHORTLIST // 2, min(ENOUGH * limit, SHORTLIST), limit)
        slots = best(guesses, self._places, least, max(SHORTLIST, least))
        named = [slot for slot in self._named(asked) if allowed is None or slot in allowed]
        named.sort(key=self._places.__getitem__)
        return list({*slots, *named[:SHORTLIST]})

    def _named(self, asked: Spelling) -> Iterable[int]:
        """Return the tools of which the query may be the name."""
        return namesakes(asked, self._documents) or self._roll.slipped(asked.words, asked.slips)

    def _spelling(self, request: Request) -> Spelling:
        return spelling(request.words, self._postings, self._vocabulary)

    def _picked(self, scores: Mapping[int, Score], request: Request, limit: int) -> list[Hit]:
        """Return the best of some tools, best first."""
        ordered = sorted(scores.values(), key=lambda score: (-score.total, score.place))
        if any(score.called for score in ordered):
            ordered.sort(key=lambda score: (-score.called, -score.written))
        picked = spread(ordered, limit, self._weights, self._origins.suspicion)
        return [_hit(score, request.gain or 1.0) for score in picked]

    def _scored(self, slots: Iterable[int], request: Request, asked: Spelling) -> dict[int, Score]:
        scores = {slot: Score(self._documents[slot], self._places[slot]) for slot in slots}
        complete(scores, request, self._postings, self._weights)
        # Names are compared in full only where all words but one are in them.
        telling = sum(word not in UNTELLING for word in request.words)
        for score in scores.values():
            if score.in_name + score.in_host >= telling - 1:
                _compare_names(score, asked)
        return scores

    def _in_order(self, allowed: set[int] | None, limit: int, among: Allowed | None) -> list[Hit]:
        """Return what passes the filters in catalog order, when there are no words to rank by."""
        found: list[Hit] = []
        for slot in sorted(allowed or (), key=self._places.__getitem__):
            document = self._documents[slot]
            if among is None or among(document.entry):
                found.append(Hit(document, 0.0))
            if len(found) == limit:
                break
        return found


def _hit(score: Score, whole: float) -> Hit:
    return Hit(
        document=score.document,
        score=score.total,
        part=score.total / whole,
        called=bool(score.called),
        echo=score.echo,
        stuffed=score.stuffed,
    )


def _exhaust(steps: Iterable[None]) -> None:
    for _ in steps:
        pass


def _compare_names(score: Score, asked: Spelling) -> None:
    score.called = called(asked, score.document)
    if score.called is Called.MISSPELT:
        score.written = len(score.document.parts)
    elif score.called:
        score.written = as_written(asked.words, score.document)


def warm_up() -> None:
    """Load what the first query would otherwise wait for; meant for a worker thread."""
    index = Index()
    index.update(ServerName("first"), [ToolEntry(ToolName("first__one"), ServerName("first"), {})])
    index.rank(Keywords("misspelt \u4e2d", ("misspelt", "\u4e2d")), 1)
