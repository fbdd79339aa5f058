"""What the rest of the aggregator sees of the meaning of tools, also where there is none."""

import sys
from pathlib import Path
from typing import Protocol

from aggregator.catalog import Catalog
from aggregator.search.nearness import Nearness
from aggregator.search.semantic.encoder import installed

VECTORS = "vectors.db"
"""The file beside the state in which vectors are kept."""


class Meaning(Protocol):
    """Knows how near tools are to what a query means."""

    def follow(self, catalog: Catalog, /) -> None:
        """Take note of what the catalog is now."""
        ...

    async def nearness(self, text: str, /, *also: str) -> Nearness | None:
        """Return how near each tool is to a query, in any way it may be read, if that is known."""
        ...

    async def until_ready(self) -> None:
        """Wait until the meaning of every tool is known, or never will be."""
        ...

    async def run(self) -> None:
        """Keep up with the catalog until cancelled."""
        ...


class NoMeaning:
    """Where the extra is not installed, or not wanted."""

    def follow(self, _catalog: Catalog, /) -> None:
        """Do nothing."""

    async def nearness(self, _text: str, /, *_also: str) -> Nearness | None:
        """Return nothing: words alone decide."""

    async def until_ready(self) -> None:
        """Wait for nothing."""

    async def run(self) -> None:
        """Do nothing."""


def open_meaning(state: Path | None, *, wanted: bool = True) -> Meaning:
    """Return what there is: a process with a model, if the extra is installed."""
    if not wanted or not installed():
        return NoMeaning()
    # Who has not installed it need not wait for what it takes.
    from aggregator.search.semantic.index import SemanticIndex  # noqa: PLC0415 - see above

    # Without -P the folder we were started in could stand in for any module.
    command = [sys.executable, "-P", "-m", "aggregator.search.semantic.worker"]
    return SemanticIndex([*command, *([str(state.with_name(VECTORS))] if state else [])])
