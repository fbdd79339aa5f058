"""The errors a caller may want to catch.

AggregatorError
├── ConfigError                 servers.yaml cannot be used as written      (.path, .problem, …)
└── CallError                   a tool call that could not be completed
    ├── UnknownToolError        no server offers it                         (.name, .suggestions)
    ├── InvalidCallError        its arguments cannot be what was meant
    ├── NotReadOnlyError        it may change something, and must not       (.name)
    ├── ServerUnavailableError  its server is not connected now             (.server, .reason)
    ├── TurnedAwayError         its server did not take the call            (.server, .reason)
    ├── ServerLostError         its server went away during the call        (.server, .reason)
    ├── CallTimeoutError        its server did not answer in time           (.server, .seconds)
    └── BusyError               its server has too many calls in hand       (.server)

Each class builds its own message from facts and keeps the facts as attributes.
The messages are read by models: they say what is wrong and what to do next.
Programs read the facts: a result that tells of an error has them in its `_meta`.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

ERROR_META = "aggregator/error"
"""The `_meta` key of a result that holds the facts of an error of ours."""


class AggregatorError(Exception):
    """Anything this package raises for a caller to catch."""


class ConfigError(AggregatorError):
    """A `servers.yaml` that cannot be used as written."""

    def __init__(
        self, path: str, problem: str, *, line: int | None = None, hint: str | None = None
    ) -> None:
        where = f"`{path}`" if line is None else f"`{path}`, line {line}"
        super().__init__(f"{where}: {problem}")
        self.path = path
        self.problem = problem
        self.line = line
        self.hint = hint
        self.others: tuple[ConfigError, ...] = ()
        """What else is wrong, in the order of the file."""

    def tell_of(self, others: Sequence["ConfigError"]) -> None:
        """Stand for other mistakes of the same file too."""
        self.others = tuple(others)


class CallError(AggregatorError):
    """A tool call that could not be completed."""

    kind: ClassVar[str] = "failed"
    """What programs tell it from others by."""
    server: str | None = None
    """The server that the tool belongs to, as far as that is known."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What programs read instead of the message."""
        return {"kind": self.kind} | ({} if self.server is None else {"server": self.server})


class UnknownToolError(CallError):
    """No server offers the tool."""

    kind = "unknown-tool"

    def __init__(self, name: str, suggestions: Sequence[str] = (), note: str = "") -> None:
        message = f"There is no tool `{name}`"
        if suggestions:
            message += "; the closest are " + ", ".join(f"`{each}`" for each in suggestions)
        message += f". {note}" if note else ". Use `ToolSearch` to find the right name"
        super().__init__(message)
        self.name = name
        self.suggestions = tuple(suggestions)


class InvalidCallError(CallError):
    """The call cannot be what was meant; says what to send instead."""

    kind = "invalid-arguments"


class NotReadOnlyError(CallError):
    """The tool may change something, and was called in a way that must not."""

    kind = "not-read-only"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"`CallReadOnlyTool` does not call `{name}`, since it may change something. "
            "Use `CallTool` instead"
        )
        self.name = name


class ServerUnavailableError(CallError):
    """The tool's server is not connected now."""

    kind = "server-unavailable"

    def __init__(self, server: str, reason: str | None) -> None:
        # A reason may be one that nothing but a person can put right.
        again = "when the server is back" if reason else "shortly"
        super().__init__(
            f"The server `{server}` is not connected: {reason or 'it is still starting'}. "
            f"The tool was not run; use another tool, or try again {again}"
        )
        self.server = server
        self.reason = reason


class TurnedAwayError(CallError):
    """The tool's server did not take the call."""

    kind = "turned-away"

    def __init__(self, server: str, reason: str, *, is_barred: bool = False) -> None:
        again = "" if is_barred else ", or try again shortly"
        super().__init__(
            f"The server `{server}` did not take the call: {reason}. "
            f"The tool was not run; use another tool{again}"
        )
        self.server = server
        self.reason = reason


class ServerLostError(CallError):
    """The tool's server went away while it ran the tool."""

    kind = "server-lost"

    def __init__(self, server: str, reason: str | None = None) -> None:
        detail = f": {reason}" if reason else ""
        super().__init__(
            f"The server `{server}` went away during the call{detail}. "
            "The tool may or may not have taken effect: check before calling it again"
        )
        self.server = server
        self.reason = reason


class CallTimeoutError(CallError):
    """The tool's server did not answer in time."""

    kind = "timeout"

    def __init__(self, server: str, seconds: float) -> None:
        super().__init__(
            f"The server `{server}` did not answer within {seconds:g} s. "
            "The tool may still have taken effect: check before calling it again. "
            "`callTimeout` in servers.yaml sets the limit"
        )
        self.server = server
        self.seconds = seconds


class BusyError(CallError):
    """The tool's server has too many calls in hand."""

    kind = "busy"

    def __init__(self, server: str) -> None:
        super().__init__(
            f"The server `{server}` is busy: too many calls are waiting for it. "
            "The tool was not run; try again in a few seconds"
        )
        self.server = server
