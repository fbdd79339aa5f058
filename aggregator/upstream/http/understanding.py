"""What a request says: which answers it takes, and the one JSON-RPC message that its body is."""

from functools import lru_cache
from typing import NamedTuple

from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError
from pydantic_core import from_json

from aggregator.basics.json import is_plain_object

JSON = "application/json"
EVENTS = "text/event-stream"

NOT_ONE = ErrorData(
    code=INVALID_REQUEST, message="Body must be a single JSON-RPC request or notification object"
)
"""What a batch is told, and anything else that is not one message."""

NO_JSON = ErrorData(code=PARSE_ERROR, message="Parse error: the body is not valid JSON")


class Accepted(NamedTuple):
    """The kinds of answer that a client says it takes."""

    json: bool
    events: bool


@lru_cache(maxsize=64)
def accepted(header: str) -> Accepted:
    """Read an `Accept` header; how much rather one kind is wanted than another does not matter."""
    kinds = {each.partition(";")[0].strip().lower() for each in header.split(",")}
    anything = "*/*" in kinds
    return Accepted(
        anything or JSON in kinds or "application/*" in kinds,
        anything or EVENTS in kinds or "text/*" in kinds,
    )


def is_json(content_type: str) -> bool:
    """Whether a body is said to be JSON."""
    return content_type.partition(";")[0].strip().lower() == JSON


def understood(body: bytes) -> JSONRPCMessage | ErrorData:
    """Return the message that a body is, or what its sender is told if it is none."""
    try:
        value: object = from_json(body)
    except ValueError:
        return NO_JSON
    if not is_plain_object(value):
        return NOT_ONE
    try:
        return _kind(value).model_validate(value, by_name=False)
    except ValidationError:
        return NOT_ONE


def _kind(
    value: dict[str, object],
) -> type[JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError]:
    if "method" in value:
        return JSONRPCRequest if "id" in value else JSONRPCNotification
    return JSONRPCError if "error" in value else JSONRPCResponse
