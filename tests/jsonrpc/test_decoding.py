"""Every line becomes messages, an error for the call it answers, or noise; never an exception."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from aggregator.jsonrpc.decoding import (
    MAX_BATCH,
    Decoded,
    Noise,
    decode,
    decoded_at_once,
    decoding,
)
from aggregator.jsonrpc.framing import Overlong
from aggregator.jsonrpc.verbatim import LEAST_BYTES
from tests.work import counting

LIMIT = 1000
MEBIBYTE = 1 << 20


def decoded(line: bytes | Overlong) -> Decoded:
    [message] = decode(line, LIMIT)
    return message


def answer(result: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":7,"result":{result}}}'.encode()


def test_an_answer_passes_unchanged():
    text = '{"type":"text","text":"caf\\u00e9 \\n \U0001f600"}'
    result = f'{{"content":[{text}],"n":[1,1.0,1e-7,true,null]}}'
    assert decoded(answer(result)) == JSONRPCResponse(
        jsonrpc="2.0", id=7, result=json.loads(result)
    )


@pytest.mark.parametrize("before", [b" ", b"\r\n", b"\n\t ", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_an_answer_may_begin_with_blanks_or_a_mark_of_its_encoding(before: bytes):
    assert decoded(before + answer("{}")) == decoded(answer("{}"))
    assert decoded(before + b"x") == Noise(before + b"x")


def test_an_error_passes_unchanged():
    line = b'{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"no","data":{"a":[1]}}}'
    error = ErrorData(code=-1, message="no", data={"a": [1]})
    assert decoded(line) == JSONRPCError(jsonrpc="2.0", id="x", error=error)


def test_requests_and_notifications_are_told_apart():
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    changed = b'{"jsonrpc":"2.0","method":"changed","params":{"a":1}}'
    assert decoded(ping) == JSONRPCRequest(jsonrpc="2.0", id=1, method="ping", params=None)
    assert decoded(changed) == JSONRPCNotification(jsonrpc="2.0", method="changed", params={"a": 1})


def test_an_id_written_as_a_float_is_the_integer_we_sent():
    line = b'{"jsonrpc":"2.0","id":7.0,"result":{}}'
    assert decoded(line) == JSONRPCResponse(jsonrpc="2.0", id=7, result={})


def test_what_is_not_utf8_or_half_a_character_is_replaced():
    text = answer('{"text":"caf#"}')
    assert decoded(text.replace(b"#", b"\xe9")) == decoded(answer('{"text":"caf\ufffd"}'))
    assert decoded(text.replace(b"#", rb"\ud83d")) == decoded(answer('{"text":"caf\ufffd"}'))
    assert decoded(answer('{"\\ud83d":["\\ud83d\\ude00"]}')) == decoded(
        answer('{"\ufffd":["\U0001f600"]}')
    )


def test_a_u_behind_escaped_backslashes_is_no_half_of_a_character():
    lone, text = rb"\ud83d", answer('{"text":"#"}')
    for before in (rb"\\", rb"\\\\", rb"\\\ud83d\ude00", b"\xe9"):
        said = text.replace(b"#", lone + before + rb"\\ud83d" + before + lone)
        like = text.replace(b"#", rb"\ufffd" + before + rb"\\ud83d" + before + rb"\ufffd")
        assert decoded(said) == decoded(like)


def test_what_stands_nowhere_in_json_is_not_made_part_of_it():
    failed = decoded(answer('{"text":"\0 \\ud83d"}'))
    assert isinstance(failed, JSONRPCError)


def test_a_long_line_is_repaired_in_turns():
    line = answer(json.dumps(LONG)).replace(b"xxx", rb"\ud83d", 1)
    steps = decoding(line, 4 * MEBIBYTE)
    assert len(list(steps)) == 2


def test_a_batch_and_messages_glued_together_are_taken_apart():
    one, two = answer("{}"), b'{"jsonrpc":"2.0","method":"changed"}'
    apart = [decoded(one), decoded(two)]
    assert decode(b"[" + one + b"," + two + b"]", LIMIT) == apart
    assert decode(one + two, LIMIT) == apart
    assert decode(one + b" \t" + two, LIMIT) == apart


def test_blanks_between_messages_are_not_looked_at_one_by_one():
    one, two = answer("{}"), b'{"jsonrpc":"2.0","method":"changed"}'
    with counting() as tally:
        assert len(decode(one + b" " * 500_000 + two, 4 * MEBIBYTE)) == 2
    assert tally.calls < 1000


LONG = {"text": "x" * LEAST_BYTES, "several": list(range(10_000))}


@pytest.mark.parametrize(
    "line",
    [
        answer("{}"),
        answer(json.dumps(LONG)),
        answer(json.dumps({"text": LONG["text"]})),
        b"[" + answer(json.dumps(LONG)) + b"]",
    ],
    ids=["short", "long", "text", "a batch"],
)
def test_a_line_that_is_read_at_once_says_the_same(line: bytes):
    assert decoded_at_once(line, 4 * MEBIBYTE) == decode(line, 4 * MEBIBYTE)


@pytest.mark.parametrize(
    "line",
    [
        answer(json.dumps(LONG)) + answer("{}"),
        answer(json.dumps(LONG))[:-1],
        answer(json.dumps(LONG)).replace(b"xxx", rb"\ud83d", 1),
        answer(json.dumps(LONG)).replace(b"xxx", b"\xff", 1),
    ],
    ids=["glued", "cut", "half a character", "not UTF-8"],
)
def test_a_long_line_that_has_to_be_repaired_is_not_read_at_once(line: bytes):
    assert decoded_at_once(line, 4 * MEBIBYTE) is None


def test_more_messages_in_a_line_than_a_batch_may_have_are_none():
    many = b'{"jsonrpc":"2.0","method":"changed"}' * (MAX_BATCH + 1)
    limit = 4 * len(many)
    assert len(decode(many[: len(many) // (MAX_BATCH + 1) * MAX_BATCH], limit)) == MAX_BATCH
    assert decode(many, limit) == [Noise(many)]
    batch = b"[" + many.replace(b"}{", b"},{") + b"]"
    assert decode(batch, limit) == [Noise(batch)]


@pytest.mark.parametrize(
    "result",
    [
        "null",
        '"done"',
        "[]",
        "7",
        '{"a": nope}',
        '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a":' + "[" * 300 + "]" * 300 + "}",
        '{"a":"' + r"\ud83d" + '","b":' + "[" * 300 + "]" * 300 + "}",
        '{"n":' + "9" * 1_000_000 + "}",
        '{"cut":"',
    ],
    ids=[
        "null",
        "text",
        "array",
        "number",
        "garbage",
        "deep",
        "too-deep",
        "deep-slow",
        "big",
        "cut",
    ],
)
def test_an_answer_that_cannot_be_used_fails_its_call_at_once(result: str):
    failed = decoded(answer(result))
    assert isinstance(failed, JSONRPCError)
    assert failed.id == 7
    assert failed.error.code == INTERNAL_ERROR
    assert "could not be used" in failed.error.message


def test_an_answer_that_is_too_long_names_the_limit():
    failed = decoded(Overlong(answer('{"a":"xxx'), b"xxx", 5000))
    assert isinstance(failed, JSONRPCError)
    assert "5,000 bytes" in failed.error.message
    assert "1,000" in failed.error.message
    assert "`maxMessageBytes`" in failed.error.message


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ('"disk full"', "disk full"),
        ('{"message":"no code"}', '{"message": "no code"}'),
        ('{"code":true,"message":"x"}', '{"code": true, "message": "x"}'),
        ("[" + "1," * 5000 + "1]", ("[" + "1, " * 5000)[:500]),
    ],
)
def test_a_malformed_error_still_reaches_its_caller(error: str, shown: str):
    line = f'{{"jsonrpc":"2.0","id":7,"error":{error}}}'.encode()
    data = ErrorData(code=INTERNAL_ERROR, message=shown)
    assert decoded(line) == JSONRPCError(jsonrpc="2.0", id=7, error=data)


@pytest.mark.parametrize(
    "line",
    [
        b"Loading ...",
        b"[INFO] ready",
        b"{}",
        b"[]",
        b"7",
        b'"text"',
        b"[7]",
        b'{"id":7,"result":{}}',
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b'{"jsonrpc":"2.0","id":7,"method":7}',
        b'{"jsonrpc":"2.0","id":[],"method":"m"}',
        b'{"jsonrpc":"2.0","method":"m","params":[1]}',
        b'DEBUG got {"jsonrpc":"2.0","id":7,"result":{}}',
        Overlong(b"xxx", b"xxx", 5000),
    ],
)
def test_anything_else_is_noise(line: bytes | Overlong):
    assert isinstance(decoded(line), Noise)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.no_cover
@settings(deadline=None)
@given(st.dictionaries(st.text(), JSON))
def test_any_result_passes_unchanged(result: dict[str, Any]):
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    [message] = decode(line, LIMIT)
    assert isinstance(message, JSONRPCResponse)
    assert json.dumps(message.result) == json.dumps(result)


@settings(deadline=None)
@given(st.binary())
def test_any_line_can_be_decoded(line: bytes):
    assert all(isinstance(each, Noise) for each in decode(line, LIMIT))


@settings(deadline=None)
@given(st.binary(), st.integers(0, 60), st.integers(0, 60))
def test_an_answer_damaged_anywhere_is_still_decoded(damage: bytes, start: int, length: int):
    line = answer('{"content":[{"type":"text","text":"hello"}]}')
    assert decode(line[:start] + damage + line[start + length :], LIMIT) is not None


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_halves_of_characters_are_replaced_and_nothing_else_is(text: str):
    line = b'{"jsonrpc":"2.0","id":1,"result":{"text":%s}}' % json.dumps(text).encode()
    [message] = decode(line, MEBIBYTE)
    assert isinstance(message, JSONRPCResponse)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert message.result == {"text": whole}


def test_a_batch_of_any_length_takes_no_memory():
    assert len(decode(b"[" + b"1," * 500_000 + b"1]", 16 * MEBIBYTE)) == 1
