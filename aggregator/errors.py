"""The errors a caller may want to catch.

AggregatorError
├── ConfigError                 servers.yaml cannot be used as written      (.path, .problem, …)
├── ElsewhereError              another of several processes has it     (.what, .replica, .facts)
└── CallError                   a tool call that could not be completed
    ├── UnknownToolError        no server offers it                         (.name)
    ├── UnknownOfferError       there is no such prompt or skill            (.name)
    ├── UnknownResultError      no result is kept under that name           (.name)
    ├── InvalidCallError        its arguments cannot be what was meant
    ├── NotReadOnlyError        it may change something, and must not       (.name)
    ├── WithheldError           it is not as it was approved                (.name, .server)
    ├── RefusedCallError        its server answered with an error           (.code, .data)
    ├── ServerUnavailableError  its server is not connected now     (.server, .reason, .login)
    ├── NotLoggedInError        its user did not log in             (.server, .reason, .login)
    ├── TurnedAwayError         its server did not take the call    (.server, .reason, .login)
    ├── ServerLostError         its server went away during the call        (.server, .reason)
    ├── CallTimeoutError        its server did not answer in time           (.server, .seconds)
    ├── WrongEraError           its server could not ask its question       (.server)
    ├── UnauditedError          it could not be written down, and must be   (.reason)
    ├── CrowdedError            too many clients have a process of its own  (.server)
    ├── OverLimitError          whoever calls has made too many calls       (.seconds)
    └── BusyError               its server has too many calls in hand       (.server)

Each class builds its own message from facts and keeps the facts as attributes.
The messages are read by models: they say what is wrong and what to do next.
Programs read the facts: a result that tells of an error has them in its `_meta`.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import ClassVar

from aggregator.basics.glyphs import on_one_line

ERROR_META = "aggregator/error"
"""The `_meta` key of a result that holds the facts of an error of ours."""

MAX_NAME = 200
"""Characters that are shown of a name that nothing has."""
MAX_QUOTED = 2000
"""Characters of a server's own words that become part of a message."""


def closest(names: Sequence[str]) -> str:
    """Say which names are most like one that does not exist, after "the"."""
    verb = "is" if len(names) == 1 else "are"
    return f"closest {verb} " + ", ".join(f"`{each}`" for each in names)


class AggregatorError(Exception):
    """Anything this package raises for a caller to catch."""


class ConfigError(AggregatorError):
    """A `servers.yaml` that cannot be used as written."""

    def __init__(
        self,
        path: str,
        problem: str,
        *,
        line: int | None = None,
        hint: str | None = None,
        is_of_file: bool = False,
    ) -> None:
        where = f"`{path}`" if line is None else f"`{path}`, line {line}"
        # What is said of the file as a whole makes a sentence with its name.
        super().__init__(f"{where} {problem}" if is_of_file else f"{where}: {problem}")
        self.path = path
        self.problem = problem
        self.line = line
        self.hint = hint
        self.others: tuple[ConfigError, ...] = ()
        """What else is wrong, in the order of the file."""

    def tell_of(self, others: Sequence["ConfigError"]) -> None:
        """Stand for other mistakes of the same file too."""
        self.others = tuple(others)


class ElsewhereError(AggregatorError):
    """What a request is about cannot move, and is in another of the processes that serve us."""

    def __init__(self, what: str, replica: str) -> None:
        super().__init__(
            f"{what[:1].upper()}{what[1:]} is at the replica `{replica}`, and this is another: "
            "send the request again, or begin anew if that one is gone"
        )
        self.what = what
        self.replica = replica

    @property
    def facts(self) -> Mapping[str, object]:
        """What programs should know."""
        return {"kind": "elsewhere", "replica": self.replica, "retry": True}


