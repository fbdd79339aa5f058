"""What a server is shown with each request: a token from the file, renewed when it is needed.

No browser is ever opened from here, and nothing is renewed that nobody asks for. Several requests
and several processes want the same renewal at the same time, and authorisation servers that see
one refresh token twice take all of them away: so one of them asks, and the others wait and read.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple, Protocol

import anyio

from aggregator.downstream.login.challenge import Challenge, challenge
from aggregator.downstream.login.command import Command
from aggregator.downstream.login.file import LoginFile, LoginFileError, Look
from aggregator.downstream.login.record import Login, with_tokens
from aggregator.downstream.login.renewal import (
    Ask,
    Refused,
    Reply,
    Unavailable,
    outcome,
    renewal,
)
from aggregator.downstream.login.shared_renewal import SharedRenewal
from aggregator.downstream.transport import Remedy, Undelivered

logger = logging.getLogger(__name__)

REST = 5.0
"""Seconds for which an authorisation server that did not answer is left alone."""

Send = Callable[[Ask], Awaitable[Reply]]
"""Posts a form to an authorisation server; raises `RenewalError` if there is no answer."""


class RenewalError(Exception):
    """No token could be had for now, in words that fit behind a colon."""


class Shown(NamedTuple):
    """What a server is shown, if anything is."""

    token: str | None


class Bearer(Protocol):
    """Whoever shows a server by what it may be used."""

    def at_hand(self) -> Shown | None:
        """Return what to show, unless that has to be waited for."""
        ...

    async def token(self) -> str | None:
        """Return what to show, if there is anything.

        Raises:
            RenewalError: There is nothing for now.
        """
        ...

    async def instead_of(
        self, refused: str | None, status: int, headers: Mapping[str, str], /
    ) -> str | None:
        """Return what to show instead of what was refused; the same, or nothing, if that is all.

        Raises:
            RenewalError: There is nothing for now.
        """
        ...

    def explain(self, status: int, headers: Mapping[str, str]) -> Undelivered | None:
        """Say of a refusal what a person can do about it; nothing if that is not a login."""
        ...


class Grant(Protocol):
    """By what another login is had without asking a person."""

    @property
    def needs_person(self) -> bool:
        """Whether the first has to be had by one."""
        ...

    def can_renew(self, login: Login | None) -> bool:
        """Whether it is worth trying."""
        ...

    async def renew(self, login: Login | None, /) -> Login | Refused | Unavailable:
        """Have another login in the place of one."""
        ...


class RefreshGrant:
    """Renews a login by its refresh token."""

    needs_person = True

    def __init__(self, send: Send, clock: Callable[[], float] = time.time) -> None:
        self._send = send
        self._clock = clock

    def can_renew(self, login: Login | None) -> bool:
        """Whether there is a refresh token that has not been refused."""
        return login is not None and login.is_renewable

    async def renew(self, login: Login | None) -> Login | Refused | Unavailable:
        """Show the refresh token and return what it gives."""
        if login is None or login.refresh_token is None:
            return Refused("no refresh token")
        answer = outcome(await self._send(renewal(login)))
        if isinstance(answer, Refused | Unavailable):
            return answer
        return with_tokens(login, answer, self._clock())


class Credentials:
    """The login to one server, as it is now."""

    def __init__(
        self,
        file: LoginFile,
        grant: Grant,
        command: Command,
        *,
        shared_renewal: SharedRenewal | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._shared_renewal = shared_renewal
        """What other machines know of the same login, if they can be asked."""
        self._grant = grant
        self._command = command
        self._clock = clock
        self._turn = anyio.Lock()
        self._look: Look | None = None
        self._login: Login | None = None
        self._problem: str | None = None
        """Why what is in the file cannot be used."""
        self._resting: Resting | None = None

    def at_hand(self) -> Shown | None:
        """Return what to show to the server, unless it has to be renewed."""
        login = self._current()
        return None if self._is_wanting(login) else Shown(self._shown(login))

    async def token(self) -> str | None:
        """Return what to show to the server, if there is anything.

        Raises:
            RenewalError: It has to be renewed, and cannot be for now.
        """
        login = self._current()
        if self._is_wanting(login):
            login = await self._renew(login)
        return self._shown(login)

    def _is_wanting(self, login: Login | None) -> bool:
        """Whether another login is to be had before this one is shown."""
        is_due = login is None or login.is_due(self._clock())
        return is_due and self._grant.can_renew(login)

    async def instead_of(
        self, refused: str | None, status: int, _headers: Mapping[str, str]
    ) -> str | None:
        """Return another token than the one that the server has just refused, if there is one.

        Raises:
            RenewalError: There may be one, and it cannot be had for now.
        """
        if status != HTTPStatus.UNAUTHORIZED:
            return None
        login = self._current()
        if login is not None and login.access_token == refused and self._grant.can_renew(login):
            login = await self._renew(login)
        found = self._shown(login)
        return None if found == refused else found

    def explain(self, status: int, headers: Mapping[str, str]) -> Undelivered | None:
        """Say of a refusal what a person can do about it; nothing if that is not a login."""
        said = challenge(headers)
        if not self._grant.needs_person:
            return _explain_to_machine(status, said)
        if status == HTTPStatus.FORBIDDEN and said.wants_more:
            return self._wants_more(said)
        if status != HTTPStatus.UNAUTHORIZED:
            return None
        command = self._command.line()
        return Undelivered(
            f"{self._reason(said)}: {self._command.advice(said)}",
            may_have_run=False,
            is_barred=True,
            remedy=Remedy(command, self._until_changed),
        )

    def _wants_more(self, said: Challenge) -> Undelivered:
        named = f' (scope "{said.scope}")' if said.scope else ""
        line = self._command.line(said.scope)
        reason = f"it wants more rights for this{named}: its user has to run `{line}`"
        remedy = Remedy(line, self._until_changed, said.scope)
        return Undelivered(reason, may_have_run=False, remedy=remedy)

    def _reason(self, said: Challenge) -> str:
        login = self._login
        if self._problem is not None:
            return f"its login cannot be used: {self._problem}"
        if login is None:
            return "its user has to log in" if said.is_bearer else "it answered 401"
        if login.lost is not None:
            return f"its login has expired or was revoked ({login.lost})"
        if not login.is_valid(self._clock()):
            return "its login has expired and cannot be renewed"
        return "it does not accept the login that it has (401)"

    async def _until_changed(self) -> None:
        await self._file.until_changed(self._look or ())

    def _current(self) -> Login | None:
        """Return the login as it is in the file, which any process may have replaced."""
        look = self._file.look()
        if look != self._look:
            # Taken before the content is read, so that a change meanwhile is seen next time.
            self._look, self._resting = look, None
            try:
                self._login, self._problem = self._file.read(), None
            except LoginFileError as error:
                self._login, self._problem = None, str(error)
                logger.error("%s", error)  # noqa: TRY400 - nobody is helped by where it was raised
        return self._login

    def _shown(self, login: Login | None) -> str | None:
        return login.access_token if login and login.is_valid(self._clock()) else None

    async def _renew(self, stale: Login | None) -> Login | None:
        """Have another login in the place of one, unless somebody else just has."""
        async with self._turn:
            if (login := self._current()) != stale:
                return login
            if self._resting is not None and self._resting.until > self._clock():
                return self._going_on(stale, self._resting.reason)
            # What was asked for and not kept is lost: with it goes the old refresh token.
            with anyio.CancelScope(shield=True):
                return await self._renew_for_all(stale)

    async def _renew_for_all(self, stale: Login | None) -> Login | None:
        try:
            async with self._file.turn():
                login = self._current()
                return login if login != stale else await self._ask_for_all(stale)
        except (LoginFileError, RenewalError) as error:
            return self._rest(stale, str(error))

    async def _ask_for_all(self, stale: Login | None) -> Login | None:
        """Have another login as another machine has had it, or have one for all of them."""
        if self._shared_renewal is None or stale is None or stale.refresh_token is None:
            return await self._ask(stale)
        async with self._shared_renewal.turn(stale) as known:
            if known != stale and not known.is_due(self._clock()):
                self._keep(known)
                return known
            renewed = await self._ask(known)
            if renewed is not None and renewed.lost is None:
                await self._shared_renewal.renewed(known, renewed)
            return renewed

    async def _ask(self, stale: Login | None) -> Login | None:
        """Ask for another login and keep what comes of it; the turn is ours."""
        answer = await self._grant.renew(stale)
        if isinstance(answer, Unavailable):
            raise RenewalError(answer.reason)
        if isinstance(answer, Refused):
            logger.warning("its login cannot be renewed any more: %s", answer)
            if stale is None:
                raise RenewalError(f"the authorisation server refuses: {answer}")
            answer = stale._replace(lost=answer.error)
        self._keep(answer)
        return answer

    def _keep(self, login: Login) -> None:
        self._login = login
        try:
            self._file.write(login)
        except LoginFileError as error:
            # It is good for as long as this process lives; the next one has to ask again.
            logger.error("its login is renewed, but not kept: %s", error)  # noqa: TRY400
        self._look = self._file.look()

    def _rest(self, login: Login | None, reason: str) -> Login | None:
        self._resting = Resting(self._clock() + REST, reason)
        return self._going_on(login, reason)

    def _going_on(self, login: Login | None, reason: str) -> Login | None:
        """Go on with a token that is still good; without one, the request has to wait."""
        if self._shown(login) is not None:
            return login
        raise RenewalError(f"its login could not be renewed for now: {reason}")


def _explain_to_machine(status: int, said: Challenge) -> Undelivered | None:
    """Say of a refusal what is to be changed in the file, since nobody logs in."""
    if status == HTTPStatus.FORBIDDEN and said.wants_more:
        named = f' ("{said.scope}")' if said.scope else ""
        reason = f"it wants more rights for this: add them{named} to `scopes` under its `oauth`"
        return Undelivered(reason, may_have_run=False)
    if status != HTTPStatus.UNAUTHORIZED:
        return None
    reason = "it does not accept the token that its client was given (401): see its `oauth`"
    return Undelivered(reason, may_have_run=False, is_barred=True)


class Resting(NamedTuple):
    """Until when nobody is asked again, and why."""

    until: float
    reason: str
