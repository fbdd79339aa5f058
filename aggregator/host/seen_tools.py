"""The tools of one conversation: what is defined from its beginning, and what was ever seen."""

from collections.abc import Iterable, Mapping, Sequence

from aggregator.host.pool import Pool, Tool


class SeenTools:
    """Keeps the beginning of a list of tools as it was, whatever comes and goes behind it."""

    def __init__(self) -> None:
        self._base: dict[str, None] | None = None
        self._seen: dict[str, Tool] = {}

    def see(self, pool: Pool, mine: Mapping[str, Tool]) -> None:
        """Remember the definitions there are now; those that have gone stay known."""
        self._seen.update(pool.tools)
        self._seen.update(mine)

    @property
    def seen(self) -> Mapping[str, Tool]:
        """Every tool that was ever known, as it was last defined."""
        return self._seen

    def begin(self, names: Iterable[str]) -> None:
        """Settle which tools are defined from the beginning, unless that is settled."""
        if self._base is None:
            self._base = dict.fromkeys(names)

    def add(self, names: Iterable[str]) -> None:
        """Define more tools behind those at the beginning, as far as they are known."""
        known = (name for name in names if name in self._seen)
        self._base = {**(self._base or {}), **dict.fromkeys(known)}

    @property
    def base(self) -> Sequence[Tool]:
        """The tools at the beginning."""
        return [self._seen[name] for name in self._base or ()]

    def holds(self, name: str) -> bool:
        """Whether a tool is among them."""
        return name in (self._base or {})
