"""What is counted of each event, as one line of JSON; nothing of what was asked or answered."""

import json
import os
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from aggregator.basics.json import is_plain_object
from aggregator.exposure import tokens_listed, tokens_unlisted
from aggregator.records.events import Answer, CallEnded, ListServed, Searched
from aggregator.secrecy import Redaction

Line = dict[str, Any]


def lines_of(
    events: Sequence[CallEnded | Searched | ListServed], lost: int, config: Path, redact: Redaction
) -> list[bytes]:
    """Return what is counted of events of one configuration; `lost` are those that are missing."""
    which = file_mark(config)
    lines = [_line(event, redact) for event in events]
    if lost:
        lines.append({"at": lines[-1]["at"], "event": "lost", "count": lost})
    return [_written({"file": which, **line}) for line in lines]


def adopted(lines: Iterable[object], config: Path) -> list[bytes]:
    """Return lines that others have counted of the same configuration, as those of our own file."""
    which = file_mark(config)
    return [_written({**line, "file": which}) for line in map(_parsed, lines) if "at" in line]


def file_mark(config: Path) -> str:
    """Return what stands for a configuration in each line."""
    return sha256(os.fsencode(config.absolute())).hexdigest()[:12]


def _parsed(text: object) -> Line:
    try:
        line: object = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return line if is_plain_object(line) else {}


def _written(line: Line) -> bytes:
    # With escapes, no text breaks a line.
    return json.dumps(line, separators=(",", ":")).encode()


def _line(event: CallEnded | Searched | ListServed, redact: Redaction) -> Line:
    line: Line = {"at": round(event.at, 3), "session": event.origin.session}
    if event.origin.profile:
        line["profile"] = event.origin.profile
    match event:
        case CallEnded():
            known = {"server": event.server, "tool": event.label} if event.server else {}
            if event.meant:
                known = {"server": event.meant}
            milliseconds = round(event.seconds * 1000, 1)
            return {**line, "event": "call", **known, "outcome": event.outcome, "ms": milliseconds}
        case Searched():
            answers = [_answer(each, redact) for each in event.answers]
            paged = {"offset": event.offset} if event.offset else {}
            return {**line, "event": "search", "answers": answers, "tokens": event.tokens, **paged}
        case ListServed():
            # Of servers that are not there, it is not known by how much a list would be longer.
            missing = len(event.catalog.pending)
            catalog = event.catalog
            of = tokens_unlisted(catalog) if catalog.entries or not missing else None
            weight = {"tokens": tokens_listed(event.tools, catalog), "of": of}
            return {**line, "event": "list", **weight, **({"missing": missing} if missing else {})}


def _answer(answer: Answer, redact: Redaction) -> list[Any]:
    others = [answer.others] if answer.others else []
    return [redact(answer.query), list(answer.found), *others]
