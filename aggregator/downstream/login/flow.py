"""Logging in, from the first refusal to the record: the part that needs a person."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import anyio

from aggregator.basics.json import JsonObject
from aggregator.basics.signals import Signal
from aggregator.catalog import Failed, Pending, Ready, ServerState
from aggregator.config import ServerConfig
from aggregator.config.oauth import OAuth
from aggregator.downstream.eras import Eras
from aggregator.downstream.http.reach import address, opened
from aggregator.downstream.http.tokens import carrier
from aggregator.downstream.introduction import Ourselves
from aggregator.downstream.login.callback import Callback, LoginError, open_callback
from aggregator.downstream.login.credentials import RenewalError
from aggregator.downstream.login.file import LoginFile, LoginFileError
from aggregator.downstream.login.interview import Interview, Show
from aggregator.downstream.login.record import Login
from aggregator.downstream.questions import refuse
from aggregator.downstream.server import Downstream
from aggregator.memory import NoMemory
from aggregator.names import ServerName

OURSELVES = Ourselves({"name": "mcp-tool-aggregator", "version": "0"}, dict)


class Done(NamedTuple):
    """A login that is kept."""

    login: Login
    tools: int | None = None
    """How many tools the server has for it; none if it did not say."""
    problem: str = ""
    """Why it did not."""


async def log_in(
    server: ServerConfig,
    file: LoginFile,
    *,
    show: Show,
    meet: Callable[[Callback], None] = lambda _callback: None,
    scopes: tuple[str, ...] = (),
    warn: Callable[[str], None] = lambda _text: None,
    clock: Callable[[], float] = time.time,
) -> Done:
    """Have a person log in to a server, and keep that once it is complete.

    `meet` is told where the browser comes back to, for who wants to bring the answer themselves;
    `scopes` are asked for beside those of the login before.

    Raises:
        LoginError: It did not come about; the login before is as it was.
    """
    oauth = server.oauth or OAuth()
    known = _known(file, warn)
    before = known.client.redirect_uris if known and known.client.is_registered else ()
    async with open_callback(server.name, oauth.redirect_uri, before) as callback:
        meet(callback)
        interview = Interview(
            server.url or "",
            oauth,
            callback,
            carry=carrier(address(server)),
            show=show,
            scopes=_wanted(oauth, known, scopes),
            known=known,
            warn=warn,
            clock=clock,
        )
        state = await _connected(server, interview)
        if isinstance(state, Ready) and interview.login is None:
            state = await _asked_for(server, interview)
    return await _kept(interview, file, state)


async def _asked_for(server: ServerConfig, interview: Interview) -> ServerState:
    """Log in to a server that has not asked for it: some do only when a tool is called."""
    try:
        await interview.begin()
    except RenewalError as error:
        return Failed(str(error))
    return await _connected(server, interview)


async def _kept(interview: Interview, file: LoginFile, state: ServerState) -> Done:
    login = interview.login
    if login is None:
        reason = "it does not ask for a login" if isinstance(state, Ready) else _why(state)
        raise interview.problem or LoginError(reason)
    try:
        async with file.turn():
            file.write(login)
    except LoginFileError as error:
        raise LoginError(str(error)) from error
    if isinstance(state, Ready):
        return Done(login, len(state.entries))
    return Done(login, problem=str(interview.problem or _why(state)))


def _why(state: ServerState) -> str:
    reason = state.reason if isinstance(state, Pending | Failed) else None
    return reason or "it did not answer"


async def _connected(server: ServerConfig, interview: Interview) -> ServerState:
    """Do as a client does until the server has listed its tools, or does not want to."""
    first = _First()
    patient = replace(server, connect_timeout=24 * 3600.0, problem=None, start="eager")
    way = opened(patient, replace(address(server), credentials=interview))
    downstream = Downstream(
        patient, way, first, ours=OURSELVES, eras=Eras(NoMemory()), jitter=lambda: 1.0
    )
    state: ServerState = Failed("it did not answer")
    async with anyio.create_task_group() as group:
        group.start_soon(downstream.run)
        state = await first.settled()
        group.cancel_scope.cancel()
    return state


class _First:
    """Waits for the first state that says something."""

    asked = staticmethod(refuse)

    def __init__(self) -> None:
        self._state: ServerState | None = None
        self._came = Signal()

    def reported(self, server: ServerName, state: ServerState) -> None:  # noqa: ARG002
        if self._state is None and not (isinstance(state, Pending) and state.reason is None):
            self._state = state
            self._came.send()

    def updated(self, server: ServerName, uri: str) -> None:
        """Nobody waits for that."""

    def logged(self, server: ServerName, params: JsonObject) -> None:
        """Nobody waits for that."""

    async def settled(self) -> ServerState:
        while self._state is None:
            await self._came.wait()
        return self._state


def _known(file: LoginFile, warn: Callable[[str], None]) -> Login | None:
    try:
        return file.read()
    except LoginFileError as error:
        warn(f"the login before cannot be used: {error}")
        return None


def _wanted(oauth: OAuth, known: Login | None, scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Return what to ask for: what is configured, or with more than before, that as well."""
    if not scopes:
        return oauth.scopes
    granted = known.scope.split() if known else []
    return tuple(dict.fromkeys((*granted, *oauth.scopes, *scopes)))
