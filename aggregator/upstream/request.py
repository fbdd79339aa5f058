"""One request of one client, and what was known when it came."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aggregator.basics.eras import Era
from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, as_object
from aggregator.exposure import time_to_live
from aggregator.fleet.client_processes import Resident
from aggregator.fleet.now import Now
from aggregator.upstream.caller import MEET, Context, ContextCaller, Way
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.login_invitations import Outlook, plain


@frozen
class Request:
    """What a client asks, and all that the answer is made of."""

    now: Now
    conversation: Conversation
    caller: ContextCaller
    params: Mapping[str, Any]
    resident: Resident
    """The client as the processes know it that it has to itself."""
    outlook: Outlook = plain
    """What this client sees of whatever is known."""

    given: Sequence[JsonObject] | None = None
    """The tools that it was given before us, if these are what it asks for."""

    def at(self, now: Now) -> "Request":
        """Return the request as it is once something else is known."""
        return replace(self, now=self.outlook(now))

    def again(self, params: JsonObject, now: Now, way: Way | None = None) -> "Request":
        """Return another request that the same client has sent in the same way."""
        token = as_object(params.get("_meta")).get("progressToken")
        caller, outlook = self.caller.again(token, way), self.outlook
        seen = outlook(now)
        return Request(seen, self.conversation, caller, params, self.resident, outlook)

    def cacheable(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Say, where that must be said, how long a list may be kept."""
        return keepable(answer, time_to_live(self.now.catalog), self.caller.era)


def keepable(answer: dict[str, Any], milliseconds: int, era: Era) -> dict[str, Any]:
    """Say, where that must be said, how long an answer may be kept that does not say it itself."""
    if era == "handshake":
        return answer
    return {"ttlMs": milliseconds, "cacheScope": "private", **answer}


def meeting(ctx: Context) -> Callable[[Request], None] | None:
    """Return who is to be told, once, whose request this is, if anybody is."""
    return None if ctx.request is None else ctx.request.scope.pop(MEET, None)
