"""Finding the right tool: `parse_query(text)` and `Index.rank(query, limit)`."""

from aggregator.search.analysis import Analysed, analyse, documents
from aggregator.search.explain import Contribution
from aggregator.search.index import Hit, Index, warm_up
from aggregator.search.query import Keywords, Overview, Query, Select, parse_query
from aggregator.search.repair import nearest

__all__ = [
    "Analysed",
    "Contribution",
    "Hit",
    "Index",
    "Keywords",
    "Overview",
    "Query",
    "Select",
    "analyse",
    "documents",
    "nearest",
    "parse_query",
    "warm_up",
]
