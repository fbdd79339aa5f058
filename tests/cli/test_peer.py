"""What an aggregator answers, as commands understand it."""

from collections.abc import Iterator
from typing import Any

import pytest

from aggregator.cli.environment import CommandError, ExitStatus
from aggregator.cli.peer import AnswerError, Json, Peer
from aggregator.upstream.http.exchange import instead


class Refusing(Peer):
    """Answers everything with one error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__()
        self._error = error

    def _exchange(self, request: Json) -> Iterator[Json]:
        yield {"jsonrpc": "2.0", "id": request["id"], "error": self._error}


def test_an_aggregator_that_ends_during_a_call_is_not_taken_for_a_tool_that_failed() -> None:
    told = instead("closed")
    assert told is not None
    with pytest.raises(CommandError, match="the session ended before the answer came") as raised:
        Refusing(told.model_dump(exclude_none=True)).call("notes__list", {})

    assert raised.value.status is ExitStatus.UNREACHED


def test_a_server_that_sends_the_same_code_is_taken_for_one_that_failed() -> None:
    with pytest.raises(AnswerError) as raised:
        Refusing({"code": -32000, "message": "Session ended", "data": {"a": 1}}).call("a__b", {})

    # What no command foresees is said as any other reason to stop.
    assert isinstance(raised.value, CommandError)
    assert str(raised.value) == "`tools/call` was refused: Session ended (code -32000)"
