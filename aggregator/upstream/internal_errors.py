"""What a client is told of a bug of ours: a number, under which the log has the details."""

from uuid import uuid4

import mcp_types as types
from mcp.shared.exceptions import MCPError


def new_number() -> str:
    """Return a number for what the log says and the client is told."""
    return uuid4().hex[:12]


def internal_error(number: str) -> MCPError:
    """Return what the client is told."""
    return MCPError(
        types.INTERNAL_ERROR,
        f"The aggregator failed to answer (error {number}). Its log says why; try again",
    )
