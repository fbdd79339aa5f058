"""Locks of every kind, for tests that try many."""

from hypothesis import strategies as st

from aggregator.basics.json import JsonObject
from aggregator.catalog.lock import Lock, Record, kept
from aggregator.names import ServerName

WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
TOOLS = st.dictionaries(WORDS, VALUES, max_size=4).map(kept)
RECORDS = st.builds(
    Record,
    source=WORDS,
    version=WORDS,
    protocol=WORDS,
    instructions=WORDS,
    tools=st.dictionaries(WORDS.filter(bool), TOOLS, max_size=4),
    altered=st.just(()),
)
LOCKS: st.SearchStrategy[Lock] = st.dictionaries(
    WORDS.filter(bool).map(ServerName), RECORDS, max_size=3
)


def tool(description: str = "", **schema: object) -> JsonObject:
    """Return what is kept of a tool with these in its schema."""
    return {"description": description, "inputSchema": {"type": "object", **schema}}
