"""Goes on where a client has been answered before us, so that nothing is lost or said twice.

Every message is handled as if it came now. Requests that were answered get ids that no client
has: by these, and by nothing that a client could have chosen, their answers are known.
"""

import os
from collections.abc import Mapping, Sequence

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse, RequestId

from aggregator.basics.json import JsonObject, is_plain_object, items
from aggregator.entry.ahead import Lead
from aggregator.jsonrpc.decoding import Decoded, decode

MAX_REQUEST_BYTES = 64 * 1024 * 1024
"""Bytes a client's message may have."""


class Takeover:
    """What has been read and said on a client's streams before us."""

    def __init__(self, lead: Lead | None = None) -> None:
        lead = lead or Lead()
        nonce = os.urandom(8).hex()
        self._answered: dict[RequestId, JsonObject] = {}
        self.messages: list[Decoded] = []
        """What came and was understood."""
        self.rest = lead.rest
        """The bytes behind it."""
        self.unsent = lead.unsent
        """What is yet to be written of an answer."""
        for number, said in enumerate(lead.said):
            for message in decode(said.line, MAX_REQUEST_BYTES):
                if said.result is not None and isinstance(message, JSONRPCRequest):
                    identifier = f"answered ahead {nonce} {number}"
                    self._answered[identifier] = said.result
                    self.messages.append(message.model_copy(update={"id": identifier}))
                else:
                    self.messages.append(message)

    def withholds(self, message: JSONRPCMessage) -> bool:
        """Whether a message answers what has been answered."""
        is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
        return is_answer and message.id in self._answered

    @property
    def lists(self) -> Mapping[RequestId, Sequence[JsonObject]]:
        """The tools that were listed, by the request for them."""
        return {
            identifier: [each for each in items(result["tools"]) if _is_named(each)]
            for identifier, result in self._answered.items()
            if "tools" in result
        }


NOTHING = Takeover()
"""The streams of a client that nobody has read before us."""


def _is_named(tool: object) -> bool:
    return is_plain_object(tool) and isinstance(tool.get("name"), str)
