"""One line of JSON for each call, in a file that several processes may write to at once.

It is begun anew once it is large; whoever writes holds it meanwhile, so that no other takes its
place at the same moment.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from aggregator.basics.json import JsonObject, is_array, is_object
from aggregator.config.audit import Audit
from aggregator.config.profile import plain
from aggregator.records.events import CallEnded, Origin
from aggregator.records.segments import append_lines
from aggregator.secrecy import Redaction

KEPT = 5
"""Files before the one that is written to."""
PATIENCE = 5.0
"""Seconds that another process may hold the file."""
LOOK = 0.01
"""Seconds between two tries to hold it."""
# Without a reader, a pipe would not even be opened.
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
MAX_DEPTH = 64
"""Levels of arguments that are looked into."""


class Entry(NamedTuple):
    """What is to be written of a call, without its result, which may be large."""

    event: CallEnded
    size: int
    """Bytes of the result."""
    arguments: JsonObject | str | None
    """As far as they are wanted."""
    weight: int
    """Bytes of these."""


class Written(NamedTuple):
    """How many calls are in the file."""

    calls: int
    is_loss_told: bool
    problem: OSError | None = None
    """Why the others are not."""


class AuditFile:
    """The file that calls are written to."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def entry(self, event: CallEnded) -> Entry:
        """Return what is to be written of a call."""
        content, bare = event.content, event._replace(content=None)
        if content is None:
            return Entry(bare, 0, None, 0)
        size = 0 if content.result is None else _size(content.result)
        match self._audit.arguments:
            case "none":
                return Entry(bare, size, None, 0)
            case "hash":
                digest = f"sha256:{sha256(_text(content.arguments)).hexdigest()}"
                return Entry(bare, size, digest, len(digest))
            case "full":
                return Entry(bare, size, content.arguments, _size(content.arguments))

    def write(self, entries: Sequence[Entry], lost: int, redact: Redaction) -> Written:
        """Append a line for each call; without any, see that it could be done."""
        told = [{"at": _moment(time.time()), "lost": lost}] if lost else []
        lines = [*told, *(_line(entry, redact) for entry in entries)]
        number = 0
        try:
            for _written in self._append([_text(line) for line in lines]):
                number += 1
        except OSError as error:
            return Written(max(0, number - len(told)), number >= len(told), error)
        return Written(len(entries), is_loss_told=True)

    def _append(self, lines: Sequence[bytes]) -> Iterator[None]:
        """Append lines, and yield after each.

        Raises:
            OSError: The next could not be.
        """
        path = self._audit.file
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            descriptor = os.open(path, FLAGS, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise OSError(0, "it is not a file")
                _close_to_others(descriptor)
                _hold(descriptor)
                if not _is_still(path, descriptor):
                    continue
                if os.fstat(descriptor).st_size < self._audit.max_bytes:
                    for line in lines:
                        append_lines(descriptor, [line])
                        yield
                    return
                _rotate(path)
            finally:
                os.close(descriptor)


def _line(entry: Entry, redact: Redaction) -> dict[str, Any]:
    event, arguments = entry.event, entry.arguments
    line: dict[str, Any] = {
        "at": _moment(event.at),
        "client": event.origin.client,
        "session": event.origin.session,
        **_whom(event.origin),
        "server": event.server or event.meant,
        # What does not exist is whatever somebody wrote.
        "tool": event.tool if event.server else redact(event.tool),
        "through": event.through,
        "outcome": event.outcome,
        "ms": round(event.seconds * 1000, 1),
        "bytes": entry.size,
        "trace": event.trace,
    }
    if isinstance(arguments, str):
        line["arguments"] = arguments
    elif arguments is not None:
        line["arguments"] = _redacted(arguments, redact, MAX_DEPTH)
    return line


def _whom(origin: Origin) -> dict[str, str]:
    """Return who called, where it is not whoever runs us."""
    told = {"identity": origin.identity, "issuer": origin.issuer, "profile": plain(origin.profile)}
    return {key: value for key, value in told.items() if value}


def _text(value: object) -> bytes:
    """Return the same bytes for equal values, in whatever order they came."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict).encode()


def _size(result: object) -> int:
    text = json.dumps(result, separators=(",", ":"), ensure_ascii=False, default=dict)
    return len(text.encode(errors="surrogatepass"))


def _redacted(value: Any, redact: Redaction, depth: int) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return redact(value)
    if depth and is_object(value):
        return {redact(key): _redacted(each, redact, depth - 1) for key, each in value.items()}
    if depth and is_array(value):
        return [_redacted(each, redact, depth - 1) for each in value]
    return value if depth else "…"


def _moment(at: float) -> str:
    milliseconds = int(at * 1000) % 1000
    return time.strftime(f"%Y-%m-%dT%H:%M:%S.{milliseconds:03}Z", time.gmtime(at))


def _close_to_others(descriptor: int) -> None:
    """Let only its owner read a file that was there before, if that is us."""
    status = os.fstat(descriptor)
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
        os.fchmod(descriptor, 0o600)


def _hold(descriptor: int) -> None:
    """Be the only one who writes to a file, until it is closed.

    Raises:
        TimeoutError: Another holds it for too long.
    """
    until = time.monotonic() + PATIENCE
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > until:
            raise TimeoutError("another process holds it")
        time.sleep(LOOK)


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether a file that was opened is the one that has its name now."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _rotate(path: Path) -> None:
    """Make room for a new file; the oldest that are kept leaves."""
    for number in range(KEPT, 0, -1):
        before = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
        with suppress(FileNotFoundError):
            before.replace(path.with_name(f"{path.name}.{number}"))
