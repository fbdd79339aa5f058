"""Calls of tools: find the entry that is meant, make the arguments fit, forward, translate."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.effort import Effort
from aggregator.basics.json import JsonObject, as_object
from aggregator.catalog import Ready, ToolEntry
from aggregator.errors import (
    ERROR_META,
    CallError,
    InvalidCallError,
    NotLoggedInError,
    NotReadOnlyError,
    RefusedCallError,
    ServerUnavailableError,
    UnauditedError,
    UnknownToolError,
    WithheldError,
)
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.fleet.pinning import command
from aggregator.names import Ambiguous, ServerName, ToolName
from aggregator.search.repair import nearest
from aggregator.toolsearch import CallRequest, Problem, conform, parse_call
from aggregator.toolsearch.offers import called
from aggregator.toolsearch.refusal import unfit
from aggregator.upstream.forwarding import Forward, Forwarding
from aggregator.upstream.listing import budget, profile_of
from aggregator.upstream.logging_in import LoggingIn
from aggregator.upstream.observer import Note, Observer
from aggregator.upstream.offered import Offered, offered
from aggregator.upstream.request import Request
from aggregator.upstream.results.guard import Guard, limit_for
from aggregator.upstream.results.telling import PREFIX, name_in

FOR_CLIENTS = (types.URL_ELICITATION_REQUIRED, types.MISSING_REQUIRED_CLIENT_CAPABILITY)
"""Errors that ask something of the client itself."""


READING = ToolName(f"{PREFIX}read")
"""What reading a result again is counted as: the names of results are nobody else's business."""


class Calls:
    """Forwards calls to the servers they are meant for."""

    def __init__(
        self,
        fleet: Fleet,
        forwarding: Forwarding,
        logging_in: LoggingIn,
        offered: Offered,
        *,
        observer: Observer,
        guard: Guard,
    ) -> None:
        self._fleet = fleet
        self._forwarding = forwarding
        self._logging_in = logging_in
        self._observer = observer
        self._offered = offered
        self._guard = guard

    async def answer(self, request: Request) -> dict[str, Any]:
        """Answer `tools/call` of an entry, by its own name or through a meta-tool.

        Raises:
            MCPError: There is no such tool, or its server answered with an error of its own; of a
                call through a meta-tool, which itself is in order, the model is told instead.
        """
        entry: ToolEntry | None = None
        with self._observer.see_call(request) as observation:

            def note(asked: CallRequest, noted: ToolEntry | None) -> None:
                nonlocal entry
                # A page of a result is not a result to be kept once more.
                entry = None if noted is not None and noted.name == READING else noted
                observation.note(asked, noted)

            try:
                result = await self._bound(request, note)
                if isinstance(result, Bound):
                    entry, request = result.entry, result.request
                    result = await self._forwarding.send(result.forward, request)
                    learn_links(result, entry, request)
            except (CallError, MCPError) as error:
                result = told(error, request)
            observation.answered(result)
        # Whoever counts or writes down has seen all of it.
        limit = limit_for(request)
        return await self._guard.fitted(result, request, entry, limit) if limit else result

    def turn_away(self, request: Request, error: CallError) -> dict[str, Any]:
        """Answer a call that is not even looked at."""
        with self._observer.see_call(request) as observation:
            observation.note(CallRequest(request.params["name"], {}), None)
            result = failure(error)
            observation.answered(result)
        return result

    async def _bound(self, request: Request, note: Note) -> "Bound | dict[str, Any]":
        """Return where a call goes, once that can be known, or the answer if it goes nowhere."""
        if (resumed := await self._logging_in.resumed(request)) is not None:
            return resumed
        asked = read(request.params, request.now)
        note(asked, None)
        if (trouble := self._fleet.stream.trouble) is not None and trouble.forbids:
            raise UnauditedError(trouble.reason)
        if (kept := name_in(asked.name)) is not None:
            server = self._guard.whose(kept, request)
            note(asked, ToolEntry(READING, server, {}))
            return await self._guard.read(kept, asked.arguments, request)
        if (meant := offered(asked.name, request.now)) is not None:
            kind, name = meant
            tool = called(kind, name)
            return await self._offered.use(
                kind,
                CallRequest(name, asked.arguments),
                request,
                lambda server: note(asked, ToolEntry(tool, server, {})),
            )
        if _is_missing(asked.name, request.now):
            await self._until_offered(asked.name, request)
            request = request.at(self._fleet.now)
        entry = _find(asked.name, request)
        note(asked, entry)
        if entry in request.now.catalog.logins:
            _check_reads(entry, request)
            return await self._logging_in.answer(entry, request)
        state = self._fleet.own_state(entry.server, request.resident)
        if not isinstance(state or request.now.catalog.servers[entry.server], Ready):
            # What it was known to offer may not be what it offers.
            await self._fleet.until_ready(entry.server, request.resident)
            request = request.at(self._fleet.now)
            entry = _find(asked.name, request)
        return Bound(entry, _prepare(entry, asked.arguments, request), request, asked)

    async def _until_offered(self, name: str, request: Request) -> None:
        """Wait for the server that a tool's name is addressed to, or for those that may have it.

        Raises:
            ServerUnavailableError: That server did not become ready.
        """
        if isinstance(found := request.now.find(name), str):
            # It is withheld, and may have been approved a moment ago.
            await self._fleet.awaiting.until_followed(request.now.catalog.owner(found))
            return
        now = request.outlook(self._fleet.now)
        if (server := now.lookup.absent(name)) is not None:
            if server not in now.catalog.servers:
                raise ServerUnavailableError(server, "it is disabled in the configuration")
            await self._fleet.until_ready(server)
        else:
            outlook = request.outlook
            await self._fleet.awaiting.until_started(lambda now: _candidates(name, outlook(now)))


