"""What a search finds: each query answered from one catalog."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from aggregator.catalog import Catalog, Failed, Pending, ToolEntry
from aggregator.names import Ambiguous, ServerName, ToolName
from aggregator.search import Keywords, Select, nearest, parse_query
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
class Result:
    """What one query found."""

    query: str
    entries: tuple[ToolEntry, ...] = ()
    ranked: bool = False
    """Are the entries in order of how well they match?"""
    more: bool = False
    """Are there further matches after these?"""
    missing: tuple[Missing, ...] = ()
    closest: tuple[str, ...] = ()
    """Names like the query, if it found nothing."""
    overview: bool = False


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
    return Found(request, tuple(_result(text, request, view) for text in request.queries))


def awaited(request: SearchRequest, catalog: Catalog) -> tuple[ServerName, ...]:
    """Return the pending servers whose tools could change the answer."""
    asked = asked_of(request, catalog)
    return tuple(name for name in catalog.pending if name in asked)


def asked_of(request: SearchRequest, catalog: Catalog) -> frozenset[ServerName]:
    """Return the servers that may have what is asked for: those named outright, or all."""
    asked: set[ServerName] = set()
    for text in request.queries:
        named = servers_named(text, catalog.servers)
        if not named and not unknown_servers(text, catalog.servers):
            return frozenset(catalog.servers)
        asked.update(named)
    return frozenset(asked)


def unknown_servers(text: str, servers: Iterable[ServerName]) -> tuple[str, ...]:
    """Return the servers that a query is restricted to and that do not exist."""
    query = parse_query(text)
    known = {_plain(each) for each in servers}
    filters = query.servers if isinstance(query, Keywords) else ()
    return tuple(each for each in filters if _plain(each) not in known)


def unready(name: str, catalog: Catalog) -> ServerName | None:
    """Return the server a tool's name points to, if it is not connected."""
    servers = servers_named(f"select:{name}", catalog.servers)
    states = ((each, catalog.servers[each]) for each in servers)
    return next((each for each, state in states if isinstance(state, Pending | Failed)), None)


def copies(found: Found, view: View) -> dict[ToolName, tuple[ToolName, ...]]:
    """Return the tools of other servers that say the same as one that was found, for each."""
    ranked = (entry for result in found.results if result.ranked for entry in result.entries)
    known = view.catalog.entries
    matched = {entry.name for entry in found.matches}
    same = {
        entry.name: tuple(
            name
            for name in view.namesakes(entry.own_name)
            if name not in matched
            and name in known
            and known[name].description == entry.description
        )
        for entry in ranked
    }
    return {name: others for name, others in same.items() if others}


def _result(text: str, request: SearchRequest, view: View) -> Result:
    query = parse_query(text)
    if isinstance(query, Keywords):
        return _ranked(query, request, view)
    names = query.names if isinstance(query, Select) else ()
    return _selected(text, names, request.offset, view) if names else Result(text, overview=True)


def _selected(text: str, names: Sequence[str], offset: int, view: View) -> Result:
    """Look up each name."""
    found = [(name, view.find(name)) for name in names]
    entries = _entries((each for _, each in found if isinstance(each, str)), view)
    missing = [_missing(name, each, view) for name, each in found if not isinstance(each, str)]
    return Result(text, entries[offset:], missing=tuple(missing))


def _missing(name: str, found: Ambiguous | None, view: View) -> Missing:
    if found:
        return Missing(name, found.candidates, ambiguous=True)
    return Missing(name, tuple(nearest(name, view.catalog.entries, NEAREST)))


def _ranked(query: Keywords, request: SearchRequest, view: View) -> Result:
    """Rank by words, unless the whole query is a tool's name."""
    text = query.text.strip("`'\"")
    named = _named(text, view)
    if len(named) == 1 and not _is_word(text, named[0]):
        return Result(query.text, named[request.offset :])
    # One match beyond the last tells whether there are more.
    end = request.offset + request.max_results
    known = view.catalog.entries
    ranked = {entry.name: entry for entry in (*named, *view.rank(query, end + 1))}
    best = [entry for name, entry in ranked.items() if name in known]
    closest = () if best else tuple(nearest(query.text, known, NEAREST))
    entries = tuple(best[request.offset : end])
    return Result(query.text, entries, ranked=True, more=len(best) > end, closest=closest)


def _named(text: str, view: View) -> tuple[ToolEntry, ...]:
    """Return the tools that a text may name."""
    found = None if " " in text else view.find(text)
    names = found.candidates if isinstance(found, Ambiguous) else [found] if found else []
    return _entries(names, view)


def _is_word(text: str, entry: ToolEntry) -> bool:
    """Tell a word that people search by from a name: `search` is more than one tool."""
    return text.isalpha() and text.islower() and text != entry.name


def _entries(names: Iterable[ToolName], view: View) -> tuple[ToolEntry, ...]:
    known = view.catalog.entries
    return tuple(known[name] for name in dict.fromkeys(names) if name in known)


def servers_named(text: str, servers: Iterable[ServerName]) -> tuple[ServerName, ...]:
    """Return the servers that a query names outright; none means it could be any."""
    query = parse_query(text)
    if isinstance(query, Select):
        named = [_server_of(each, servers) for each in query.names]
        return () if None in named else tuple(each for each in named if each)
    filters = query.servers if isinstance(query, Keywords) else ()
    wanted = frozenset(map(_plain, filters))
    return tuple(each for each in servers if _plain(each) in wanted) if wanted else ()


def _server_of(name: str, servers: Iterable[ServerName]) -> ServerName | None:
    """Return the server whose name is the prefix of a tool's name."""
    parts = name.replace("/", "__").split("__")
    heads = {_plain(part) for part in parts[:-1]}
    return next((each for each in servers if _plain(each) in heads), None)


def _plain(name: str) -> str:
    """Return a server's name as it stands inside tool names, in any case."""
    return "".join(each if each.isalnum() else "_" for each in name).casefold()
