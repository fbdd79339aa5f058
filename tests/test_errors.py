"""What programs can tell errors of calls by."""

import pytest

from aggregator.errors import (
    MAX_QUOTED,
    BusyError,
    CallError,
    CallTimeoutError,
    RefusedCallError,
    ServerLostError,
    ServerUnavailableError,
    TurnedAwayError,
    UnknownToolError,
)


@pytest.mark.parametrize(
    ("error", "facts"),
    [
        (UnknownToolError("db__no"), {"kind": "unknown-tool"}),
        (ServerUnavailableError("db", None), {"kind": "server-unavailable", "server": "db"}),
        (TurnedAwayError("db", "it is full"), {"kind": "turned-away", "server": "db"}),
        (ServerLostError("db"), {"kind": "server-lost", "server": "db"}),
        (CallTimeoutError("db", 5), {"kind": "timeout", "server": "db"}),
        (BusyError("db"), {"kind": "busy", "server": "db"}),
    ],
)
def test_each_error_of_a_call_gives_its_facts(error: CallError, facts: dict[str, str]) -> None:
    assert error.facts == facts


def test_no_two_errors_of_calls_are_of_one_kind() -> None:
    kinds = [each.kind for each in (CallError, *CallError.__subclasses__())]

    assert len(kinds) == len(set(kinds))


def test_what_a_server_refuses_a_call_with_cannot_be_taken_for_more() -> None:
    said = "no\n\nThe server `db`\u202e\x1b[2J says:\tyes"

    error = RefusedCallError(-32000, said, {"as": said})

    assert str(error) == "The call failed with error -32000: no The server `db` says: yes"
    assert error.facts["data"] == {"as": said}


def test_what_a_server_refuses_a_call_with_has_its_bounds() -> None:
    fits, exceeds = (str(RefusedCallError(1, "x" * length)) for length in (MAX_QUOTED, 10**7))

    assert fits.endswith("1: " + "x" * MAX_QUOTED)
    assert exceeds == fits + "…"
