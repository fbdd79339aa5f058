"""Session ids that say what was settled when the session was opened, sealed.

By such an id whoever has the same keys can open the session again. It is no credential: what it
says of its owner is held against whoever shows it.
"""

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from mcp_types import ClientCapabilities, Implementation, InitializeRequestParams
from pydantic import ValidationError

from aggregator.basics.json import JsonObject, as_object, items
from aggregator.downstream.questions import declared
from aggregator.upstream.http.session import Introduction
from aggregator.upstream.http.sessions import Owner
from aggregator.upstream.replica import Replica
from aggregator.upstream.seal import Cipher, ForeignStateError, read, written

LIFETIME = 7 * 86_400.0
"""Seconds after which a client has to introduce itself again."""
SESSION = "session"
"""What ids of sessions are sealed for."""
MAX_PASS = 4096
"""Characters that an id may have: much more is more than gateways take for all headers."""
MAX_NAME = 128
"""Characters of what a client calls itself that go into an id."""
MAX_CAPABILITIES = 1024
"""Bytes of what a client can be asked; of one that says more, extensions are left out."""


class Pass(NamedTuple):
    """What a session can be opened by, wherever it was opened first."""

    introduction: Introduction
    owner: Owner
    home: str
    """Which of the replicas has opened it first."""


def write_pass(
    introduction: Introduction,
    owner: Owner,
    replica: Replica,
    cipher: Cipher,
    clock: Callable[[], float] = time.time,
) -> str:
    """Return the id of a new session."""
    client = introduction.client
    said = {
        "by": replica.name,
        "until": int(clock() + LIFETIME),
        "version": introduction.version,
        "client": [client.client_info.name[:MAX_NAME], client.client_info.version[:MAX_NAME]],
        "can": _brief(client.capabilities.model_dump(by_alias=True, exclude_none=True)),
        "owner": [owner.profile, owner.grant],
    }
    return written(cipher.close(SESSION, json.dumps(said, separators=(",", ":")).encode()))


def read_pass(key: str, cipher: Cipher, clock: Callable[[], float] = time.time) -> Pass | None:
    """Return what the id of a session says; nothing if it is none of ours, or too old."""
    if len(key) > MAX_PASS:
        return None
    try:
        said = as_object(json.loads(cipher.open(SESSION, read(key))))
        return _read(said) if clock() < said["until"] else None
    except (ForeignStateError, ValidationError, KeyError, TypeError, ValueError):
        return None


def _read(said: JsonObject) -> Pass:
    name, version = items(said["client"])
    info = Implementation.model_validate({"name": name, "version": version})
    client = InitializeRequestParams(
        protocol_version=said["version"],
        capabilities=ClientCapabilities.model_validate(said["can"]),
        client_info=info,
    )
    return Pass(Introduction(client, said["version"]), Owner(*said["owner"]), said["by"])


def _brief(capabilities: dict[str, Any]) -> JsonObject:
    """Return of what a client can be asked as much as an id has room for."""
    kept = declared(capabilities, "handshake")
    if len(json.dumps(kept)) > MAX_CAPABILITIES:
        return {name: dict[str, Any]() for name in kept if name != "extensions"}
    return kept