def learn_links(result: JsonObject, entry: ToolEntry, request: Request) -> None:
    """Remember what a result links to, so that its client can follow it."""
    links, lister = request.conversation.links, request.now.routes.lister
    links.learn(entry.server, result, lister)


class Bound(NamedTuple):
    """A call that is ready to be sent on."""

    entry: ToolEntry
    forward: Forward
    request: Request
    asked: CallRequest
    """As the client has put it."""


def told(error: CallError | MCPError, request: Request) -> dict[str, Any]:
    """Return what a model is told of a call that failed.

    Raises:
        MCPError: It is the client that must be told.
    """
    if isinstance(error, CallError):
        if isinstance(error, UnknownToolError) and not _is_relayed(request):
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        return failure(error, advice(error, request))
    if not _is_relayed(request) or error.code in FOR_CLIENTS:
        raise error
    return failure(RefusedCallError(error.code, error.message, error.data))


def _is_relayed(request: Request) -> bool:
    """Whether a tool is called through one of ours."""
    return request.now.own_tool(request.params["name"]) is not None


def read(params: Mapping[str, Any], now: Now) -> CallRequest:
    """Read which entry a call is meant for, and with which arguments.

    Raises:
        InvalidCallError: It cannot be read.
    """
    if now.own_tool(params["name"]) is None:
        return CallRequest(params["name"], as_object(params.get("arguments")))
    asked = parse_call(
        params.get("arguments"),
        lambda name: _is_understood(name, now),
        now.own_names,
        lambda name: name in now.catalog.entries or bool(now.lookup.addressed(name)),
    )
    if isinstance(asked, Problem):
        raise InvalidCallError(asked.text)
    return asked


def _is_missing(name: str, now: Now) -> bool:
    """Whether a name means no tool that is offered now, but may in a moment."""
    found = now.find(name)
    return found is None or (isinstance(found, str) and found not in now.catalog.entries)


def _find(name: str, request: Request) -> ToolEntry:
    """Find the entry a name means.

    Raises:
        UnknownToolError: No server offers it.
        WithheldError: It is not as it was approved.
    """
    now = request.now
    found = now.find(name)
    if isinstance(found, str):
        if (entry := now.catalog.entries.get(found)) is None:
            raise withheld(now, found)
        return entry
    if isinstance(found, Ambiguous):
        raise UnknownToolError(
            name, found.candidates, "Several tools have that name: use one of these"
        )
    near = nearest(name, now.catalog.entries)
    search = profile_of(now, request.conversation).shows(now.own_names.search)
    absent = "" if now.lookup.addressed(name) else _absent(now)
    raise UnknownToolError(name, near, absent, search=search)


