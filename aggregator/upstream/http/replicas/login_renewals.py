"""What became of logins that several machines have: by which each was renewed, and who does so now.

An authorisation server that sees one refresh token twice takes all of them away. So what a token
was renewed by is kept under the digest of that token, sealed with the key that replicas share: who
has the same token finds it, and nobody is given another person's login. Without a store, each
machine has to have a login of its own.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256

import anyio

from aggregator.downstream.login.credentials import RenewalError
from aggregator.downstream.login.record import Login, as_text, from_text
from aggregator.upstream.http.replicas.mail import Box

KEPT = 30 * 86_400.0
"""Seconds for which a machine that was off finds out what became of its login."""
RENEWING = 30
"""Seconds after which another may renew what one has begun to, that has gone without a word."""
PATIENCE = 20.0
"""Seconds to wait for whoever renews a login now: it does not take longer."""
TRYING = 0.1
"""Seconds between two attempts to have one's turn."""
MOST = 1000
"""Renewals that are followed: more than there are of a token that lives for an hour."""


class LoginRenewals:
    """One replica's part of it."""

    def __init__(self, box: Box, name: str) -> None:
        self._box = box
        self._name = name

    @asynccontextmanager
    async def turn(self, login: Login) -> AsyncGenerator[Login, None]:
        """Be the only one to renew a login for the length of the block, as it is by now.

        Raises:
            RenewalError: Another does not come to an end, or nobody says what became of it.
        """
        login, key = await self._begun(login)
        try:
            yield login
        finally:
            with anyio.CancelScope(shield=True):
                await self._box.release(key, self._name)

    async def renewed(self, login: Login, by: Login) -> None:
        """Tell the others by what a login was renewed."""
        await self._box.put(_key("login", login), as_text(by), KEPT)

    async def _begun(self, login: Login) -> tuple[Login, str]:
        with anyio.move_on_after(PATIENCE):
            while True:
                login = await self._newest(login)
                key = _key("renewing", login)
                # Where nobody can say whose turn it is, it is as without a store.
                if await self._box.claim(key, self._name, RENEWING) in (None, self._name):
                    if await self._is_newest(login, key):
                        return login, key
                else:
                    await anyio.sleep(TRYING)
        raise RenewalError("another replica renews it, and does not come to an end")

    async def _is_newest(self, login: Login, key: str) -> bool:
        """Whether a login is the last, now that it is our turn; where it is not, let others."""
        is_newest = False
        try:
            # It may have been renewed by who had its turn before.
            is_newest = await self._newest(login) == login
        finally:
            if not is_newest:
                await self._box.release(key, self._name)
        return is_newest

    async def _newest(self, login: Login) -> Login:
        """Return what became of a login, as far as others have told."""
        for _ in range(MOST):
            try:
                (text,) = await self._box.learn(_key("login", login))
            except TimeoutError:
                # It may have been renewed: who shows it again would lose it for all.
                raise RenewalError("the store does not say what became of it") from None
            heir = _read(text)
            if heir is None or not _is_heir(heir, login):
                return login
            login = heir
        return login


def _key(kind: str, login: Login) -> str:
    return f"{kind}:{sha256((login.refresh_token or '').encode()).hexdigest()}"


def _read(text: str | None) -> Login | None:
    try:
        return from_text(text) if text else None
    except (TypeError, ValueError):
        return None


def _is_heir(heir: Login, login: Login) -> bool:
    """Whether a login was had by another; a refresh token may stay the same."""
    same = (login.url, login.issuer, login.token_endpoint, login.client.id)
    if (heir.url, heir.issuer, heir.token_endpoint, heir.client.id) != same:
        return False
    return heir.refresh_token != login.refresh_token or heir.obtained_at > login.obtained_at
