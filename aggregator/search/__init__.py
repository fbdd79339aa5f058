"""Finding the right tool: `parse_query(text)` and `Index.rank(query, limit)`.

Each part is loaded when it is first asked for: clients are not kept waiting for the index.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aggregator.search.analysis import documents
    from aggregator.search.hits import Contribution, Hit
    from aggregator.search.index import Index, warm_up
    from aggregator.search.query import Keywords, Overview, Query, Select, parse_query
    from aggregator.search.repair import nearest

__all__ = [
    "Contribution",
    "Hit",
    "Index",
    "Keywords",
    "Overview",
    "Query",
    "Select",
    "documents",
    "nearest",
    "parse_query",
    "warm_up",
]

_ELSEWHERE = {
    "Contribution": "hits",
    "Hit": "hits",
    "Index": "index",
    "Keywords": "query",
    "Overview": "query",
    "Query": "query",
    "Select": "query",
    "documents": "analysis",
    "nearest": "repair",
    "parse_query": "query",
    "warm_up": "index",
}
"""The part each name is from."""


def __getattr__(name: str) -> object:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
