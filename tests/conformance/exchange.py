"""One request to the fixture, and asking its client something in the way of its era."""

import base64
import hmac
import json
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

KEY = b"a key that only this fixture knows"

_TYPES: dict[str, Any] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


class InputNeededError(Exception):
    """The request cannot be answered before its client has answered something."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


class Exchange:
    """What a tool or prompt may know of the request it answers."""

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self._ctx = ctx
        self.params: dict[str, Any] = dict(ctx.params or {})
        self.is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.session = ctx.session

    @property
    def arguments(self) -> dict[str, Any]:
        given: dict[str, Any] | None = self.params.get("arguments")
        return given or {}

    def can(self, capability: str) -> bool:
        """Whether the client has declared that it can be asked this kind of thing."""
        known = self.session.client_capabilities
        return known is not None and getattr(known, capability) is not None

    def knows(self, extension: str) -> bool:
        """Whether the client has declared an extension, which it can in the modern era alone."""
        known = self.session.client_capabilities
        extensions = None if known is None else known.extensions
        return self.is_modern and extension in (extensions or {})

    async def log(self, text: str) -> None:
        await self.session.send_log_message(  # pyright: ignore[reportDeprecated]
            "info", text, related_request_id=self._ctx.request_id
        )

    async def ask(self, key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask one thing."""
        return (await self.ask_all({key: {"method": method, "params": params}}))[key]

    async def ask_all(
        self, questions: dict[str, dict[str, Any]], state: Any = None
    ) -> dict[str, dict[str, Any]]:
        """Ask several things at once."""
        if not self.is_modern:
            return {key: await self._request(**each) for key, each in questions.items()}
        given: dict[str, Any] = self.params.get("inputResponses") or {}
        if not all(isinstance(given.get(key), dict) for key in questions):
            raise InputNeededError(needed(questions, state))
        return {key: given[key] for key in questions}

    def state(self) -> Any:
        """Return the state that an earlier round has left with the client."""
        token = self.params.get("requestState")
        if token is None:
            return None
        try:
            signature, body = base64.b64decode(token, validate=True).split(b".", 1)
        except ValueError:
            raise MCPError(types.INVALID_PARAMS, "That is no state of ours") from None
        if not hmac.compare_digest(signature, _signature(body)):
            raise MCPError(types.INVALID_PARAMS, "The state was changed on its way")
        return json.loads(body)

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request, result = _TYPES[method]
        answer = await self.session.send_request(
            request.model_validate({"method": method, "params": params}, by_name=False),
            result,
            metadata=ServerMessageMetadata(related_request_id=self._ctx.request_id),
        )
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def needed(questions: dict[str, dict[str, Any]], state: Any) -> dict[str, Any]:
    """Make a result that asks for something."""
    result = {"resultType": "input_required", "inputRequests": questions}
    return result if state is None else {**result, "requestState": sealed(state)}


def sealed(state: Any) -> str:
    """Write a state so that a change to it is seen."""
    body = json.dumps(state).encode()
    return base64.b64encode(_signature(body) + b"." + body).decode()


def _signature(body: bytes) -> bytes:
    return hmac.new(KEY, body, "sha256").hexdigest().encode()
