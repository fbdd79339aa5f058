"""Long strings pass as they were written, and nothing else passes with them."""

import json
from sys import getsizeof
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import JSONRPCResponse
from pydantic_core import from_json

from aggregator.jsonrpc import verbatim
from aggregator.jsonrpc.decoding import decode
from aggregator.jsonrpc.encoding import encoded
from aggregator.jsonrpc.verbatim import LEAST_BYTES, LONG_BYTES, MOST_BYTES, Verbatim
from tests.work import calls

LIMIT = 16 << 20

LONG = "x" * LEAST_BYTES
QUOTED = json.dumps('said "so" \\ and "\\" went\n' * 4000)
ESCAPED = r'"\u0041\/\n\"\\' + "\\u00e9" * LONG_BYTES + '"'


def text(literal: str, beside: str = "") -> bytes:
    content = f'"content":[{{"type":"text","text":{literal}}}]{beside}'
    return f'{{"jsonrpc":"2.0","id":1,"result":{{{content}}}}}'.encode()


def twice(literal: str) -> bytes:
    return text(literal, f',"structuredContent":{{"result":{literal}}}')


def passed(line: bytes) -> bytes:
    [message] = decode(line, LIMIT)
    assert isinstance(message, JSONRPCResponse)
    return encoded(message)


@pytest.mark.parametrize("literal", [f'"{LONG}"', QUOTED, ESCAPED])
@pytest.mark.parametrize("form", [text, twice])
def test_long_strings_leave_as_they_came(form: Any, literal: str) -> None:
    line = form(literal)

    assert isinstance(verbatim.parsed(line), dict)
    assert passed(line) == line


def test_a_long_string_is_the_string_it_says() -> None:
    [message] = decode(text(ESCAPED), LIMIT)

    assert isinstance(message, JSONRPCResponse)
    assert message.result == json.loads(text(ESCAPED))["result"]


def test_a_long_string_counts_for_all_that_is_kept_of_it() -> None:
    string = Verbatim.read(ESCAPED.encode())

    assert getsizeof(string) > len(ESCAPED) + LONG_BYTES


def test_what_is_added_to_a_result_is_written_beside_its_long_string() -> None:
    [message] = decode(text(ESCAPED), LIMIT)
    assert isinstance(message, JSONRPCResponse)
    message.result = {"resultType": "complete", **message.result, "_meta": {"a": 1}}

    assert encoded(message) == (
        b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":'
        b'[{"type":"text","text":%b}],"_meta":{"a":1}}}' % ESCAPED.encode()
    )


def test_a_part_of_a_long_string_is_written_anew() -> None:
    [message] = decode(text(ESCAPED), LIMIT)
    assert isinstance(message, JSONRPCResponse)
    part = message.result["content"][0]["text"][:4]
    message.result["content"][0]["text"] = part

    assert json.loads(encoded(message))["result"]["content"] == [{"type": "text", "text": part}]
    assert not isinstance(part, Verbatim)


def test_a_result_of_many_values_passes_with_its_long_string() -> None:
    [message] = decode(text(ESCAPED), LIMIT)
    assert isinstance(message, JSONRPCResponse)
    message.result["structuredContent"] = {"rows": list(range(10_000)), "few": [[]] * 600}
    beside = {str(number): number for number in range(1000)}
    message.result["content"].append({"type": "text", "text": "y", "_meta": beside})

    assert json.loads(encoded(message))["result"] == message.result


STRANGE = {
    "the same key twice": text(f'"{LONG}","text":"other"'),
    "the same key twice, the long one last": text(f'"other","text":"{LONG}"'),
    "a long key": text(f'"a","{LONG}":1'),
    "not a number": text(f'"{LONG}","n":NaN'),
    "half a character": text(f'"{LONG}\\ud800"'),
    "not UTF-8": text(f'"{LONG}?"').replace(b"?", b"\xff"),
    "a break in a string": text(f'"{LONG}\n"'),
    "no end": text(f'"{LONG}'),
    "many short strings": text(f'"{LONG}","many":{json.dumps(["a"] * 1000)}'),
    "many long strings": text(f'"{LONG}","many":{json.dumps([LONG] * 10)}'),
    "much beside": text(f'"{LONG}","many":{[0] * 10_000}'),
    "none that is long": text(json.dumps(["a" * 1000] * 100)),
    "no strings": b"[" + b"1," * LEAST_BYTES + b"1]",
    "marks without number": text(json.dumps(['"' * 3000] * 20)),
    "an end that is none": text(QUOTED, f',"other":{QUOTED}'),
    "backslashes": text('"' + "\\\\" * LONG_BYTES + '"'),
    "too long": text(f'"{"x" * MOST_BYTES}"'),
}


@pytest.mark.parametrize("line", STRANGE.values(), ids=STRANGE.keys())
def test_whatever_else_there_is_comes_to_the_same(line: bytes) -> None:
    try:
        value = from_json(line)
    except ValueError:
        assert verbatim.parsed(line) is None
    else:
        assert verbatim.parsed(line) in (None, value)


STRINGS = st.text(max_size=20) | st.text(max_size=9).map(lambda some: (some or "x") * 20_000)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | STRINGS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.no_cover
@settings(max_examples=60, deadline=None)
@given(VALUES, st.booleans(), st.data())
def test_no_message_is_read_as_another(value: Any, ascii_only: bool, data: st.DataObject) -> None:
    line = json.dumps({"r": value, "s": LONG}, ensure_ascii=ascii_only).encode(errors="replace")
    at = data.draw(st.integers(0, len(line)))
    damaged = line[:at] + data.draw(st.sampled_from([b'"', b"\\", b",", b"}", b""])) + line[at:]

    for each in (line, damaged):
        found = verbatim.parsed(each)
        if found is not None:
            assert found == from_json(each)


@pytest.mark.parametrize("line", [STRANGE["marks without number"], twice(QUOTED)])
def test_looking_for_long_strings_is_little_work(line: bytes) -> None:
    assert calls(lambda: verbatim.parsed(line)) < 60_000


def test_a_result_of_very_many_blocks_is_not_looked_through():
    few, many = ({"content": [{"type": "text"}] * size} for size in (1_000, 10_000))

    assert calls(lambda: verbatim.is_within(many)) == calls(lambda: verbatim.is_within(few))
