"""What belongs to one hop of a message, and is not passed on with the rest."""

from collections.abc import Mapping
from typing import Any

from aggregator.basics.json import as_object

RESERVED_META = ("io.modelcontextprotocol/", "aggregator/")
"""What belongs to one hop, or tells facts of ours, and is never passed on."""


def forwarded(params: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a client's params what belongs to our hop, and tasks of the handshake era."""
    passed = dict(params)
    passed.pop("task", None)
    if passed.pop("_meta", None) is not None:
        meta = {key: value for key, value in own_meta(params).items() if key != "progressToken"}
        if meta:
            passed["_meta"] = meta
    return passed


def stripped(result: dict[str, Any]) -> dict[str, Any]:
    """Take what belonged to the server's hop off a result; the rest passes as it came."""
    if result.get("resultType") == "complete":
        result.pop("resultType")
    if "_meta" in result and (meta := own_meta(result)) != result["_meta"]:
        result["_meta"] = meta
        if not meta:
            del result["_meta"]
    return result


def own_meta(holder: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server or a client says besides, and not what belongs to one hop."""
    meta = as_object(holder.get("_meta"))
    return {key: value for key, value in meta.items() if not key.startswith(RESERVED_META)}
