"""The index: what each word leads to, kept in step with the catalog server by server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName
from aggregator.search.analysis import LEVELS, Analysed, Document, analyse
from aggregator.search.concepts import Concept, Reader
from aggregator.search.explain import Contribution, contributions
from aggregator.search.query import Keywords
from aggregator.search.ranking import Candidate, gather, rerank, shortlist, spread
from aggregator.search.repair import Vocabulary
from aggregator.search.weights import WEIGHTS, Weights
from aggregator.search.words import stem, tokens

Allowed = Callable[[ToolEntry], bool]


@dataclass(frozen=True, slots=True)
class Hit:
    """One tool that a search found."""

    entry: ToolEntry
    score: float
    why: tuple[Contribution, ...] = ()
    """Filled by `Index.explain`; a search itself does not take the time."""


class Index:
    """An inverted index over the tools of all servers."""

    def __init__(self, order: Sequence[ServerName] = (), *, weights: Weights = WEIGHTS) -> None:
        self._order = {server: at for at, server in enumerate(order)}
        self._weights = weights
        self._postings: dict[str, dict[int, float]] = {}
        self._documents: dict[int, Document] = {}
        self._places: dict[int, tuple[int, str, int]] = {}
        """Where each tool stands in the catalog: what decides ties."""
        self._slots: dict[ServerName, tuple[int, ...]] = {}
        self._descriptions: dict[ServerName, str] = {}
        self._free: list[int] = []
        self._vocabulary = Vocabulary()

    def __len__(self) -> int:
        return len(self._documents)

    def update(
        self, server: ServerName, entries: Sequence[ToolEntry], *, description: str = ""
    ) -> None:
        """Replace what one server had."""
        self.apply(analyse(server, entries, description, self._weights))

    def apply(self, analysed: Analysed) -> None:
        """Replace what one server had by what was read before, elsewhere if need be."""
        self.remove(analysed.server)
        server = analysed.server
        rank = self._order.get(server, len(self._order))
        slots: list[int] = []
        for position, document in enumerate(analysed.documents):
            slot = self._free.pop() if self._free else len(self._documents)
            slots.append(slot)
            self._places[slot] = (rank, server, position)
            self._add(slot, document)
        self._slots[server] = tuple(slots)

    def remove(self, server: ServerName) -> None:
        """Forget the tools of one server."""
        for slot in self._slots.pop(server, ()):
            document = self._documents.pop(slot)
            del self._places[slot]
            self._free.append(slot)
            self._vocabulary.discard(document.spelled)
            for term in document.terms:
                holders = self._postings[term]
                del holders[slot]
                if not holders:
                    del self._postings[term]

    def rank(self, query: Keywords, limit: int, *, among: Allowed | None = None) -> list[Hit]:
        """Return the tools that answer a query best, best first."""
        if limit <= 0 or not self._documents:
            return []
        allowed = self._filtered(query)
        concepts = [each for each in self._concepts(query) if each.alternatives]
        if not concepts:
            return self._in_order(query, allowed, limit, among)
        scores = gather(concepts, self._postings, allowed)
        best = shortlist(scores, self._places, max(64, 4 * limit), self._accepts(among))
        found = rerank(best, concepts, self._postings, self._documents, self._weights)
        ranked = spread(self._candidates(found), limit, self._weights)
        return [Hit(self._documents[each.slot].entry, each.score) for each in ranked]

    def explain(self, query: Keywords, entry: ToolEntry) -> tuple[Contribution, ...]:
        """Return which words of a query a tool matches, in which fields, and for how much."""
        return contributions(self._concepts(query), entry, self._weights)

    def _add(self, slot: int, document: Document) -> None:
        self._documents[slot] = document
        self._vocabulary.add(document.spelled)
        for term, level in zip(document.terms, document.impacts, strict=True):
            holders = self._postings.get(term)
            if holders is None:
                holders = self._postings[term] = {}
            holders[slot] = LEVELS[level]

    def _concepts(self, query: Keywords) -> list[Concept]:
        reader = Reader(self._postings, len(self._documents), self._vocabulary, self._weights)
        return reader.concepts(query)

    def _accepts(self, among: Allowed | None) -> Callable[[int], bool] | None:
        if among is None:
            return None
        documents = self._documents
        return lambda slot: among(documents[slot].entry)

    def _candidates(self, scores: dict[int, float]) -> list[Candidate]:
        """Return scored tools in their order, best first, ties in catalog order."""
        ordered = sorted(scores, key=lambda slot: (-scores[slot], self._places[slot]))
        return [Candidate(slot, scores[slot], self._documents[slot]) for slot in ordered]

    def _in_order(
        self, query: Keywords, allowed: set[int] | None, limit: int, among: Allowed | None
    ) -> list[Hit]:
        """Return what passes the filters in catalog order, when there are no words to rank by."""
        if allowed is None or query.terms and not query.required:
            return []
        accepts = self._accepts(among)
        slots = sorted(allowed, key=self._places.__getitem__)
        passing = (slot for slot in slots if accepts is None or accepts(slot))
        return [
            Hit(self._documents[slot].entry, 0.0)
            for slot, _ in zip(passing, range(limit), strict=False)
        ]

    def _filtered(self, query: Keywords) -> set[int] | None:
        """Return the tools that pass the filters of a query, or None if it has none."""
        allowed: set[int] | None = None
        if query.servers:
            allowed = self._of_servers(query.servers)
        for word in query.required:
            having = self._having(word)
            allowed = having if allowed is None else allowed & having
        for phrase in query.phrases:
            saying = self._saying(phrase, allowed)
            allowed = saying or allowed
        return allowed

    def _of_servers(self, filters: Sequence[str]) -> set[int]:
        """Return the tools of the servers that any of the filters names."""
        wanted = {_plain(each) for each in filters}
        return {
            slot
            for server, slots in self._slots.items()
            if _plain(server) in wanted
            for slot in slots
        }

    def _having(self, word: str) -> set[int]:
        """Return the tools that have a word, or failing that, a name it is a part of."""
        parts = [stem(part) for parts in tokens(word) for part in parts]
        whole = stem("".join(part for parts in tokens(word) for part in parts))
        having = set(self._postings.get(whole, ()))
        holders = [self._postings.get(part, {}) for part in parts]
        if holders:
            having |= set(holders[0]).intersection(*holders[1:])
        return having or self._named_like(word)

    def _named_like(self, word: str) -> set[int]:
        """Return the tools with a part of a name that contains a word, or is meant by it."""
        text = "".join(part for parts in tokens(word) for part in parts)
        near = self._vocabulary.nearest(text)
        likely = self._vocabulary.containing(text, 64) or ([near] if near else [])
        return {slot for each in likely for slot in self._postings.get(stem(each), ())}

    def _saying(self, phrase: str, allowed: set[int] | None) -> set[int]:
        """Return the tools in which the words of a phrase stand side by side."""
        stems = _telling(phrase)
        holders = [self._postings.get(each, {}) for each in stems]
        if not holders:
            return set()
        having = set(holders[0]).intersection(*holders[1:])
        wanted = f" {' '.join(stems)} "
        return {
            slot
            for slot in (having if allowed is None else having & allowed)
            if wanted in self._documents[slot].sequence
        }


def _telling(phrase: str) -> list[str]:
    """Return the stems of a phrase without the words that are not indexed."""
    from aggregator.search.equivalents import STOP_WORDS

    parts = [part for parts in tokens(phrase) for part in parts]
    return [stem(part) for part in parts if part not in STOP_WORDS]


def _plain(server: str) -> str:
    """Return the name of a server without what people forget of it."""
    return "".join(each for each in server.casefold() if each.isalnum())
