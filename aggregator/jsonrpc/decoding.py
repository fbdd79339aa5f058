"""Turn one line of a server's output into JSON-RPC messages, whatever the line holds.

Answers are taken apart no further than their envelope, so results pass through unchanged. What
cannot be read but answers a request becomes an error for that request: the caller hears at once
instead of waiting for its timeout.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic_core import from_json

from aggregator.basics.effort import finished
from aggregator.basics.frozen import frozen
from aggregator.basics.json import is_array, is_plain_object
from aggregator.jsonrpc import verbatim
from aggregator.jsonrpc.framing import Overlong
from aggregator.jsonrpc.salvage import salvage_id
from aggregator.jsonrpc.weight import UNWEIGHED_BYTES, weighing

OPENING = (b"{", b"[")
BLANKS = b" \t\r\n"

REPAIRED_SHARE = 4
"""A line is repaired only up to this fraction of the limit: it takes several copies of it."""

REPLACEMENT = "\ufffd"
"""What stands for each byte that is not UTF-8."""

MAX_REPLACED = 100_000
"""Bytes that may be replaced in one line; with more of them it is no text."""

SEPARATED_BYTES = 1024 * 1024
"""Bytes up to which a line is searched for glued messages: each is parsed twice for it."""

CACHED_BYTES = 1024 * 1024
"""Bytes up to which equal strings of a message are made one; beyond, looking takes too long."""

MAX_BATCH = 1000
"""Messages one line may hold; the newer protocols allow only one."""

SHOWN_CHARACTERS = 500
"""Characters of a malformed error that are passed on."""


@frozen
class Noise:
    """A line, or a part of one, that is no JSON-RPC message."""

    line: bytes


Decoded = JSONRPCMessage | Noise


def decode(line: bytes | Overlong, limit: int) -> Sequence[Decoded]:
    """Return what a line says; more than one message if it holds a batch."""
    if isinstance(line, bytes) and len(line) < verbatim.LEAST_BYTES and line.startswith(b"{"):
        # Most lines are one short message, and in order.
        try:
            return _messages(_parsed(line), line)
        except ValueError:
            pass
    return finished(decoding(line, limit))


def decoded_at_once(line: bytes, limit: int) -> Sequence[Decoded] | None:
    """Return what a line says, unless to tell takes longer than others can wait."""
    if len(line) < verbatim.LEAST_BYTES:
        return decode(line, limit)
    # What is nearly all text is as soon read as it is copied.
    value = verbatim.parsed(line) if len(line) <= verbatim.MOST_BYTES else None
    if value is None and len(line) <= UNWEIGHED_BYTES and finished(weighing(line, limit)):
        # To repair what is no JSON takes several times as long as to read it.
        with suppress(ValueError):
            value = _parsed(line)
    return None if value is None else _messages(value, line)


def decoding(line: bytes | Overlong, limit: int) -> Generator[None, None, Sequence[Decoded]]:
    """Say the same of a long line in steps, between which others have their turn."""
    if isinstance(line, Overlong):
        return [_refused(line.head, line.tail, _too_long(line.size, limit))]
    if not line.startswith(OPENING):
        # A body may begin with a mark of its encoding, and JSON with a break or a blank.
        begun = line.removeprefix(BOM_UTF8).lstrip(BLANKS)
        if not begun.startswith(OPENING):
            return [Noise(line)]
        line = begun
    # Less than that can be parsed whatever it is.
    if len(line) >= verbatim.LEAST_BYTES:
        found = yield from _large(line, limit)
        if found is not None:
            return found
    try:
        value = _parsed(line)
    except ValueError:
        return (yield from _repaired(line, limit))
    return _messages(value, line)


def _large(line: bytes, limit: int) -> Generator[None, None, Sequence[Decoded] | None]:
    """Return what a large line says if it is mostly text, or too much; nothing of any other."""
    if len(line) <= verbatim.MOST_BYTES:
        if len(line) > UNWEIGHED_BYTES:
            yield
        # It weighs no more than its strings.
        if (value := verbatim.parsed(line)) is not None:
            return _messages(value, line)
    if not (yield from weighing(line, limit)):
        return [_refused(line, line, _too_heavy(len(line)))]
    if len(line) > UNWEIGHED_BYTES:
        yield
    return None


def _parsed(line: bytes | str) -> object:
    """Parse what need not be repaired; neither its size nor its depth can hurt."""
    return from_json(line, cache_strings="all" if len(line) <= CACHED_BYTES else "none")


def _repaired(line: bytes, limit: int) -> Generator[None, None, Sequence[Decoded]]:
    """Read what the fast parser refuses: bad UTF-8, lone surrogates, glued messages."""
    if len(line) > limit // REPAIRED_SHARE:
        return [_refused(line, line, "it is not valid JSON, and too long to be repaired")]
    if len(line) > SEPARATED_BYTES:
        yield
    text = line.decode(errors="replace")
    replaced = text.count(REPLACEMENT)
    if replaced > MAX_REPLACED:
        return [_refused(line, line, "too much of it is not UTF-8")]
    if replaced:
        with suppress(ValueError):
            return _messages(_parsed(text), line)
    if len(line) > SEPARATED_BYTES:
        return [_refused(line, line, "it is not valid JSON, and too long to be repaired")]
    if len(line) >= verbatim.LEAST_BYTES:
        yield
    text = _without_lone_surrogates(text)
    if len(line) >= verbatim.LEAST_BYTES:
        yield
    return _separated(text, line)


def _separated(text: str, line: bytes) -> Sequence[Decoded]:
    """Read the messages of a line that is not one JSON value."""
    try:
        values = list(islice(_values(text), MAX_BATCH + 1))
    except (ValueError, RecursionError):
        return [_refused(line, line, "it is not valid JSON, or nested too deeply")]
    if len(values) > MAX_BATCH:
        return [_refused(line, line, "it is not one JSON value, but very many")]
    return [each for value in values for each in _messages(value, line)]


def _values(text: str) -> Iterator[object]:
    """Yield the JSON values that stand one after another in a text."""
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text):
        _, end = decoder.raw_decode(text, position)
        yield _parsed(text[position:end])
        position = end if (blanks := _BLANKS.match(text, end)) is None else blanks.end()


def _without_lone_surrogates(text: str) -> str:
    """Replace escapes that stand for half a character, which cannot be sent on."""
    if "\\u" not in text or _NOWHERE in text:
        return text
    # An escaped backslash is hidden, so that no `u` after it looks escaped.
    shown = _LONE_SURROGATE.sub(r"\\ufffd", text.replace("\\\\", _NOWHERE))
    return shown.replace(_NOWHERE, "\\\\")


_NOWHERE = "\0"
"""What stands nowhere in JSON."""
_BLANKS = re.compile(r"\s+")
_LEADING, _TRAILING = (rf"\\u[dD][{digits}][0-9a-fA-F]{{2}}" for digits in ("89abAB", "c-fC-F"))
_LONE_SURROGATE = re.compile(rf"{_LEADING}(?!{_TRAILING})|(?<!{_LEADING}){_TRAILING}")


def _messages(value: object, line: bytes) -> Sequence[Decoded]:
    if is_plain_object(value):
        return [_message(value, line)]
    if is_array(value) and 0 < len(value) <= MAX_BATCH:
        return [_message(each, line) if is_plain_object(each) else Noise(line) for each in value]
    return [Noise(line)]


def _message(value: dict[str, Any], line: bytes) -> Decoded:
    if value.get("jsonrpc") != "2.0":
        return Noise(line)
    if "method" in value:
        return _call(value) or Noise(line)
    identifier = _identifier(value.get("id"))
    result = value.get("result")
    if identifier is not None and is_plain_object(result):
        return JSONRPCResponse(jsonrpc="2.0", id=identifier, result=result)
    if value.get("error") is not None:
        return JSONRPCError(jsonrpc="2.0", id=identifier, error=_error(value["error"]))
    if identifier is not None:
        return _failed(identifier, "its `result` is not an object")
    return Noise(line)


def _call(value: dict[str, Any]) -> JSONRPCRequest | JSONRPCNotification | None:
    method, params = value["method"], value.get("params")
    if not isinstance(method, str) or not (params is None or is_plain_object(params)):
        return None
    if value.get("id") is None:
        return JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
    identifier = _identifier(value["id"])
    if identifier is None:
        return None
    return JSONRPCRequest(jsonrpc="2.0", id=identifier, method=method, params=params)


def _error(value: object) -> ErrorData:
    if is_plain_object(value):
        code, message = value.get("code"), value.get("message")
        if type(code) is int and isinstance(message, str):
            return ErrorData(code=code, message=message, data=value.get("data"))
    shown = value if isinstance(value, str) else json.dumps(value)
    return ErrorData(code=INTERNAL_ERROR, message=shown[:SHOWN_CHARACTERS])


def _identifier(value: object) -> RequestId | None:
    if type(value) is int or isinstance(value, str):
        return value
    # Languages without integers write 3.0 for the 3 they were sent.
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _refused(head: bytes, tail: bytes, reason: str) -> Decoded:
    identifier = salvage_id(head, tail)
    return Noise(head) if identifier is None else _failed(identifier, reason)


def _failed(identifier: RequestId, reason: str) -> JSONRPCError:
    message = (
        f"The server's answer could not be used: {reason}. The tool may have taken effect: "
        "check before calling it again"
    )
    return JSONRPCError(
        jsonrpc="2.0", id=identifier, error=ErrorData(code=INTERNAL_ERROR, message=message)
    )


def _too_long(size: int, limit: int) -> str:
    return f"its {size:,} bytes are more than the {limit:,} that `maxMessageBytes` allows"


def _too_heavy(size: int) -> str:
    return (
        f"the values in its {size:,} bytes would take too much memory; "
        "a higher `maxMessageBytes` allows more"
    )
