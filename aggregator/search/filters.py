"""What a query demands of a tool before any ranking."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

from aggregator.basics.frozen import frozen
from aggregator.basics.json import as_object
from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, plain_server
from aggregator.search.analysis import ANY_SERVER, Document, stop_free
from aggregator.search.concepts import Postings
from aggregator.search.query import Keywords, Mark
from aggregator.search.repair import Vocabulary
from aggregator.search.weights import MAX_REQUIRED, SPOKEN
from aggregator.search.words import stem, words


def _is_destructive(entry: ToolEntry) -> bool:
    """Whether a tool may destroy something: what changes things may, unless it says otherwise."""
    if entry.read_only:
        return False
    said = entry.put_right.get("annotations") or entry.tool.get("annotations")
    return as_object(said).get("destructiveHint") is not False


@lru_cache(maxsize=4096)
def _named_by(server: ServerName) -> frozenset[str]:
    return frozenset(words(server))


MARKED: Mapping[Mark, Callable[[ToolEntry], bool]] = {
    "readonly": lambda entry: entry.read_only,
    "destructive": _is_destructive,
}


@frozen
class Filter:
    """Filters over one state of the index."""

    postings: Postings
    documents: Mapping[int, Document]
    slots: Mapping[ServerName, Sequence[int]]
    vocabulary: Vocabulary
    marked: Mapping[Mark, AbstractSet[int]]
    """The tools that are annotated in each way."""

    def passing(self, query: Keywords) -> set[int] | None:
        """Return the tools that pass the filters of a query, or None if it has none."""
        allowed = self._of_servers(query.servers) if query.servers else None
        for mark, is_so in query.marks:
            marked = self.marked[mark]
            others = self.documents.keys() if allowed is None else allowed
            allowed = others & marked if is_so else others - marked
        for word in query.required:
            if allowed is not None and not allowed:
                break
            having = self._having(word)
            allowed = having if allowed is None else allowed & having
        # In a long request quotes are around values; and a phrase nobody says is just words.
        for phrase in query.phrases:
            if SPOKEN * len(phrase.split()) >= len(query.terms):
                allowed = self._saying(phrase, allowed) or allowed
        return allowed

    def _of_servers(self, filters: Sequence[str]) -> set[int]:
        """Return the tools of the servers that any of the filters names."""
        wanted = {plain_server(each) for each in filters}
        return {
            slot
            for server, slots in self.slots.items()
            if plain_server(server) in wanted
            for slot in slots
        }

    def _having(self, word: str) -> set[int]:
        """Return the tools that have a word, or failing that, a name it is a part of."""
        parts = words(word)
        whole = set(self.postings.get(stem("".join(parts)), ()))
        held = whole | self._holding([stem(part) for part in parts]) | self._served(parts)
        return held or self._named_like(parts)

    def _served(self, parts: Sequence[str]) -> set[int]:
        """Return the tools of servers in whose names stand words that nothing is ranked by."""
        if ANY_SERVER.isdisjoint(parts):
            return set()
        wanted = frozenset(parts)
        named = (slots for server, slots in self.slots.items() if wanted <= _named_by(server))
        return {slot for slots in named for slot in slots}

    def _holding(self, stems: Sequence[str]) -> set[int]:
        """Return the tools that have all of some words."""
        holders = [self.postings.get(each, {}).keys() for each in stems]
        return set(holders[0]).intersection(*holders[1:]) if holders else set()

    def _named_like(self, parts: Sequence[str]) -> set[int]:
        """Return the tools with a word in a name that contains another, or is meant by it."""
        text = "".join(parts)
        near = self.vocabulary.nearest(text)
        likely = self.vocabulary.containing(text, MAX_REQUIRED) or ([near] if near else [])
        return {slot for each in likely for slot in self.postings.get(stem(each), ())}

    def _saying(self, phrase: str, allowed: set[int] | None) -> set[int]:
        """Return the tools in which the words of a phrase stand side by side."""
        stems = [stem(part) for part in stop_free(words(phrase))]
        having = self._holding(stems)
        sought = f" {' '.join(stems)} "
        return {
            slot
            for slot in (having if allowed is None else having & allowed)
            if sought in self.documents[slot].sequence
        }
