"""Whether definitions are so many that they are worth deferring, counted once for each set."""

from collections.abc import Collection, Mapping, Sequence

from aggregator.host.deferral import (
    approximate_tokens,
    is_deferred,
    threshold,
    without_preamble,
)
from aggregator.host.options import Options
from aggregator.host.pool import Pool, Tool


class Weighing:
    """Remembers what each set of tools costs."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._tokens: dict[tuple[str, ...], int] = {}

    def uncounted(self, pool: Pool) -> Sequence[Tool]:
        """Return the tools that are to be counted before it can be decided."""
        tools = deferrable(pool.tools, pool.search.name, self._options.keep)
        mode, known = self._options.mode, _key(tools) in self._tokens
        if mode.always or mode.never or known or self._options.count is None:
            return ()
        return tools

    def learn(self, tools: Sequence[Tool], tokens: int) -> None:
        """Remember what a vendor's counter says of a request with some tools."""
        self._tokens[_key(tools)] = without_preamble(tokens)

    def is_worth_it(self, pool: Pool) -> bool:
        """Decide whether tools are deferred now."""
        mode = self._options.mode
        if mode.always or mode.never:
            return mode.always
        tools = deferrable(pool.tools, pool.search.name, self._options.keep)
        tokens = self._tokens.get(_key(tools))
        cost = approximate_tokens(tools) if tokens is None else tokens
        return cost > threshold(self._options.window, mode.percent)


def deferrable(tools: Mapping[str, Tool], search: str, keep: Collection[str]) -> list[Tool]:
    """Return the tools that a model may have to find first."""
    return [tool for tool in tools.values() if is_deferred(tool, search, keep)]


def _key(tools: Sequence[Tool]) -> tuple[str, ...]:
    return tuple(sorted(tool.name for tool in tools))
