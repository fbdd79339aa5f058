"""What a server may ask of the client behind a call, and the answer if it cannot be asked."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.downstream.inflight import Caller, ClientCall, Notify
from aggregator.json import JsonObject, as_object, items
from aggregator.names import ServerName
from aggregator.rate import Rate

ELICITATION = "elicitation/create"
SAMPLING = "sampling/createMessage"
ROOTS = "roots/list"

CAPABILITY_OF = {ELICITATION: "elicitation", SAMPLING: "sampling", ROOTS: "roots"}
"""What a client must have declared to be asked each of these."""

EVERYTHING: JsonObject = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""What we say of a client that we do not know yet."""

MAX_ELSEWHERE = 256
"""Elicitations at other places whose end is waited for at a time."""

QUESTIONS_AT_ONCE = 20
"""Questions a server may ask in any two seconds."""
QUESTIONS_WITHIN = 2.0


class Questions:
    """Answers what one server asks."""

    def __init__(self, server: ServerName) -> None:
        self._server = server
        self._rate = Rate(QUESTIONS_AT_ONCE, within=QUESTIONS_WITHIN)
        self._elsewhere = OrderedDict[object, Notify]()

    async def answer(
        self, call: ClientCall | None, method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Pass a question on to the client it is meant for.

        Raises:
            MCPError: It is meant for nobody, or the client cannot or will not answer.
        """
        if method == "ping":
            return {}
        if method not in CAPABILITY_OF:
            raise MCPError(types.METHOD_NOT_FOUND, f"`{method}` is not served here")
        if call is None:
            raise MCPError(
                types.INVALID_REQUEST,
                f"`{method}` cannot be attributed to the call of one client: it must be sent "
                "while a call is under way, and on a connection that no other client uses then",
            )
        self._count()
        if not can_be_asked(call.caller.capabilities, method, params or {}):
            return instead(method)
        self._note(params or {}, call.caller)
        return await call.ask(method, labelled(self._server, method, params or {}))

    def note_refusal(self, error: MCPError, caller: Caller) -> None:
        """Take note of what a server asks by refusing a request until it is done."""
        if error.code == types.URL_ELICITATION_REQUIRED:
            for each in items(as_object(error.data).get("elicitations")):
                self._note(as_object(each), caller)

    def complete(self, params: JsonObject) -> None:
        """Tell who was asked to go elsewhere that the server knows of the end of it."""
        notify = self._elsewhere.pop(params.get("elicitationId"), None)
        if notify is not None:
            notify("notifications/elicitation/complete", params)

    def _note(self, params: JsonObject, caller: Caller) -> None:
        number = params.get("elicitationId")
        if isinstance(number, str) and params.get("mode", "url") == "url":
            self._elsewhere[number] = caller.notify
        while len(self._elsewhere) > MAX_ELSEWHERE:
            self._elsewhere.popitem(last=False)

    def _count(self) -> None:
        if not self._rate.admits(anyio.current_time()):
            raise MCPError(types.INVALID_REQUEST, "Too many questions in too short a time")


def can_be_asked(capabilities: JsonObject, method: str, params: JsonObject) -> bool:
    """Whether a client has said that it can be asked this."""
    declared = capabilities.get(CAPABILITY_OF.get(method, ""))
    if not isinstance(declared, Mapping):
        return False
    if method == ELICITATION and params.get("mode") == "url":
        return "url" in declared
    # An empty declaration of elicitation has always meant forms.
    return method != ELICITATION or not declared or "form" in declared


def instead(method: str) -> dict[str, Any]:
    """Answer in the place of a client that cannot be asked.

    Raises:
        MCPError: There is no such answer.
    """
    if method == ELICITATION:
        return {"action": "decline"}
    raise MCPError(types.INVALID_REQUEST, f"The client of this call does not support `{method}`")


def labelled(server: ServerName, method: str, params: JsonObject) -> JsonObject:
    """Say in the text of an elicitation which server asks."""
    message = params.get("message")
    if method != ELICITATION or not isinstance(message, str):
        return params
    return {**params, "message": f"[{server}] {message}"}


def refusal_labelled(server: ServerName, error: MCPError) -> MCPError:
    """Say in what a server asks by refusing a request which server it is."""
    if error.code != types.URL_ELICITATION_REQUIRED:
        return error
    asked = [
        labelled(server, ELICITATION, as_object(each))
        for each in items(as_object(error.data).get("elicitations"))
    ]
    data = {**as_object(error.data), "elicitations": asked}
    return MCPError(error.code, error.message, data)


def declared(capabilities: JsonObject) -> JsonObject:
    """Return of a client's capabilities what can be passed on to servers."""
    kept = {name: as_object(capabilities[name]) for name in EVERYTHING if name in capabilities}
    if "roots" in kept:
        # That they changed is not passed on: which servers have asked for them is not known.
        kept["roots"] = {}
    extensions = {
        name: settings
        for name, settings in as_object(capabilities.get("extensions")).items()
        if name != TASKS
    }
    return {**kept, "extensions": extensions} if extensions else kept


TASKS = "io.modelcontextprotocol/tasks"
"""The extension whose handles we cannot carry from one connection to another."""


def joint(clients: list[JsonObject]) -> JsonObject:
    """Return what at least one of these clients can be asked; everything if none is known."""
    if not clients:
        return EVERYTHING
    found: dict[str, Any] = {}
    for capabilities in clients:
        for name in EVERYTHING:
            if name in capabilities:
                found[name] = {**found.get(name, {}), **_spelled_out(name, capabilities[name])}
    return found


def _spelled_out(name: str, settings: object) -> JsonObject:
    """Write out that an empty declaration of elicitation means forms."""
    return as_object(settings) or ({"form": {}} if name == "elicitation" else {})
