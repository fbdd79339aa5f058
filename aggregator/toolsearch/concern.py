"""Which servers a search is about, and which of them it would have to wait for."""

from itertools import chain, islice

from aggregator.catalog import Catalog
from aggregator.names import Lookup, ServerName, ToolName, plain_server
from aggregator.search.query import Expression, Keywords, Query, Select
from aggregator.toolsearch.arguments import SearchRequest
from aggregator.toolsearch.view import View

LOOKED_FOR = 8
"""Names of tools of pending servers that are looked for; of more, none counts as found."""


def awaited(request: SearchRequest, catalog: Catalog, lookup: Lookup) -> tuple[ServerName, ...]:
    """Return the pending servers whose tools could change the answer."""
    if not catalog.pending:
        return ()
    concerned = [_concerned(query, catalog, lookup) for query in request.queries]
    if None in concerned:
        return catalog.pending
    named = frozenset(chain.from_iterable(each or () for each in concerned))
    return tuple(name for name in catalog.pending if name in named)


def _concerned(query: Query, catalog: Catalog, lookup: Lookup) -> frozenset[ServerName] | None:
    """Return the pending servers that may have what one query asks for; `None` if it is any."""
    if isinstance(query, Keywords) and query.servers:
        return frozenset(servers_named(query, catalog))
    names = _asked_names(query)
    unlisted = (name for name in names if not _is_listed(name, catalog, lookup))
    heads = {name: _server_of(name, catalog) for name in unlisted}
    # Of a name without a server, there may come others.
    if not names or None in heads.values():
        return None
    pending = frozenset(catalog.pending)
    sought = {name: head for name, head in heads.items() if head in pending}
    # What is there is not waited for, however it is written.
    looked_for = islice(sought, LOOKED_FOR)
    found = {name for name in looked_for if isinstance(lookup.find(name), str)}
    return frozenset(head for name, head in sought.items() if head and name not in found)


def _is_listed(name: str, catalog: Catalog, lookup: Lookup) -> bool:
    """Whether a name is exactly that of a tool, offered or not."""
    named = ToolName(name)
    is_known = named in catalog.entries or named in catalog.withheld
    return is_known and not lookup.misses(name)


def _asked_names(query: Query) -> tuple[str, ...]:
    """Return the tools that a query asks for by names with a server's in front."""
    if isinstance(query, Select):
        return query.names
    if isinstance(query, Expression):
        return ()
    text = query.text.strip("`'\"")
    return (text,) if "__" in text and " " not in text else ()


def asked_of(request: SearchRequest, catalog: Catalog) -> frozenset[ServerName]:
    """Return the servers that may have what is asked for: those named outright, or all."""
    asked: set[ServerName] = set()
    for query in request.queries:
        named = servers_named(query, catalog)
        if not named and not unknown_servers(query, catalog):
            return frozenset(catalog.servers)
        asked.update(named)
    return frozenset(asked)


def unknown_servers(query: Query, catalog: Catalog) -> tuple[str, ...]:
    """Return the servers that a query is restricted to and that do not exist."""
    filters = query.servers if isinstance(query, Keywords) else ()
    return tuple(each for each in filters if plain_server(each) not in catalog.plainly)


def unready(name: str, view: View) -> ServerName | None:
    """Return the server a tool's name points to, if it is not connected."""
    if (absent := view.lookup.absent(name)) is not None:
        return absent
    server = _server_of(name, view.catalog)
    is_unready = server and view.catalog.servers[server].known is None
    return server if is_unready else None


def servers_named(query: Query, catalog: Catalog) -> tuple[ServerName, ...]:
    """Return the servers that a query names outright; none means it could be any."""
    if isinstance(query, Select):
        named = [_server_of(each, catalog) for each in query.names]
        return () if None in named else tuple(each for each in named if each)
    filters = query.servers if isinstance(query, Keywords) else ()
    wanted = dict.fromkeys(map(plain_server, filters))
    named = {each for plain in wanted for each in catalog.plainly.get(plain, ())}
    return tuple(each for each in catalog.servers if each in named) if named else ()


def _server_of(name: str, catalog: Catalog) -> ServerName | None:
    """Return the server whose name is the prefix of a tool's name."""
    parts = name.replace("/", "__").split("__")
    heads = (catalog.plainly.get(plain_server(part), ()) for part in parts[:-1])
    return next((each[0] for each in heads if each), None)
