"""Logging in from inside a client: it shows its person a page of ours, and waits."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject
from aggregator.catalog import Failed, ToolEntry
from aggregator.config import ServerConfig
from aggregator.downstream.inflight import Caller
from aggregator.downstream.login.home import Home
from aggregator.downstream.login.visits import Visit, Visits
from aggregator.downstream.questions import ELICITATION, can_be_asked
from aggregator.errors import NotLoggedInError
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.names import ServerName
from aggregator.toolsearch.wording import counted, listed
from aggregator.upstream.background import Background
from aggregator.upstream.forwarding import Forwarding
from aggregator.upstream.identity import Identity
from aggregator.upstream.login_invitations import Outlook
from aggregator.upstream.request import Request
from aggregator.upstream.seal import Binding

LOGIN_META = "aggregator/login"
"""The `_meta` key of a result that holds the facts of a login."""
COMPLETE = "notifications/elicitation/complete"
MAX_LIST = 400
"""Characters of the names of tools that are there afterwards."""


class LoggingIn:
    """Answers calls of the tools that have a person log in."""

    def __init__(
        self, fleet: Fleet, forwarding: Forwarding, background: Background, home: Home | None
    ) -> None:
        self._fleet = fleet
        self._forwarding = forwarding
        self._visits = None if home is None else Visits(home)
        self._background = background

    def is_for(
        self, capabilities: JsonObject, identity: Identity, is_near: Callable[[], bool]
    ) -> bool:
        """Whether a client can show its person a page that only this machine can open.

        Who does not run us logs nobody in: what others do would go to an account of theirs.
        """
        can_show = can_be_asked(capabilities, ELICITATION, {"mode": "url"})
        return can_show and identity.is_operator and is_near()

    async def answer(self, entry: ToolEntry, request: Request) -> dict[str, Any]:
        """Have a person log in to a server, and say what it offers then.

        Raises:
            CallError: That did not come about.
        """
        server = request.now.config.servers[entry.server]
        state = request.now.catalog.servers[entry.server]
        assert isinstance(state, Failed)  # noqa: S101 - what the tool stands in the catalog for

        async def run(caller: Caller) -> dict[str, Any]:
            return await self._log_in(server, state, caller, request.outlook)

        return await self._forwarding.hold(run, request.caller, _binding(request))

    async def resumed(self, request: Request) -> dict[str, Any] | None:
        """Go on with a login that a request of the modern era has begun, if it is about one.

        Its tool may be gone by now: the login may have come about.

        Raises:
            CallError: It did not.
        """
        if request.params.get("requestState") is None:
            return None
        return await self._forwarding.resumed(request.params, request.caller, _binding(request))

    async def _log_in(
        self, server: ServerConfig, state: Failed, caller: Caller, outlook: Outlook
    ) -> dict[str, Any]:
        problem = await self._visited(server, state, caller)
        if problem is not None:
            raise NotLoggedInError(server.name, problem, state.login or "")
        await self._fleet.until_ready(server.name)
        return _told(outlook(self._fleet.now), server.name)

    async def _visited(self, server: ServerConfig, state: Failed, caller: Caller) -> str | None:
        """Have a person log in, with others that want the same; say what stood in the way."""
        if self._visits is None or self._background.group is None:
            return "the aggregator is about to end"
        visit = self._visits.to(server, state.scope, self._background.group)
        with visit.awaited():
            return await _attend(visit, caller)


async def _attend(visit: Visit, caller: Caller) -> str | None:
    """Show each page that a login leads to, until its end; say what stood in the way."""
    while not (visit.page or visit.is_over):
        await visit.news.wait()
    while not visit.is_over:
        shown, number = visit.page, uuid4().hex
        if (refusal := await _show(visit, caller, number)) is not None:
            visit.decline()
            return refusal
        while visit.page == shown and not visit.is_over:
            await visit.news.wait()
        if caller.era == "handshake":
            caller.notify(COMPLETE, {"elicitationId": number})
    return visit.problem


async def _show(visit: Visit, caller: Caller, number: str) -> str | None:
    """Have a person shown where to log in; say why not, if they are not."""
    host = urlsplit(visit.server.url or "").netloc.rpartition("@")[2]
    params: dict[str, Any] = {
        "mode": "url",
        "message": (
            f"Log in to {visit.server.name} ({host}). The page leads on to {visit.asker}, "
            "who will ask for your password or your consent."
        ),
        "url": visit.page,
    }
    if caller.era == "handshake":
        params["elicitationId"] = number
    try:
        answer = await caller.ask(ELICITATION, params)
    except MCPError as error:
        return f"your client did not show where: {error.message}"
    return None if answer.get("action") == "accept" else "your user did not want to"


def _told(now: Now, server: ServerName) -> dict[str, Any]:
    """Say what a server offers now."""
    state = now.catalog.servers.get(server)
    entries = state.known.entries if state and state.known else ()
    names = f": {listed((each.name for each in entries), MAX_LIST)}" if entries else ""
    text = f"{server}: logged in. It has {counted(len(entries), 'tool')} now{names}."
    facts = {"server": server, "tools": [each.name for each in entries]}
    return {"content": [{"type": "text", "text": text}], "_meta": {LOGIN_META: facts}}


def _binding(request: Request) -> Binding:
    """Return what a login that is begun can be gone on with by, whatever it was called by."""
    return Binding(request.caller.principal, "", "tools/call", "login")
