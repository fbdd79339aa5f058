"""What programs can tell errors of calls by."""

import pytest

from aggregator.errors import (
    BusyError,
    CallError,
    CallTimeoutError,
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
