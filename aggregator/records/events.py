"""What happens, told as it happens to whoever listens: values, each made at one place.

What was asked and answered is in none of them, unless a listener says that a person wants that.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any, Literal, NamedTuple, Protocol

from aggregator.basics.json import JsonObject
from aggregator.catalog import Catalog, Failed, Idle, Pending, Ready, ServerState
from aggregator.names import ServerName

OURSELVES = "aggregator-cli"
"""The client that a person's commands are: what they do is no model's doing."""
PAGE = "aggregator-page"
"""The client that the page of the HTTP door is, in a person's browser."""
FINE = frozenset(("ok", "asks", "task", "cancelled"))
"""Outcomes of calls in which nothing went wrong."""
BY_HAND = frozenset((OURSELVES, PAGE))
"""Clients behind which there is a person, and no model that anything is saved for."""


class Origin(NamedTuple):
    """Whose request it was."""

    client: str
    """The name it gives itself, empty if it gives none."""
    session: str
    """Tells its requests from those of others, and opens nothing."""
    profile: str = ""
    """What it sees, if not all."""
    identity: str = ""
    """Who it is: the name of a token, or of somebody that an issuer knows; whoever runs us has
    none."""
    issuer: str = ""
    """Who says that it is, if that is not us."""


class Content(NamedTuple):
    """What was asked and answered."""

    arguments: JsonObject
    result: JsonObject | None
    """Nothing if there was none but an error."""


class CallBegan(NamedTuple):
    """A tool was found that is to be called."""

    at: float
    """Seconds since the epoch."""
    origin: Origin
    number: int
    """The same as of its end, and of no other call's."""
    server: ServerName
    tool: str


class CallEnded(NamedTuple):
    """A call was answered, or nobody waits for its answer any more."""

    at: float
    """When it began, in seconds since the epoch."""
    origin: Origin
    number: int
    server: str
    """Empty if no such tool is known."""
    tool: str
    """The name clients see, or what was asked for if there is none."""
    through: str
    """Which of our own tools it was called through, if it was."""
    outcome: str
    """`ok`, `asks` for questions and `task` for a task instead of a result, `cancelled`,
    `tool-error` if the tool says so itself, else the kind of our error."""
    seconds: float
    trace: str = ""
    """The `traceparent` that it came with."""
    content: Content | None = None
    """Only where a listener wants it."""
    meant: str = ""
    """The server that was meant, where it was not there or withholds the tool."""

    @property
    def label(self) -> str:
        """What it is counted as: resources are all one, since a URI may be anything."""
        return "resource" if self.tool.startswith("resource:") else self.tool

    @property
    def is_error(self) -> bool:
        """Whether somebody waited for an answer and got none that helps."""
        return self.outcome not in FINE


class Answer(NamedTuple):
    """What one query found."""

    query: str
    found: tuple[str, ...]
    """Tools, the best first."""
    others: int = 0
    """What else it found: prompts, skills, resources."""

    @property
    def is_hit(self) -> bool:
        """Whether it found anything at all."""
        return bool(self.found or self.others)


class Searched(NamedTuple):
    """A search was answered."""

    at: float
    origin: Origin
    answers: tuple[Answer, ...]
    """One for each query; none for a look at what there is."""
    offset: int
    """How many of the best were passed over."""
    characters: int
    """How long the answer is."""
    tokens: int
    """About what it costs a model."""
    seconds: float


class ListServed(NamedTuple):
    """A client was given its list of tools."""

    at: float
    origin: Origin
    tools: Sequence[JsonObject]
    """What was listed."""
    catalog: Catalog
    """What there is."""


class StateChanged(NamedTuple):
    """A server is in another state."""

    at: float
    server: ServerName
    before: ServerState | None
    """`None` for a server that was not configured."""
    after: ServerState | None
    """`None` for a server that is configured no longer."""


class LoginNeeded(NamedTuple):
    """A server wants nothing but that somebody logs in."""

    at: float
    server: ServerName
    command: str


