"""Write a JSON-RPC message as the bytes that go over the wire."""

from collections.abc import Mapping
from typing import Any

from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import TypeAdapter
from pydantic_core import to_json

from aggregator.jsonrpc.verbatim import Lifting, is_within

_FORMS: Mapping[type, TypeAdapter[Any]] = {
    kind: TypeAdapter(kind)
    for kind in (JSONRPCRequest, JSONRPCNotification, JSONRPCResponse, JSONRPCError)
}


def encoded(message: JSONRPCMessage) -> bytes:
    """Return a message as JSON on one line.

    Straight to bytes: as text, one wide character would make the whole message wide.
    """
    if isinstance(message, JSONRPCResponse):
        return encoded_result(message.id, message.result)
    return _FORMS[type(message)].dump_json(message, by_alias=True, exclude_unset=True)


def encoded_result(number: RequestId, result: dict[str, Any]) -> bytes:
    """Return a result as JSON on one line, in the message that answers a request."""
    if is_within(result):
        lifting = Lifting(result)
        return lifting.put_into(_written(number, lifting.rest))
    return _written(number, result)


def _written(number: RequestId, result: dict[str, Any]) -> bytes:
    # As the model would be written, which would have to be made first.
    message = {"jsonrpc": "2.0", "id": number, "result": result}
    return to_json(message, inf_nan_mode="null")
