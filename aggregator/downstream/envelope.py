"""What each request to one server is wrapped in, by the version it speaks."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value, mcp_param_headers

from aggregator.basics.eras import is_modern
from aggregator.basics.json import JsonObject, as_object
from aggregator.basics.tasks import ID, METHODS
from aggregator.downstream.inflight import ClientCall
from aggregator.downstream.transport import Headers

Params = Mapping[str, Any] | None

NAMED_BY = {**NAME_BEARING_METHODS, **dict.fromkeys(METHODS, ID)}
"""Which of its params is repeated as the name of a request, of those that have one."""

Mirrored = Mapping[object, Mapping[tuple[str, ...], str]]
"""Which arguments of each tool are repeated in which header."""

NOTHING_MIRRORED: Mirrored = {}


class Envelope:
    """What a server wants to find around whatever it is asked."""

    def __init__(self, version: str, identity: JsonObject) -> None:
        self._is_modern = is_modern(version)
        self._headers = {"mcp-protocol-version": version}
        self._stamp: JsonObject = {
            types.PROTOCOL_VERSION_META_KEY: version,
            types.CLIENT_INFO_META_KEY: identity,
            types.CLIENT_CAPABILITIES_META_KEY: {},
        }

    def wrap(self, params: Params, number: int, call: ClientCall | None = None) -> Params:
        """Add what the request of this number must carry, for a client's call if it is one."""
        if call is None and not self._is_modern:
            return params
        wrapped = dict(params or {})
        meta = wrapped["_meta"] = dict(as_object(wrapped.get("_meta")))
        if self._is_modern:
            meta |= self._stamp
        if call is not None:
            meta["progressToken"] = number
            if self._is_modern:
                meta |= _on_behalf(call)
        return wrapped

    def headers(
        self, method: str, params: Params, mirrored: Mirrored = NOTHING_MIRRORED
    ) -> Headers:
        """Return what Streamable HTTP repeats of a request in its headers."""
        if not self._is_modern:
            return self._headers
        headers = {**self._headers, "mcp-method": method}
        name = (params or {}).get(NAMED_BY.get(method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = encode_header_value(name)
        if method == "tools/call" and name in mirrored:
            arguments = as_object((params or {}).get("arguments"))
            headers |= mcp_param_headers(mirrored[name], arguments)
        return headers


def _on_behalf(call: ClientCall) -> JsonObject:
    """Say what the client of a call can be asked, and wants to be told."""
    about: dict[str, Any] = {types.CLIENT_CAPABILITIES_META_KEY: call.caller.capabilities}
    if level := call.log_level:
        about[types.LOG_LEVEL_META_KEY] = level
    return about
