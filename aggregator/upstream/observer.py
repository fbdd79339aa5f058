"""Tells of what clients do: each call, each search, each list."""

import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from typing import Self

from mcp.shared.exceptions import MCPError

from aggregator.basics.clock import Clock, running_clock
from aggregator.basics.json import JsonObject, as_object
from aggregator.basics.tasks import is_task
from aggregator.catalog import ToolEntry
from aggregator.downstream.questions import is_input_required
from aggregator.errors import ERROR_META, CallError
from aggregator.names import ServerName
from aggregator.records.events import (
    Answer,
    CallBegan,
    CallEnded,
    Content,
    ListServed,
    Origin,
    Searched,
    Stream,
)
from aggregator.secrecy import Redaction
from aggregator.toolsearch import CallRequest
from aggregator.upstream.request import Request

MAX_TEXT = 200
"""Characters of a query, or of the name of a tool that does not exist."""
MAX_QUERIES = 8
"""Queries of one search that are told of."""
TRACEPARENT = "traceparent"
TRACE_CHARACTERS = 55
"""How long a `traceparent` is."""

Note = Callable[[CallRequest, ToolEntry | None], None]
"""Told what a call asks for and, once that is known, which tool it is."""


class Observation:
    """What is seen of one call while it lasts: nothing, where nobody listens."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, MCPError):
            self.refused(error)
        self.end()

    def note(self, asked: CallRequest, entry: ToolEntry | None) -> None:
        """Take note of what is asked for and, once that is known, which tool it is."""

    def answered(self, result: JsonObject) -> None:
        """Take note of the result."""

    def refused(self, error: MCPError) -> None:
        """Take note of an error in the place of a result."""

    def end(self) -> None:
        """Take note that it is over."""


_NOTHING = Observation()


class Observer:
    """Makes events of what clients do, where anybody listens."""

    def __init__(self, stream: Stream, redact: Callable[[], Redaction]) -> None:
        self._stream = stream
        self._redact = redact
        self._clock = running_clock()

    def see_call(self, request: Request) -> Observation:
        """Tell when a call begins and, after the block, how it ended."""
        stream = self._stream
        return _Call(stream, request, self._redact, self._clock) if stream.is_heard else _NOTHING

    def see_list(self, request: Request, tools: Sequence[JsonObject]) -> None:
        """Tell that a client was given its list."""
        if self._stream.is_heard:
            origin = origin_of(request, self._stream)
            self._stream.tell(ListServed(time.time(), origin, tools, request.now.catalog))

    def see_search(
        self,
        request: Request,
        answers: Iterator[Answer],
        offset: int,
        characters: int,
        began: float,
    ) -> None:
        """Tell what was searched and found, of which nothing is looked at where nobody listens."""
        if self._stream.is_heard:
            told = tuple(
                each._replace(query=_short(each.query, self._redact))
                for each in islice(answers, MAX_QUERIES)
            )
            self._stream.tell(
                Searched(
                    time.time(),
                    origin_of(request, self._stream),
                    told,
                    offset,
                    characters,
                    request.now.catalog.scale.tokens_of_text(characters),
                    self._clock() - began,
                )
            )


class _Call(Observation):
    """One call, from its request to its answer."""

    def __init__(
        self, stream: Stream, request: Request, redact: Callable[[], Redaction], clock: Clock
    ) -> None:
        self._clock = clock
        self._stream = stream
        self._redact = redact
        self._request = request
        self._origin = origin_of(request, stream)
        self._number = stream.number()
        self._at = time.time()
        self._began = clock()
        self._server = ServerName("")
        self._meant = ""
        self._tool = ""
        self._outcome = "cancelled"
        self._arguments: JsonObject = {}
        self._result: JsonObject | None = None

    def note(self, asked: CallRequest, entry: ToolEntry | None) -> None:
        """Take note of what is asked for, and tell once it is known which tool that is."""
        if entry is None:
            self._tool = asked.name
            self._arguments = asked.arguments
        elif not self._server:
            self._tool, self._server = entry.name[:MAX_TEXT], entry.server
            self._stream.tell(
                CallBegan(self._at, self._origin, self._number, self._server, self._tool)
            )

    def answered(self, result: JsonObject) -> None:
        """Take note of the result."""
        self._result = result
        self._outcome = _outcome(result)
        if not self._server:
            self._meant = str(_facts(result).get("server", ""))

    def refused(self, error: MCPError) -> None:
        """Take note of an error in the place of a result."""
        cause = error.__cause__
        self._outcome = cause.kind if isinstance(cause, CallError) else "server-error"

    def end(self) -> None:
        """Tell how it ended."""
        params = self._request.params
        name: str = params["name"]
        own = self._request.now.own_tool(name)
        content = None
        if self._stream.wants_content:
            content = Content(self._arguments, self._result)
        self._stream.tell(
            CallEnded(
                self._at,
                self._origin,
                self._number,
                self._server,
                self._tool if self._server else _short(self._tool, self._redact),
                own or "",
                self._outcome,
                self._clock() - self._began,
                _trace(params.get("_meta")),
                content,
                self._meant,
            )
        )


def origin_of(request: Request, stream: Stream) -> Origin:
    """Return whose request it is, without what would open anything."""
    conversation = request.conversation
    client, profile = conversation.client[:MAX_TEXT], conversation.profile or ""
    identity = request.caller.identity
    if conversation.has_memory:
        session = f"{stream.name}-{conversation.number}"
    else:
        # All that is known of it is where it comes from and what it shows, which is a secret.
        party = repr((stream.name, request.caller.party)).encode()
        session = f"{stream.name}-{sha256(party).hexdigest()[:12]}"
    return Origin(client, session, profile, identity.name, identity.issuer)


def _short(text: str, redact: Callable[[], Redaction]) -> str:
    """Return the beginning of a text; half of a secret would not be recognised later on."""
    return text if len(text) <= MAX_TEXT else redact().beginning(text, MAX_TEXT)


def _outcome(result: JsonObject) -> str:
    if is_input_required(result):
        return "asks"
    if is_task(result):
        return "task"
    if result.get("isError") is not True:
        return "ok"
    facts = _facts(result)
    return str(facts["kind"]) if "kind" in facts else "tool-error"


def _facts(result: JsonObject) -> JsonObject:
    """Return what a result tells programs of an error."""
    return as_object(as_object(result.get("_meta")).get(ERROR_META))


def _trace(meta: object) -> str:
    trace = as_object(meta).get(TRACEPARENT)
    return trace if isinstance(trace, str) and len(trace) == TRACE_CHARACTERS else ""
