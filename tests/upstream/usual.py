"""Which calls are not sent on where they are read."""

from typing import Any

from mcp.server.context import CallNext

from aggregator.upstream.caller import Context
from aggregator.upstream.fast_path import CALL
from aggregator.upstream.server import Upstream


class Usual:
    """What goes the usual way: through the SDK."""

    def __init__(self, upstream: Upstream) -> None:
        self.calls: list[Any] = []
        upstream.middleware.insert(0, self._note)

    async def _note(self, ctx: Context, call_next: CallNext) -> Any:
        if ctx.method == CALL:
            self.calls.append((ctx.params or {}).get("name"))
        return await call_next(ctx)
