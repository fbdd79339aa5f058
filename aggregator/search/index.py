"""The index: what each word leads to, kept in step with the catalog server by server."""

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.search.analysis import LEVELS, Document, documents
from aggregator.search.concepts import Reader, Request
from aggregator.search.explain import contributions
from aggregator.search.fields import texts
from aggregator.search.filters import MARKED, Filter
from aggregator.search.habits import asked_words
from aggregator.search.hits import Contribution, Experience, Hit
from aggregator.search.name_index import NameIndex
from aggregator.search.naming import (
    UNTELLING,
    Called,
    Spelling,
    as_written,
    called,
    namesakes,
    spelling,
)
from aggregator.search.nearness import Nearness
from aggregator.search.origins import Origins, Suspicion
from aggregator.search.query import Keywords, Mark
from aggregator.search.ranking import pick
from aggregator.search.rarity import Rarity, Tally
from aggregator.search.repair import Vocabulary
from aggregator.search.scoring import Place, Score, best, complete, promising
from aggregator.search.weights import (
    LONG_REQUEST,
    MAX_GUESSES,
    SHORTLIST,
    WEIGHTS,
    Weights,
)
from aggregator.search.words import stem, words


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
        self._marked: dict[Mark, set[int]] = {mark: set() for mark in MARKED}
        self._vocabulary = Vocabulary()
        self._rarity = Rarity(weights.prior)
        self._experience: Experience | None = None
        self._names = NameIndex()
        self._origins = Origins()

    def __repr__(self) -> str:
        return f"<Index of {len(self)} tools, {len(self._slots)} servers>"

    def __len__(self) -> int:
        return len(self._documents) - len(self._hidden)

    def update(
        self, server: ServerName, entries: Sequence[ToolEntry], *, description: str = ""
    ) -> None:
        """Replace what one server had, at once."""
        _exhaust(self.stage(server, entries, description))
        _exhaust(self.tidy())

    def remove(self, server: ServerName) -> None:
        """Forget the tools of one server."""
        self.hide(server)
        _exhaust(self.tidy())

    def stage(
        self,
        server: ServerName,
        entries: Iterable[ToolEntry],
        description: str = "",
        like: object = None,
    ) -> Generator[None, None, None]:
        """Replace what one server had in small steps, a tool in each.

        What another index, if one is given, has read of a tool is not read again. Until the last
        step what the server had is found, and after it what it has now. Whoever closes the steps
        before has it keep what it had.
        """
        slots, tally = list[int](), Tally()
        try:
            read = like.documents(server) if isinstance(like, Index) else None
            for document in documents(server, entries, description, self._weights, read):
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

    def documents(self, server: ServerName) -> Mapping[ToolName, Document]:
        """Return what is known of the tools of one server, by their names."""
        own = (self._documents[slot] for slot in self._slots.get(server, ()))
        return {each.entry.name: each for each in own}

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

    def rank(self, query: Keywords, limit: int, near: Nearness | None = None) -> list[Hit]:
        """Return the tools that answer a query best, best first.

        They are ranked by the words of the query, and by its meaning where that is known.
        """
        passing = self._passing(query)
        allowed = self._without_hidden(passing)
        if limit <= 0 or (allowed is not None and not allowed):
            return []
        request = self._read(query)
        asked = self._spelling(request)
        size = limit if near is None else max(limit, self._weights.blending.candidates)
        slots = self._shortlist(request, asked, size, allowed)
        if not slots and not request.concepts:
            slots = sorted(allowed or (), key=self._places.__getitem__)[:size]
            if near is None or not query.terms:
                return [Hit(self._documents[slot].entry, 0.0) for slot in slots[:limit]]
        if near is not None:
            slots = list({*slots, *self._near(near, passing)})
        scores = [*self._scored(slots, request, asked).values()]
        picked = pick(
            scores,
            limit,
            self._origins.suspicion,
            self._weights,
            request=request,
            near=near,
        )
        telling = sum(word not in UNTELLING for word in request.words)
        return [_hit(score, telling, is_blended=near is not None) for score in picked]

    def learn(self, experience: Experience, /) -> None:
        """Lift what was called after like requests from now on."""
        self._experience = experience

    def mended(self, query: Keywords) -> tuple[str, ...]:
        """Return a query with its slips put right, as its words are ranked, if it has any.

        In a long request an unknown word is more likely a name than a slip.
        """
        text = query.text
        said = dict.fromkeys(words(text)) if len(query.terms) <= LONG_REQUEST else ()
        unknown = [word for word in said if stem(word) not in self._postings]
        for word in unknown[:MAX_GUESSES]:
            if (meant := self._vocabulary.nearest(word)) is not None:
                text = re.sub(rf"\b{re.escape(word)}\b", meant, text, flags=re.IGNORECASE)
        return (text,) if text != query.text else ()

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

    def _passing(self, query: Keywords) -> set[int] | None:
        """Return the tools that pass the filters of a query, `None` if it has none."""
        known = Filter(self._postings, self._documents, self._slots, self._vocabulary, self._marked)
        return known.passing(query)

    def _without_hidden(self, passing: set[int] | None) -> set[int] | None:
        """Return those of some tools that may be found now, `None` if all of them may."""
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
        for mark, is_marked in MARKED.items():
            if is_marked(document.entry):
                self._marked[mark].add(slot)
        self._vocabulary.add(document.spelled)
        self._names.add(slot, document.parts)
        self._origins.add(document)
        for term, level in zip(document.terms, document.levels, strict=True):
            holders = self._postings.get(term)
            if holders is None:
                holders = self._postings[term] = {}
            holders[slot] = LEVELS[level]

    def _drop(self, slot: int) -> None:
        document = self._documents.pop(slot)
        self._places.pop(slot, None)
        for marked in self._marked.values():
            marked.discard(slot)
        self._hidden.discard(slot)
        self._free.append(slot)
        self._vocabulary.discard(document.spelled)
        self._names.discard(slot, document.parts)
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
        least = max(SHORTLIST // 2, limit)
        slots = best(guesses, self._places, least, max(SHORTLIST, least))
        named = [slot for slot in self._named(asked) if allowed is None or slot in allowed]
        named.sort(key=self._places.__getitem__)
        return list({*slots, *named[:SHORTLIST]})

    def _named(self, asked: Spelling) -> Iterable[int]:
        """Return the tools of which the query may be the name."""
        return namesakes(asked, self._documents) or self._names.slipped(asked.words, asked.slips)

    def _spelling(self, request: Request) -> Spelling:
        return spelling(request.words, self._postings, self._vocabulary)

    def _near(self, near: Nearness, passing: set[int] | None) -> list[int]:
        """Return the tools that may be found by their meaning alone."""
        names = None if passing is None else {self._documents[slot].entry.name for slot in passing}
        blending = self._weights.blending
        entries = near.nearest(blending.nearest, blending.distant, names)
        wanted = {entry.name for entry in entries}
        servers = dict.fromkeys(entry.server for entry in entries)
        own = (slot for server in servers for slot in self._slots.get(server, ()))
        return [slot for slot in own if self._documents[slot].entry.name in wanted]

    def _scored(self, slots: Iterable[int], request: Request, asked: Spelling) -> dict[int, Score]:
        scores = {slot: Score(self._documents[slot], self._places[slot]) for slot in slots}
        complete(scores, request, self._postings, self._weights)
        if self._experience is not None:
            known = self._experience.strengths(asked_words(request.words))
            for score in scores.values() if known else ():
                score.lift(self._weights.learned * known.get(score.document.entry.name, 0.0))
        # Names are compared in full only where all words but one are in them.
        telling = sum(word not in UNTELLING for word in request.words)
        for score in scores.values():
            if score.in_name + score.in_host >= telling - 1:
                _compare_names(score, asked)
        for score in scores.values():
            if score.called and score.document.is_deprecated:
                _hand_on(score, scores.values())
        return scores


def _hit(score: Score, telling: int, *, is_blended: bool) -> Hit:
    return Hit(
        score.document.entry,
        score.worth,
        called=bool(score.called),
        meaning=score.meaning if is_blended else None,
        answered=min(1.0, score.held.bit_count() / max(telling, 1)),
    )


def _exhaust(steps: Iterable[None]) -> None:
    for _ in steps:
        pass


def _compare_names(score: Score, asked: Spelling) -> None:
    found = called(asked, score.document)
    if found is Called.MISSPELT:
        score.name(found, len(score.document.parts))
    elif found:
        score.name(found, as_written(asked.words, score.document))


def _hand_on(old: Score, scores: Iterable[Score]) -> None:
    """Give a name that a query calls a deprecated tool by to the one that it says took its place.

    That is one of the same server: nobody else gains by it.
    """
    said = words(texts(old.document.entry).description)
    heirs = [
        each
        for each in scores
        if each.document.host is old.document.host
        and not each.called
        and not each.document.is_deprecated
        and _has_in_row(said, each.document.parts)
    ]
    if heirs:
        # A name of one word may stand there for itself.
        heir = min(heirs, key=lambda each: (-len(each.document.parts), each.place))
        heir.name(old.called, old.written)
    old.name(Called.NO, 0)


def _has_in_row(said: Sequence[str], name: Sequence[str]) -> bool:
    """Return whether the words of a name stand side by side in a text."""
    return f" {' '.join(name)} " in f" {' '.join(said)} "


def warm_up() -> None:
    """Load what the first query would otherwise wait for; meant for a worker thread."""
    index = Index()
    index.update(ServerName("first"), [ToolEntry(ToolName("first__one"), ServerName("first"), {})])
    index.rank(Keywords("misspelt \u4e2d", ("misspelt", "\u4e2d")), 1)
