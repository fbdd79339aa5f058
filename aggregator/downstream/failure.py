"""How a connection to a server, or the attempt at one, came to its end, in words."""

import errno
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import anyio

from aggregator.basics.frozen import frozen
from aggregator.downstream.exchange import REQUEST_FAILURES
from aggregator.downstream.introduction import LinkLostError
from aggregator.downstream.stdio.process import SpawnError
from aggregator.downstream.transport import Line, Remedy, Undelivered, UndeliveredError
from aggregator.errors import CallError, ServerLostError, TurnedAwayError
from aggregator.secrecy import Redaction

logger = logging.getLogger(__name__)

FAILURES = (
    *REQUEST_FAILURES,
    OSError,
    TimeoutError,
    LinkLostError,
    ValueError,
    anyio.BrokenResourceError,
)
"""What a server can do to us. Anything else is a bug of ours and must be seen."""

LAST_WORDS = 20
"""Lines of standard error that are kept of a server that is gone."""

MAX_REASON = 4000
"""Characters of a reason that anybody reads."""
MAX_LOOKED_AT = 64 * 1024
"""Characters that are looked at of how an error describes itself, which may be a server's words."""
SHOWN_CHARACTERS = 300
"""Characters of one line that become part of a reason."""

_ERROR = re.compile(
    r"(?i:\b\w*(?:error|exception)(?: \[\w+\])?:)|\bERROR\b|(?i:\b(?:fatal|panic(?:ked)?)\b)"
    r"|\bnpm (?:ERR!|error) \d+ [\w ]+ - "
)
"""How lines look that say what went wrong."""

_NOISE = re.compile(
    r"(?:\s|\\t)+at |Node\.js v\d|npm (?:ERR!|error) A complete log|npm notice|[\s\W]*$",
    re.IGNORECASE,
)
"""How lines begin that say nothing: stack frames, versions, mere brackets."""


@frozen
class Failure:
    """One end of a connection, or of the attempt at one."""

    reason: str
    ready_for: float | None = None
    """Seconds the server had been ready, `None` if it never was."""
    is_hopeless: bool = False
    """Whether trying again is pointless until something changes."""
    retry_after: float = 0.0
    """Seconds it asked to be left alone."""
    last_words: tuple[str, ...] = ()
    """The last lines of its standard error."""
    remedy: Remedy | None = None
    """What a person can do about it, if that is to log in."""

    def with_words(self, lines: Sequence[Line]) -> "Failure":
        """Add what the server said last, which often says more than how it ended."""
        said = [line for line in lines if line.text.strip()][-LAST_WORDS:]
        if not said:
            return self
        telling = [line for line in said if not line.is_beside]
        reason = f"{self.reason}; {_quote(telling_line(telling))}" if telling else self.reason
        return replace(self, reason=reason, last_words=tuple(map(str, said)))


def telling_line(lines: Sequence[Line]) -> Line:
    """Return the line that says most of why: the last that tells of an error, or else the last."""
    worth = [line for line in lines if not _NOISE.match(line.text)] or list(lines)
    ends = _ends_of_tracebacks(worth)
    errors = [line for at, line in enumerate(worth) if at in ends or _ERROR.search(line.text)]
    return (errors or worth)[-1]


def _ends_of_tracebacks(lines: Sequence[Line]) -> set[int]:
    """Return where Python says what was raised: the first line after the frames."""
    ends: set[int] = set()
    inside = False
    for at, line in enumerate(lines):
        if line.text.startswith("Traceback "):
            inside = True
        elif inside and not line.text[0].isspace():
            ends.add(at)
            inside = False
    return ends


def _quote(line: Line) -> str:
    """Say where a server said what it said last."""
    words = shortened(line.text.strip())
    if line.is_noise:
        return f"it wrote `{words}` to standard output instead of messages"
    return f"its last words: {words}"


def shortened(text: str) -> str:
    """Cut what is too long to be part of a reason."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def explain(error: BaseException, connect_timeout: float) -> Failure:
    """Say in words what stood in the way of a connection."""
    if isinstance(error, UndeliveredError):
        why = error.undelivered
        return Failure(
            why.reason,
            # Without a person, the next attempt would be refused like this one.
            is_hopeless=why.is_barred or why.remedy is not None,
            retry_after=why.retry_after,
            remedy=why.remedy,
        )
    if isinstance(error, TimeoutError):
        return Failure(f"it was not ready within {connect_timeout:g} s")
    return Failure(in_words(error), is_hopeless=_is_hopeless(error))


def _is_hopeless(error: BaseException) -> bool:
    """Whether it will be the same next time: what cannot be run today cannot be run tomorrow."""
    cause = error.__cause__ if isinstance(error, SpawnError) else error
    if isinstance(cause, OSError) and cause.errno == errno.ENOEXEC:
        return True
    return isinstance(cause, FileNotFoundError | PermissionError | NotADirectoryError)


def most_telling(failures: BaseExceptionGroup[Exception]) -> Exception:
    """Return the failure that says most: the deepest first one that is not just a broken pipe."""
    leaves = list(_leaves(failures))
    telling = [each for each in leaves if not isinstance(each, anyio.BrokenResourceError)]
    return (telling or leaves)[0]


def in_words(error: BaseException) -> str:
    """Put an error into words that fit behind a server's name."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    return first_line(error)


def first_line(error: BaseException) -> str:
    """Return how an error describes itself, in a line; its class if it does not."""
    text = str(error)[:MAX_LOOKED_AT].strip().splitlines()
    return text[0] if text else type(error).__name__


def _leaves(failures: BaseExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for each in failures.exceptions:
        found.extend(_leaves(each) if isinstance(each, BaseExceptionGroup) else [each])
    return found


def shown(reason: str, redact: Redaction) -> str:
    """Return as much of a reason as anybody reads, without what was given in confidence."""
    return redact.beginning(reason, MAX_REASON)


def log_bug(server: str, bugs: BaseExceptionGroup[Exception]) -> Failure:
    """Lose a server that we cannot handle; why is in the log, under a number."""
    number = uuid4().hex[:12]
    logger.error("internal error %s", number, exc_info=bugs, extra={"server": server})
    return Failure(f"the aggregator could not handle it (error {number}; its log says why)")


def undelivered(server: str, call: Undelivered, redact: Redaction) -> CallError:
    """Say to the caller what its transport says of a call."""
    reason = shown(call.reason, redact)
    if call.may_have_run:
        return ServerLostError(server, reason)
    login = call.remedy.command if call.remedy else None
    return TurnedAwayError(server, reason, is_barred=call.is_barred, login=login)
