"""What a server may ask of clients, and the answer if nobody can be asked."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sized
from typing import Any, NoReturn

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject, as_object, items
from aggregator.basics.rate import Rate
from aggregator.basics.tasks import without_tasks
from aggregator.downstream.inflight import Caller, ClientCall, Notify, WithdrawnError
from aggregator.names import ServerName

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
MAX_OUTSIDE = 20
"""Questions of one server outside of any call that may be open at a time."""

MAX_TOGETHER = 100
"""Questions that one answer of a server may have in the place of a result."""

Outside = Callable[[ServerName, str, JsonObject], Awaitable[dict[str, Any]]]
"""Answers what a server asks outside of any call: `(server, method, params) -> result`."""


async def refuse(_server: ServerName, method: str, _params: JsonObject, /) -> NoReturn:
    """Refuse a question, since nothing says which client it is meant for.

    Raises:
        MCPError: Always.
    """
    hint = "; give it its directories in `args`" if method == ROOTS else ""
    raise MCPError(
        types.INVALID_REQUEST,
        f"`{method}` cannot be attributed to one client: where several share this server, it must "
        "be sent while a call is under way, and on a connection that no other client uses then"
        f"{hint}",
    )


class Questions:
    """Answers what one server asks."""

    def __init__(self, server: ServerName, outside: Outside = refuse) -> None:
        self._server = server
        self._outside = outside
        self._open_outside = 0
        self._rate = Rate(QUESTIONS_AT_ONCE, within=QUESTIONS_WITHIN)
        self._elsewhere = OrderedDict[str, Notify]()

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
        self._count()
        if call is None:
            return await self._ask_outside(method, params or {})
        if not can_be_asked(call.caller.capabilities, method, params or {}):
            return instead(method)
        self._note(params or {}, call.caller)
        try:
            return await call.ask(method, labelled(self._server, method, params or {}))
        except WithdrawnError:
            if method != ROOTS:
                raise
        # Roots are the client's, and not of the call that was under way when it was asked.
        return await self._ask_outside(method, params or {})

    async def _ask_outside(self, method: str, params: JsonObject) -> dict[str, Any]:
        """Ask whoever is there, if that can only be one."""
        if self._open_outside >= MAX_OUTSIDE:
            raise MCPError(types.INVALID_REQUEST, "Too many questions are open already")
        self._open_outside += 1
        try:
            return await self._outside(self._server, method, labelled(self._server, method, params))
        finally:
            self._open_outside -= 1

    def note_refusal(self, error: MCPError, caller: Caller) -> None:
        """Take note of what a server asks by refusing a request until it is done."""
        if error.code == types.URL_ELICITATION_REQUIRED:
            for each in items(as_object(error.data).get("elicitations")):
                self._note(as_object(each), caller)

    def complete(self, params: JsonObject) -> None:
        """Tell who was asked to go elsewhere that the server knows of the end of it."""
        number = params.get("elicitationId")
        notify = self._elsewhere.pop(number, None) if isinstance(number, str) else None
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
    if method != ELICITATION:
        return params
    message = params.get("message")
    return {**params, "message": f"[{server}] {message if isinstance(message, str) else ''}"}


def is_input_required(result: JsonObject) -> bool:
    """Whether a result is not one yet, but asks for something first."""
    return result.get("resultType") == "input_required"


def without_questions(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a server that asks its questions by requests of its own.

    Raises:
        MCPError: It has put one into its result, where nothing would say who asks.
    """
    if is_input_required(result):
        raise MCPError(
            types.INTERNAL_ERROR,
            "The server asked a question in the place of a result, which its version of the "
            "protocol does not allow; it was not passed on",
        )
    return result


def check_number(server: ServerName, questions: Sized) -> None:
    """See to it that a server asks no more at once than anybody could answer.

    Raises:
        MCPError: It does.
    """
    if len(questions) > MAX_TOGETHER:
        raise MCPError(
            types.INTERNAL_ERROR,
            f"The server `{server}` asked {len(questions):,} questions at once, of which at most "
            f"{MAX_TOGETHER} are passed on",
        )


def refusal_labelled(server: ServerName, error: MCPError) -> MCPError:
    """Say in what a server asks by refusing a request which server it is.

    Raises:
        MCPError: It asks too much.
    """
    if error.code != types.URL_ELICITATION_REQUIRED:
        return error
    elicitations = items(as_object(error.data).get("elicitations"))
    check_number(server, elicitations)
    asked = [labelled(server, ELICITATION, as_object(each)) for each in elicitations]
    data = {**as_object(error.data), "elicitations": asked}
    return MCPError(error.code, error.message, data)


def declared(capabilities: JsonObject, era: Era) -> JsonObject:
    """Return of a client's capabilities what can be passed on to servers.

    Who cannot ask for a task by itself has no use for the handle of one.
    """
    if era == "handshake":
        capabilities = without_tasks(capabilities)
    kept = {name: as_object(capabilities[name]) for name in EVERYTHING if name in capabilities}
    if "roots" in kept:
        # Where servers are shared, nobody could ask for the new ones outside of a call.
        kept["roots"] = {}
    extensions = as_object(capabilities.get("extensions"))
    return {**kept, "extensions": extensions} if extensions else kept


def telling_of_roots(capabilities: JsonObject) -> JsonObject:
    """Add to what a client can be asked that servers are told when its roots have changed."""
    return {**capabilities, "roots": {"listChanged": True}}


def askable(capabilities: JsonObject) -> JsonObject:
    """Return of a client's capabilities what servers can be told of several clients at once."""
    return {
        name: _spelled_out(name, capabilities[name]) for name in EVERYTHING if name in capabilities
    }


def joint(clients: list[JsonObject], expected: JsonObject = EVERYTHING) -> JsonObject:
    """Return what at least one of these clients can be asked; what is expected if none is known."""
    if not clients:
        return expected
    found: dict[str, Any] = {}
    for capabilities in clients:
        for name, settings in askable(capabilities).items():
            found[name] = {**found.get(name, {}), **settings}
    return found


def is_limited(told: JsonObject) -> bool:
    """Whether a server that is told this may show less than where no client is known."""
    return any(
        name not in told or settings.keys() - as_object(told[name]).keys()
        for name, settings in EVERYTHING.items()
    )


def _spelled_out(name: str, settings: object) -> JsonObject:
    """Write out that an empty declaration of elicitation means forms."""
    return as_object(settings) or ({"form": {}} if name == "elicitation" else {})
