"""Write a JSON-RPC message as the bytes that go over the wire."""

from collections.abc import Mapping
from typing import Any

from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import TypeAdapter

_FORMS: Mapping[type, TypeAdapter[Any]] = {
    kind: TypeAdapter(kind)
    for kind in (JSONRPCRequest, JSONRPCNotification, JSONRPCResponse, JSONRPCError)
}


def encoded(message: JSONRPCMessage) -> bytes:
    """Return a message as JSON on one line.

    Straight to bytes: as text, one wide character would make the whole message wide.
    """
    return _FORMS[type(message)].dump_json(message, by_alias=True, exclude_unset=True)
