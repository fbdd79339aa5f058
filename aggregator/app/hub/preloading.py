"""Load before the first client comes whatever is otherwise loaded when it is needed.

A process that lives for days outlives the files that it was started from: after an upgrade they
are others, or gone.
"""

from contextlib import suppress
from importlib import import_module

MODULES = (
    "ctypes",
    "difflib",
    "filelock",
    "rapidfuzz.distance",
    "rapidfuzz.fuzz",
    "rapidfuzz.process",
    "rapidfuzz.utils",
    "aggregator.config.yaml_document",
    "aggregator.downstream.http.reach",
    "aggregator.downstream.login.place",
    "aggregator.records.auditing",
    "aggregator.records.segments",
    "aggregator.records.stats",
    "aggregator.search.index",
    "aggregator.search.pattern",
    "aggregator.upstream.searching",
)
"""What is loaded late elsewhere, so that a start is quick."""


def preload() -> None:
    """Load all of it that is installed."""
    for name in MODULES:
        with suppress(ImportError):
            import_module(name)
