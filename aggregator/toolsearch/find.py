"""What a search finds: each query answered from one catalog."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from aggregator.catalog import Catalog, Failed, Pending, ToolEntry
from aggregator.names import Ambiguous, ServerName, ToolName, plain_server
from aggregator.search.hits import Contribution, Hit
from aggregator.search.query import Keywords, Query, Select
from aggregator.search.repair import nearest
from aggregator.toolsearch.arguments import SearchRequest
from aggregator.toolsearch.view import View

NEAREST = 3
"""Names offered for one that does not exist."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A name that was asked for and means no tool."""

    name: str
    nearest: tuple[str, ...] = ()
    ambiguous: bool = False
    """Do several servers have a tool of this name?"""


@dataclass(frozen=True, slots=True)
class Explained:
    """Why a tool stands where it does."""

    entry: ToolEntry
    hit: Hit | None
    """None for a tool that was looked up by its name, and is not among the best by its words."""
    why: tuple[Contribution, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What one query found."""

    query: Query
    entries: tuple[ToolEntry, ...] = ()
    ranked: bool = False
    """Are the entries in order of how well they match?"""
    more: bool = False
    """Are there further matches after these?"""
    missing: tuple[Missing, ...] = ()
    closest: tuple[str, ...] = ()
    """Names like the query, if it found nothing."""
    overview: bool = False
    explained: tuple[Explained, ...] = ()
    """Why each of the entries stands where it does, if that was asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, before it is told."""

    request: SearchRequest
    results: tuple[Result, ...]

    @property
    def matches(self) -> tuple[ToolEntry, ...]:
        """Every tool that was found, the best of each query first."""
        rounds = zip_longest(*(each.entries for each in self.results))
        found = (entry for entry in chain.from_iterable(rounds) if entry is not None)
        return tuple({entry.name: entry for entry in found}.values())


def search(request: SearchRequest, view: View) -> Found:
    """Answer each query of a request."""
    return Found(request, tuple(_result(query, request, view) for query in request.queries))


def awaited(request: SearchRequest, catalog: Catalog) -> tuple[ServerName, ...]:
    """Return the pending servers whose tools could change the answer."""
    asked = asked_of(request, catalog)
    return tuple(name for name in catalog.pending if name in asked)


def asked_of(request: SearchRequest, catalog: Catalog) -> frozenset[ServerName]:
    """Return the servers that may have what is asked for: those named outright, or all."""
    asked: set[ServerName] = set()
    for query in request.queries:
        named = servers_named(query, catalog.servers)
        if not named and not unknown_servers(query, catalog.servers):
            return frozenset(catalog.servers)
        asked.update(named)
    return frozenset(asked)


def unknown_servers(query: Query, servers: Iterable[ServerName]) -> tuple[str, ...]:
    """Return the servers that a query is restricted to and that do not exist."""
    known = {plain_server(each) for each in servers}
    filters = query.servers if isinstance(query, Keywords) else ()
    return tuple(each for each in filters if plain_server(each) not in known)


def unready(name: str, catalog: Catalog) -> ServerName | None:
    """Return the server a tool's name points to, if it is not connected."""
    server = _server_of(name, catalog.servers)
    is_unready = server and isinstance(catalog.servers[server], Pending | Failed)
    return server if is_unready else None


def copies(found: Found, view: View) -> dict[ToolName, tuple[ToolName, ...]]:
    """Return the tools of other servers that say the same as one that was found, for each."""
    ranked = (entry for result in found.results if result.ranked for entry in result.entries)
    known = view.catalog.entries
    matched = {entry.name for entry in found.matches}
    same = {
        entry.name: tuple(
            name
            for name in view.lookup.namesakes(entry.own_name)
            if name not in matched
            and name in known
            and known[name].description == entry.description
        )
        for entry in ranked
    }
    return {name: others for name, others in same.items() if others}


def _result(query: Query, request: SearchRequest, view: View) -> Result:
    if isinstance(query, Keywords):
        return _rank(query, request, view)
    if isinstance(query, Select) and query.names:
        return _select(query, request.offset, view)
    return Result(query, overview=True)


def _select(query: Select, offset: int, view: View) -> Result:
    """Look up each name."""
    found = [(name, view.lookup.find(name)) for name in query.names]
    entries = _entries((each for _, each in found if isinstance(each, str)), view)
    missing = [_missing(name, each, view) for name, each in found if not isinstance(each, str)]
    return Result(query, entries[offset:], missing=tuple(missing))


def _missing(name: str, found: Ambiguous | None, view: View) -> Missing:
    if found:
        return Missing(name, found.candidates, ambiguous=True)
    return Missing(name, tuple(nearest(name, view.catalog.entries, NEAREST)))


def _rank(query: Keywords, request: SearchRequest, view: View) -> Result:
    """Rank by words, unless the whole query is a tool's name."""
    text = query.text.strip("`'\"")
    named = _named(text, view)
    if len(named) == 1 and not _is_word(text, named[0]):
        return Result(query, named[request.offset :])
    # One match beyond the last tells whether there are more.
    end = request.offset + request.max_results
    known = view.catalog.entries
    hits = view.index.rank(query, end + 1, view.near.get(query))
    ranked = {entry.name: entry for entry in (*named, *(hit.entry for hit in hits))}
    best = [entry for name, entry in ranked.items() if name in known]
    closest = () if best else tuple(nearest(query.text, known, NEAREST))
    entries = tuple(best[request.offset : end])
    explained = _explain(query, entries, hits, view) if request.explain else ()
    return Result(
        query, entries, ranked=True, more=len(best) > end, closest=closest, explained=explained
    )


def _explain(
    query: Keywords, entries: Sequence[ToolEntry], hits: Iterable[Hit], view: View
) -> tuple[Explained, ...]:
    """Tell why each tool stands where it does."""
    by_name = {hit.entry.name: hit for hit in hits}
    return tuple(
        Explained(entry, by_name.get(entry.name), view.index.explain(query, entry))
        for entry in entries
    )


def _named(text: str, view: View) -> tuple[ToolEntry, ...]:
    """Return the tools that a text may name."""
    found = None if " " in text else view.lookup.find(text)
    names = found.candidates if isinstance(found, Ambiguous) else [found] if found else []
    return _entries(names, view)


def _is_word(text: str, entry: ToolEntry) -> bool:
    """Tell a word that people search by from a name: `search` is more than one tool."""
    return text.isalpha() and text.islower() and text != entry.name


def _entries(names: Iterable[ToolName], view: View) -> tuple[ToolEntry, ...]:
    known = view.catalog.entries
    return tuple(known[name] for name in dict.fromkeys(names) if name in known)


def servers_named(query: Query, servers: Iterable[ServerName]) -> tuple[ServerName, ...]:
    """Return the servers that a query names outright; none means it could be any."""
    if isinstance(query, Select):
        named = [_server_of(each, servers) for each in query.names]
        return () if None in named else tuple(each for each in named if each)
    filters = query.servers if isinstance(query, Keywords) else ()
    wanted = frozenset(map(plain_server, filters))
    return tuple(each for each in servers if plain_server(each) in wanted) if wanted else ()


def _server_of(name: str, servers: Iterable[ServerName]) -> ServerName | None:
    """Return the server whose name is the prefix of a tool's name."""
    parts = name.replace("/", "__").split("__")
    heads = {plain_server(part) for part in parts[:-1]}
    return next((each for each in servers if plain_server(each) in heads), None)
