"""The file: JSON that people read in a diff, sorted, an entry for each tool."""

import json
from typing import Any

from aggregator.catalog.lock.record import Lock, Record, fingerprint

VERSION = 1
"""The version of the form, and of the way a fingerprint is computed."""
MAX_BYTES = 64 * 1024 * 1024
"""Bytes a file may have: three times what ten thousand tools take."""

FACTS = ("instructions", "protocol", "source", "version")
"""What is said of a server beside its tools."""


class LockError(Exception):
    """Why a file is not used: the rest of a sentence that begins with its name."""


class LaterLockError(LockError):
    """A later version of ours wrote it."""


def written(lock: Lock) -> str:
    """Return the text of a file."""
    servers = {name: _block(record) for name, record in lock.items()}
    document = {"lock": VERSION, "servers": servers}
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, default=dict)
    if not _can_be_encoded(text):
        text = json.dumps(document, indent=1, sort_keys=True, default=dict)
    return f"{text}\n"


def check_version(version: object) -> None:
    """Refuse a form that is not known.

    Raises:
        LockError: It is none of ours, or a later one.
    """
    if version is None:
        raise LockError("is no file of `aggregator lock`")
    if type(version) is not int or version != VERSION:
        is_later = type(version) is int and version > VERSION
        raise (LaterLockError if is_later else LockError)(
            f"has the form {json.dumps(version)[:20]}, of which this version knows nothing"
        )


def no_server(name: str) -> LockError:
    """Return what is said of an entry that cannot be one of a server."""
    return LockError(f"has an entry that is no server: {json.dumps(name)[:80]}")


def _block(record: Record) -> dict[str, Any]:
    facts = {key: getattr(record, key) for key in FACTS}
    tools = {name: {**tool, "sha256": fingerprint(tool)} for name, tool in record.tools.items()}
    return {**{key: value for key, value in facts.items() if value}, "tools": tools}


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