class CallError(AggregatorError):
    """A tool call that could not be completed."""

    kind: ClassVar[str] = "failed"
    """What programs tell it from others by."""
    server: str | None = None
    """The server that the tool belongs to, as far as that is known."""
    login: str | None = None
    """The command by which its user can log in there, if that is all it needs."""

    @property
    def facts(self) -> Mapping[str, object]:
        """What programs read instead of the message."""
        server = {} if self.server is None else {"server": self.server}
        return {"kind": self.kind, **server, **_remedy(self.login)}


class UnknownToolError(CallError):
    """No server offers the tool."""

    kind = "unknown-tool"

    def __init__(
        self,
        name: str,
        suggestions: Sequence[str] = (),
        note: str = "",
        *,
        search: str = "ToolSearch",
    ) -> None:
        message = f"There is no tool `{on_one_line(name[:MAX_NAME])}`"
        if suggestions:
            message += f"; the {closest(suggestions)}"
        message += f". {note}" if note else f". Use `{search}` to find the right name"
        super().__init__(message)
        self.name = name


class UnknownOfferError(CallError):
    """No server offers the prompt or the skill, and neither does the configuration."""

    kind = "unknown-offer"

    def __init__(
        self, kind: str, name: str, suggestions: Sequence[str] = (), *, search: str = "ToolSearch"
    ) -> None:
        message = f"There is no {kind} `{on_one_line(name[:MAX_NAME])}`"
        if suggestions:
            message += f"; the {closest(suggestions)}"
        super().__init__(f'{message}. Ask `{search}` for "kind:{kind}" to see which there are')
        self.name = name


class UnknownResultError(CallError):
    """Nothing is kept under the name, at least not for whoever asks."""

    kind = "unknown-result"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"No result `{on_one_line(name[:80])}` is kept for you: it was not read for too long, "
            "or made room for others. Call the tool again, if that may be done twice"
        )
        self.name = name


class InvalidCallError(CallError):
    """The call cannot be what was meant; says what to send instead."""

    kind = "invalid-arguments"


class NotReadOnlyError(CallError):
    """The tool may change something, and was called in a way that must not."""

    kind = "not-read-only"

    def __init__(
        self, name: str, *, called: str = "CallReadOnlyTool", instead: str = "CallTool"
    ) -> None:
        super().__init__(
            f"`{called}` does not call `{name}`, since it may change something. "
            f"Use `{instead}` instead"
        )
        self.name = name


class WithheldError(CallError):
    """The tool is not as it was approved, and is not called before somebody has looked."""

    kind = "withheld"

    def __init__(self, name: str, server: str, how: str, *, look: str, approve: str) -> None:
        super().__init__(
            f"`{name}` is withheld, since it is not as it was approved: it {how}. Only your user "
            f"can allow it: `{look}` shows what is different, and `{approve}` approves it"
        )
        self.name = name
        self.server = server


class RefusedCallError(CallError):
    """The tool's server answered with an error of the protocol."""

    kind = "server-error"

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(f"The call failed with error {code}: {_quoted(message)}")
        self.code = code
        self.data = data

    @property
    def facts(self) -> Mapping[str, object]:
        """What the server answered."""
        return {**super().facts, "code": self.code, "data": self.data}


class ServerUnavailableError(CallError):
    """The tool's server is not connected now."""

    kind = "server-unavailable"

    def __init__(self, server: str, reason: str | None, *, login: str | None = None) -> None:
        reason = reason and on_one_line(reason)
        # A reason may be one that nothing but a person can put right.
        again = "when the server is back" if reason else "shortly"
        again = "once your user has logged in" if login else again
        super().__init__(
            f"The server `{server}` is not connected: {reason or 'it is still starting'}. "
            f"The tool was not run; use another tool, or try again {again}"
        )
        self.server = server
        self.reason = reason
        self.login = login


class NotLoggedInError(CallError):
    """The user of a server was asked to log in to it, and has not."""

    kind = "needs-login"

    def __init__(self, server: str, reason: str, login: str) -> None:
        reason = on_one_line(reason).removesuffix(".")
        super().__init__(
            f"Nobody has logged in to `{server}`: {reason}. "
            f"Ask your user whether to try again, or to run: {login}"
        )
        self.server = server
        self.reason = reason
        self.login = login


