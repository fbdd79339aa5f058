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

from aggregator.jsonrpc.verbatim import Lifting, is_within

_FORMS: Mapping[type, TypeAdapter[Any]] = {
    kind: TypeAdapter(kind)
    for kind in (JSONRPCRequest, JSONRPCNotification, JSONRPCResponse, JSONRPCError)
}


def encoded(message: JSONRPCMessage) -> bytes:
    """Return a message as JSON on one line.

    Straight to bytes: as text, one wide character would make the whole message wide.
    """
    if isinstance(message, JSONRPCResponse) and is_within(message.result):
        lifting = Lifting(message.result)
        rest = JSONRPCResponse.model_construct(jsonrpc="2.0", id=message.id, result=lifting.rest)
        return lifting.put_into(_written(rest))
    return _written(message)


def _written(message: JSONRPCMessage) -> bytes:
    return _FORMS[type(message)].dump_json(message, by_alias=True, exclude_unset=True)
