"""One request of one client, and what was known when it came."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aggregator.exposure import time_to_live
from aggregator.fleet.now import Now
from aggregator.upstream.caller import ContextCaller
from aggregator.upstream.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks, and all that the answer is made of."""

    now: Now
    conversation: Conversation
    caller: ContextCaller
    params: Mapping[str, Any]

    def cacheable(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Say, where that must be said, how long an answer may be kept."""
        if self.caller.era == "handshake":
            return answer
        return {"ttlMs": time_to_live(self.now.catalog), "cacheScope": "private", **answer}