def withheld(now: Now, name: ToolName) -> WithheldError:
    """Say why a tool that its server lists is not called."""
    entry = now.catalog.withheld[name]
    drift = now.catalog.drift_of(entry)
    look, approve = (command(each, name, now.config.path) for each in ("lock --diff", "approve"))
    how = ", ".join(drift.details) if drift else "differs"
    return WithheldError(name, entry.server, how, look=look, approve=approve)


def _prepare(entry: ToolEntry, arguments: JsonObject, request: Request) -> Forward:
    """Make a call ready to be sent on.

    Raises:
        InvalidCallError: Its arguments do not fit.
        NotReadOnlyError: The entry may change something, and must not.
    """
    _check_reads(entry, request)
    fitting = _fitted(entry, arguments, request)
    request.conversation.used(entry.name)
    return forward(entry, fitting, request)


def forward(entry: ToolEntry, arguments: JsonObject, request: Request) -> Forward:
    """Return a call in its server's own words."""
    own = {**request.params, "name": entry.own_name, "arguments": arguments}
    return Forward(entry.server, "tools/call", own, entry.name)


def _check_reads(entry: ToolEntry, request: Request) -> None:
    """See to it that a call which must change nothing is of a tool that does not.

    Raises:
        NotReadOnlyError: The entry may change something, and must not.
    """
    names = request.now.own_names
    if not (entry.read_only or _may_change(request)):
        raise NotReadOnlyError(entry.name, called=names.call_read_only, instead=names.call)


def _may_change(request: Request) -> bool:
    """Whether what is called may change something."""
    return request.now.own_tool(request.params["name"]) != request.now.own_names.call_read_only


def _fitted(entry: ToolEntry, arguments: JsonObject, request: Request) -> JsonObject:
    """Return arguments with the types that the tool asks for, the very same if they have them.

    What a model was sent it may have lost since, so each mistake is told with the definition. Who
    insists has the word of the server: it may take more than its definition says.

    Raises:
        InvalidCallError: They do not fit.
    """
    conversation = request.conversation
    effort = Effort()
    conformed = conform(arguments, entry.input_schema, effort)
    if not conformed.problems:
        return conformed.arguments
    if conversation.insists(entry.name, arguments):
        return arguments
    seen = conversation.seen(entry)
    conversation.saw(entry)
    conversation.refused(entry.name, arguments)
    text = unfit(
        entry,
        conformed.problems,
        seen,
        max_chars=budget(request.now, conversation),
        effort=effort,
    )
    raise InvalidCallError(text)


def _candidates(name: str, now: Now) -> Collection[ServerName]:
    """Return the servers that may come to have a tool which nobody has, by the name it is given."""
    return () if _is_understood(name, now) else now.catalog.servers


def _is_understood(name: str, now: Now) -> bool:
    """Whether it is known whose tool a text means, if not which."""
    is_tool = now.find(name) is not None or bool(now.lookup.addressed(name))
    return is_tool or offered(name, now) is not None or name_in(name) is not None


def _absent(now: Now) -> str:
    """Name the servers whose tools are not known, since the tool may be theirs."""
    absent = [*now.catalog.pending, *now.catalog.failed]
    if not absent:
        return ""
    names = ", ".join(f"`{name}`" for name in absent)
    return f"It may belong to a server that is not connected: {names}"


def advice(error: CallError, request: Request) -> str:
    """Say by which of our tools a server that needs a login can be used, if there is one."""
    is_told = error.server is None or isinstance(error, NotLoggedInError)
    logins = () if is_told else request.now.catalog.logins
    named = next((each.name for each in logins if each.server == error.server), None)
    return "" if named is None else f". To have them log in now, call `{named}`"


def failure(error: CallError, advice: str = "") -> dict[str, Any]:
    """Make a result of an error: a text that the model should read, and facts for programs."""
    content = [{"type": "text", "text": f"{error}{advice}"}]
    return {"content": content, "isError": True, "_meta": {ERROR_META: dict(error.facts)}}
