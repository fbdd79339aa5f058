"""What the example servers share: how they describe their tools, and how they start.

`--start-delay SECONDS` (or `START_DELAY` in the environment) makes a server slow to start, to see
what a client does meanwhile. Nothing is written to stdout but the protocol.
"""

import argparse
import inspect
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

ToolFunction = TypeVar("ToolFunction", bound=Callable[..., Any])

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
"""Looks, and changes nothing."""

ADDS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
"""Only adds; calling it twice adds twice."""

SETS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
"""Puts something into a state that is easily undone; calling it twice does nothing more."""

REPLACES = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)
"""Loses what was there before; calling it twice loses nothing more."""

EDITS = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)
"""Loses what was there before; calling it twice may lose more."""


class ExampleServer(MCPServer[Any]):
    """An SDK server whose tools are described by the docstrings of their functions."""

    def __init__(
        self,
        name: str,
        *,
        title: str,
        instructions: str,
        list_changes: bool = False,
    ) -> None:
        super().__init__(
            name,
            title=title,
            instructions=instructions,
            version="1.0.0",
            log_level="ERROR",
            # Without subscriptions the modern era's `listChanged` is false, which is the truth.
            subscriptions=None if list_changes else False,
        )

    def offer(
        self, title: str, annotations: ToolAnnotations, *, hint: str = "", always_load: bool = False
    ) -> Callable[[ToolFunction], ToolFunction]:
        """Make a function a tool: its docstring, on one line, is the description."""
        meta: dict[str, Any] = {}
        if hint:
            meta["anthropic/searchHint"] = hint
        if always_load:
            meta["anthropic/alwaysLoad"] = True

        def register(function: ToolFunction) -> ToolFunction:
            self.add_tool(
                function,
                title=title,
                description=" ".join((function.__doc__ or "").split()),
                annotations=annotations,
                meta=meta or None,
                # A schema that says "one string" helps nobody: text stays text.
                structured_output=inspect.signature(function).return_annotation is not str,
            )
            return function

        return register


def serve(server: ExampleServer, arguments: Sequence[str] | None = None) -> None:
    """Serve over stdio until stdin ends, after the delay that was asked for."""
    parser = argparse.ArgumentParser(description=server.instructions)
    parser.add_argument(
        "--start-delay",
        type=float,
        default=os.environ.get("START_DELAY", "0"),
        metavar="SECONDS",
        help="wait before answering (default: START_DELAY, or 0)",
    )
    with suppress(KeyboardInterrupt):
        time.sleep(max(0.0, parser.parse_args(arguments).start_delay))
        server.run()


def state_path(variable: str, name: str) -> Path:
    """Return where a server keeps its data: the variable's value, or the user's state directory."""
    if chosen := os.environ.get(variable):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    state = Path(base) if base else Path.home() / ".local" / "state"
    return state / "mcp-tool-aggregator" / "examples" / name


def plural(count: int, one: str, many: str = "") -> str:
    """Return the count with its noun, as in `1 note` or `3 notes`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
