"""Calls of which nothing has to be waited for but the answer: most are.

They are sent on without a task. What is found to be anything but plain, before or after, goes the
way of all others.
"""

import logging
from typing import Any, NamedTuple

from mcp.shared.exceptions import MCPError

from aggregator.basics.effort import Effort
from aggregator.basics.json import JsonObject, as_object
from aggregator.catalog import Ready, ToolEntry
from aggregator.downstream.sent import Settled
from aggregator.errors import CallError, InvalidCallError
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.names import ToolName
from aggregator.toolsearch import CallRequest, Plain, conform, plain_form
from aggregator.upstream.calls import Bound, forward, learn_links, read, told
from aggregator.upstream.forwarding import Begun, Forwarding
from aggregator.upstream.observer import Observation, Observer
from aggregator.upstream.request import Request
from aggregator.upstream.results.guard import Guard, fits, limit_for

logger = logging.getLogger(__name__)

MAX_FORMS = 256
"""Tools of which it is kept what their arguments must be."""
FITTING_STEPS = 1_000
"""Steps that it may cost to see that arguments fit: more are taken on the usual way."""


class Calling(NamedTuple):
    """A call that was sent on."""

    bound: Bound
    begun: Begun
    observation: Observation

    def give_up(self) -> None:
        """Take it back."""
        self.begun.give_up()
        self.observation.end()


class PlainCalls:
    """Sends calls on as they come, and answers them."""

    def __init__(
        self, fleet: Fleet, forwarding: Forwarding, *, observer: Observer, guard: Guard
    ) -> None:
        self._fleet = fleet
        self._forwarding = forwarding
        self._observer = observer
        self._guard = guard
        self._forms: dict[ToolName, tuple[ToolEntry, Plain | None]] = {}
        """What the arguments of tools must be that were called lately."""

    def bound(self, request: Request) -> Bound | None:
        """Return where a call goes, if nothing is to be waited for and nothing said to it."""
        if request.params.get("requestState") is not None or self._fleet.stream.trouble is not None:
            return None
        now, params = request.now, request.params
        own = now.own_tool(params["name"])
        asked = _asked(params, own, now)
        entry = None if asked is None else _listed(asked.name, now)
        if asked is None or entry is None:
            return None
        if own is not None and own == now.own_names.call_read_only and not entry.read_only:
            return None
        arguments: JsonObject | None = asked.arguments
        if not self._is_plain(arguments, entry):
            # Whoever looks at it on the usual way would do all of this again.
            if not self._forwarding.can_begin(entry.server, request):
                return None
            arguments = _fitting(arguments, entry)
        if arguments is None:
            return None
        return Bound(entry, forward(entry, arguments, request), request, asked)

    def _is_plain(self, arguments: JsonObject, entry: ToolEntry) -> bool:
        """Whether arguments are few and plain, and of the types that a tool asks for."""
        known = self._forms.get(entry.name)
        if known is None or known[0] is not entry:
            if len(self._forms) >= MAX_FORMS:
                self._forms.clear()
            known = self._forms[entry.name] = (entry, plain_form(entry.input_schema))
        return known[1] is not None and known[1].fits(arguments)

    def begin(self, bound: Bound, settled: Settled) -> Begun | None:
        """Send a call on, if that needs no wait, and have somebody told of its answer."""
        return self._forwarding.begin(bound.forward, bound.request, settled)

    def seen(self, bound: Bound, begun: Begun) -> Calling:
        """Take note of a call that was sent on."""
        request, observation = bound.request, Observation()
        try:
            request.conversation.called()
            request.conversation.used(bound.entry.name)
            observation = self._observer.see_call(request)
            observation.note(bound.asked, None)
            observation.note(bound.asked, bound.entry)
        except Exception:
            # It is under way, and somebody has to wait for its answer.
            logger.exception("a call could not be taken note of")
        return Calling(bound, begun, observation)

    def take_plain(self, calling: Calling) -> dict[str, Any] | None:
        """Return the result of a call that is settled, if there is nothing else."""
        return calling.begun.take_plain()

    def note(self, calling: Calling, result: dict[str, Any]) -> None:
        """Take note of a plain result."""
        with calling.observation:
            learn_links(result, calling.bound.entry, calling.bound.request)
            calling.observation.answered(result)

    def shows(self, result: dict[str, Any], bound: Bound) -> bool:
        """Whether a model is shown all of a result."""
        limit = limit_for(bound.request)
        return not limit or fits(result, bound.request, bound.entry, limit)

    async def shortened(self, result: dict[str, Any], bound: Bound) -> dict[str, Any]:
        """Return what a model is shown of a result."""
        limit, request, entry = limit_for(bound.request), bound.request, bound.entry
        return await self._guard.fitted(result, request, entry, limit) if limit else result

    async def finish(self, calling: Calling) -> dict[str, Any]:
        """Answer a call that is settled, but not with a plain result.

        Raises:
            MCPError: Its server answered with an error of its own.
        """
        bound, request = calling.bound, calling.bound.request
        with calling.observation as observation:
            try:
                result = await self._forwarding.finish(calling.begun, bound.forward, request)
                learn_links(result, bound.entry, request)
            except (CallError, MCPError) as error:
                result = told(error, request)
            observation.answered(result)
        return result


def _asked(params: JsonObject, own: str | None, now: Now) -> CallRequest | None:
    """Return what a call asks for, by one of our tools if any, if it can be read and no search."""
    if own is None:
        return CallRequest(params["name"], as_object(params.get("arguments")))
    if own == now.own_names.search:
        return None
    try:
        return read(params, now)
    except InvalidCallError:
        return None


def _fitting(arguments: JsonObject, entry: ToolEntry) -> JsonObject | None:
    """Return arguments with the types that a tool asks for, if they fit and that is soon told."""
    effort = Effort(FITTING_STEPS)
    conformed = conform(arguments, entry.input_schema, effort)
    return None if conformed.problems or effort.fell_short else conformed.arguments


def _listed(name: str, now: Now) -> ToolEntry | None:
    """Return the tool that has exactly this name, if its server is there."""
    entry = now.catalog.entries.get(ToolName(name))
    # What has a kind before its name is none of a tool.
    if entry is None or ":" in name or now.lookup.misses(name):
        return None
    return entry if isinstance(now.catalog.servers[entry.server], Ready) else None
