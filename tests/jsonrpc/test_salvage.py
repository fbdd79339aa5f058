"""The request that an unreadable answer belongs to is found from its two ends."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.jsonrpc.salvage import salvage_id


@pytest.mark.parametrize(
    ("line", "identifier"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":[[[', 7),
        (b'{"id": 7, "jsonrpc": "2.0", "result": {', 7),
        (b'{"jsonrpc":"2.0","id":"a-1","error":{', "a-1"),
        (b'{"jsonrpc":"2.0","id":"\\u0061","result":{', "a"),
        (b'{"result":{"a":nope},"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","result":{"a":nope},"id":7}', 7),
        (b'{"id":7,"result":{"a":nope},"jsonrpc":"2.0"}', 7),
        (b'{"result":{"a":nope}, "id": -3, "jsonrpc": "2.0" } ', -3),
    ],
)
def test_an_answer_tells_its_request_in_whatever_order_it_is_written(
    line: bytes, identifier: int | str
):
    assert salvage_id(line, line) == identifier


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Loading 7",
        b'{"level":"info","id":7,"msg":"hello',
        b'{"id":7,"result":{"no":"version',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{',
        b'got {"jsonrpc":"2.0","id":7,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{',
        b'{"jsonrpc":"2.0","id":7.5,"result":{',
        b'{"jsonrpc":"2.0","id":"\\ud800","result":{',
        b'{"jsonrpc":"2.0","result":{"id":7,"x":',
    ],
)
def test_what_has_not_the_outline_of_an_answer_tells_nothing(line: bytes):
    """A server that prints the requests it gets must not fail the calls they belong to."""
    assert salvage_id(line, line) is None


@settings(deadline=None)
@given(st.binary(), st.binary())
def test_any_bytes_can_be_looked_at(head: bytes, tail: bytes):
    assert salvage_id(head, tail) is None


def test_a_hostile_line_is_looked_at_in_no_time():
    comma = b'{"result":' + b", " * 5000 + b'"id":' * 5000
    assert salvage_id(comma, comma) is None