class TurnedAwayError(CallError):
    """The tool's server did not take the call."""

    kind = "turned-away"

    def __init__(
        self, server: str, reason: str, *, is_barred: bool = False, login: str | None = None
    ) -> None:
        reason = on_one_line(reason)
        again = "" if is_barred else ", or try again shortly"
        again = ", or try again once your user has logged in" if login else again
        super().__init__(
            f"The server `{server}` did not take the call: {reason}. "
            f"The tool was not run; use another tool{again}"
        )
        self.server = server
        self.reason = reason
        self.login = login


class ServerLostError(CallError):
    """The tool's server went away while it ran the tool."""

    kind = "server-lost"

    def __init__(self, server: str, reason: str | None = None) -> None:
        reason = reason and on_one_line(reason)
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


class WrongEraError(CallError):
    """The tool's server could not ask its client a question, for the era it was connected in."""

    kind = "wrong-era"

    def __init__(self, server: str, *, is_mended: bool) -> None:
        after = (
            "It is connected again in the handshake era now: "
            "check whether the tool took effect in part, then call it again"
            if is_mended
            else "It will be connected in the handshake era when it next starts, since what it "
            "holds would be lost now; `era: handshake` under it in servers.yaml restarts it at once"
        )
        super().__init__(
            f"The server `{server}` wanted to ask the user something, which it can do "
            f"in the handshake era of the protocol only. {after}"
        )
        self.server = server


class UnauditedError(CallError):
    """Nothing is called that cannot be written down."""

    kind = "not-audited"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The tool was not run, since no call can be written down now: {reason}. "
            "Your user has to put that right; try again then"
        )
        self.reason = reason


class CrowdedError(CallError):
    """The tool's server has a process for each client, and there are too many."""

    kind = "crowded"

    def __init__(self, server: str, number: int) -> None:
        super().__init__(
            f"The server `{server}` has a process of its own for each client, and {number} such "
            "processes run already. The tool was not run; try again when other clients have left"
        )
        self.server = server


class OverLimitError(CallError):
    """Whoever calls has made as many calls as it may."""

    kind = "over-limit"

    def __init__(
        self, seconds: float, *, per_minute: int | None = None, in_flight: int | None = None
    ) -> None:
        self.seconds = max(1, ceil(seconds))
        if per_minute is not None:
            message = (
                f"You have made {per_minute} {_calls(per_minute)} in the last minute, which is as "
                f"many as you may. Nothing was run; wait {self.seconds} s, and go on with fewer"
            )
        else:
            message = (
                f"{in_flight} {_calls(in_flight)} of yours {'is' if in_flight == 1 else 'are'} "
                "under way, which is as many as you may have at a time. "
                "Nothing was run; wait for the answer to one of them, then call again"
            )
        super().__init__(message)

    @property
    def facts(self) -> Mapping[str, object]:
        """When it is worth trying again."""
        return {**super().facts, "retryAfter": self.seconds}


def _calls(number: int | None) -> str:
    return "call" if number == 1 else "calls"


class BusyError(CallError):
    """The tool's server has too many calls in hand."""

    kind = "busy"

    def __init__(self, server: str) -> None:
        super().__init__(
            f"The server `{server}` is busy: too many calls are waiting for it. "
            "The tool was not run; try again in a few seconds"
        )
        self.server = server


def _remedy(login: str | None) -> Mapping[str, object]:
    return {} if login is None else {"kind": "needs-login", "login": {"command": login}}


def _quoted(words: str) -> str:
    """Return what a server says so that it cannot be taken for what we say."""
    line = on_one_line(words[: MAX_QUOTED + 1])
    return line if len(words) <= MAX_QUOTED else f"{line[:MAX_QUOTED]}…"