Event = CallBegan | CallEnded | Searched | ListServed | StateChanged | LoginNeeded
Listener = Callable[[Event], None]
"""Told of each event at once; may neither wait nor fail."""


class Operation(NamedTuple):
    """One request, of a client to us or of ours to a server."""

    kind: Literal["server", "client"]
    method: str
    params: JsonObject
    target: str = ""
    """What it is about: a tool or a prompt."""
    protocol: str = ""
    request: str = ""
    server: str = ""
    is_remote: bool = False


class Hop:
    """A request on its way: what is sent on in its place, and whether that went well."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        """The same, with its place in the trace."""
        self.has_failed = False
        self.target = ""
        """What it turned out to be about."""

    def answered(self, result: JsonObject, target: str = "") -> None:
        """Take note of the result, and of what it turned out to be about."""
        self.has_failed = result.get("isError") is True
        self.target = target


class Tracer(Protocol):
    """Makes requests a part of the trace that they belong to."""

    def following(self, operation: Operation, /) -> AbstractContextManager[Hop]:
        """Follow a request for the length of the block."""
        ...


class Trouble(NamedTuple):
    """Why what happens is not written down where it should be."""

    reason: str
    forbids: bool = False
    """Whether tools are not to be called meanwhile."""


class Stream:
    """The one way from where things happen to whoever listens."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self.tracer = tracer
        """What has each request followed, if anybody wants that."""
        self._listeners: tuple[Listener, ...] = ()
        self._wanting = 0
        self._numbers = count(1)
        self.name = os.urandom(4).hex()
        """Tells sessions of this run from those of others."""
        self.is_heard = False
        """Whether anybody listens; where nobody does, no event need be made."""
        self.trouble: Trouble | None = None
        """Why something is not written down that a person wants to be, if it is not."""

    @property
    def wants_content(self) -> bool:
        """Whether a listener wants to know what was asked and answered."""
        return self._wanting > 0

    def number(self) -> int:
        """Return what tells one call from all others."""
        return next(self._numbers)

    @contextmanager
    def heard_by(self, listener: Listener, *, content: bool = False) -> Generator[None, None, None]:
        """Tell a listener of what happens, for the length of the block."""
        self._listeners = (*self._listeners, listener)
        self._wanting += content
        self.is_heard = True
        try:
            yield
        finally:
            at = self._listeners.index(listener)
            self._listeners = self._listeners[:at] + self._listeners[at + 1 :]
            self._wanting -= content
            self.is_heard = bool(self._listeners)

    def tell(self, event: Event) -> None:
        """Tell everybody who listens."""
        for listener in self._listeners:
            listener(event)

    def report(self, trouble: Trouble | None) -> None:
        """Take note of why something cannot be written down, or that it can be again."""
        self.trouble = trouble


def state_word(state: ServerState) -> str:
    """Return the word for a state that is the same wherever it is told."""
    match state:
        case Ready():
            return "ready"
        case Idle():
            return "idle"
        case Pending():
            return "pending"
        case Failed():
            return "failed" if state.login is None else "needs login"


def state_changes(
    before: Catalog, after: Catalog, at: float
) -> Iterator[StateChanged | LoginNeeded]:
    """Yield what is different of servers; another list of tools is no other state."""
    for name in (*after.servers, *(name for name in before.servers if name not in after.servers)):
        old, new = before.servers.get(name), after.servers.get(name)
        if old is new or _gist(old) == _gist(new):
            continue
        yield StateChanged(at, name, old, new)
        if isinstance(new, Failed) and new.login is not None:
            yield LoginNeeded(at, name, new.login)


def _gist(state: ServerState | None) -> tuple[str | None, ...]:
    if state is None:
        return ()
    phase = state.phase if isinstance(state, Pending) else None
    reason = state.reason if isinstance(state, Pending | Failed) else None
    return state_word(state), phase, reason
