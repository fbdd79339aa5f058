"""Which request an answer says that it is for.

A response answers the request that it is a response to, whatever it says: some servers make up ids.
But one that has repeated ours knows them, and what it sends under another of them is the answer to
another request, late or for the second time, and nobody else's business.
"""

from mcp.shared.dispatcher import coerce_request_id
from mcp_types import RequestId

ENOUGH = 2
"""Ids that were repeated rightly, after which a wrong one is no chance: always the same is once."""


class AnswerIds:
    """What the answers of one server have said so far."""

    def __init__(self) -> None:
        self._right = 0

    def is_anothers(self, said: RequestId | None, asked: RequestId) -> bool:
        """Take note of an answer, and say whether it is to a request before the one it is for."""
        found = None if said is None else coerce_request_id(said)
        if found == asked:
            self._right += 1
            return False
        if self._right < ENOUGH or not (isinstance(found, int) and isinstance(asked, int)):
            return False
        return 0 <= found < asked
