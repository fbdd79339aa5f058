"""Who somebody is by the word of an issuer: a token, held against its keys."""

import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import anyio

from aggregator.basics.glyphs import on_one_line
from aggregator.basics.json import items
from aggregator.basics.signals import Signal
from aggregator.config.http import Issuer
from aggregator.upstream.http.issuer.keeper import Keeper
from aggregator.upstream.http.issuer.keyset import KeySet, verified
from aggregator.upstream.http.issuer.reading import FORGED, LEEWAY, UNKNOWN_KEY, Flaw, moment, read
from aggregator.upstream.http.issuer.source import fetch_keys
from aggregator.upstream.identity import Identity

MAX_REMEMBERED = 4096
"""Tokens of which it is remembered whose they are."""
MAX_CLIENT = 256
MARK = 12
"""Characters that tell a name from one that looks the same."""
CLIENT = ("client_id", "azp", "cid", "appid")
"""Where issuers say to which program a token was given."""

Mark = tuple[bytes, tuple[str, ...]]
"""What stands for a token, and for what it may be meant."""


class Remembered(NamedTuple):
    """What a token was found to say, and by which keys."""

    identity: Identity
    keys: KeySet


class Verifying:
    """Says whose tokens are, for as long as the file names the issuer."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._issuer: Issuer | None = None
        self._keeper: Keeper | None = None
        self._known: dict[Mark, Remembered] = {}
        self._arrivals: list[Keeper] = []
        self._arrived = Signal()

    async def run(self) -> None:
        """Fetch keys whenever somebody wants them."""
        async with anyio.create_task_group() as group:
            while True:
                while self._arrivals:
                    group.start_soon(self._arrivals.pop().run)
                await self._arrived.wait()

    async def identity(
        self, token: str, issuer: Issuer, audiences: tuple[str, ...]
    ) -> Identity | Flaw | None:
        """Say whose a token is, or why nobody's; nothing if that cannot be found out now."""
        keeper, now = self._kept(issuer), self._clock()
        mark = sha256(token.encode("latin-1", "replace")).digest(), audiences
        known, keys = self._known.get(mark), keeper.current
        if known is not None and known.keys is keys and not _is_over(known.identity, now):
            return known.identity
        claim = read(token, issuer.name, audiences, now)
        if isinstance(claim, Flaw):
            return claim
        keys = await keeper.keys_for(claim)
        if keys is None:
            return None
        key = keys.find(claim)
        if key is None:
            return UNKNOWN_KEY
        try:
            claims = verified(token, key, issuer.name, audiences)
        except ValueError:
            return FORGED
        found = identity_by(claims, issuer.name)
        if issuer == self._issuer:
            self._remember(mark, Remembered(found, keys))
        return found

    def _kept(self, issuer: Issuer) -> Keeper:
        """Return what has the keys of an issuer; of one that the file has changed, others."""
        if self._keeper is None or issuer != self._issuer:
            self._known.clear()
            before, self._issuer = self._issuer, issuer
            is_same = before and (before.name, before.ca_file) == (issuer.name, issuer.ca_file)
            if self._keeper is None or not is_same:
                if self._keeper is not None:
                    self._keeper.retire()
                self._keeper = Keeper(issuer.name, partial(fetch_keys, issuer))
                self._arrivals.append(self._keeper)
                self._arrived.send()
        return self._keeper

    def _remember(self, mark: Mark, found: Remembered) -> None:
        if len(self._known) >= MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[mark] = found


def identity_by(claims: Mapping[str, Any], issuer: str) -> Identity:
    """Return who it is that a token speaks of, whose word has been found true."""
    subject: str = claims["sub"]
    client = next(filter(None, (_name(claims.get(name)) for name in CLIENT)), "")
    scopes = frozenset(_words(claims.get("scope")) | _words(claims.get("scp")))
    holder = _digest(issuer, subject)
    return Identity(
        _shown(subject, holder),
        _digest(issuer, subject, client),
        holder,
        issuer=issuer,
        scopes=scopes,
        expires=moment(claims["exp"]),
    )


def _shown(subject: str, mark: str) -> str:
    """Return somebody's name as it is read; who only looks like another is told apart by a mark.

    So is who has a name like one with a mark.
    """
    shown = on_one_line(subject)
    is_as_read = shown == subject and _MARKED.search(subject) is None
    return shown if is_as_read else f"{shown} ({mark[:MARK]})"


_MARKED = re.compile(rf" \([0-9a-f]{{{MARK}}}\)\Z", re.ASCII)


def _is_over(identity: Identity, now: float) -> bool:
    return identity.expires is None or identity.expires + LEEWAY <= now


def _name(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= MAX_CLIENT else ""


def _words(value: object) -> set[str]:
    """Return scopes, as one text or as a list of them."""
    texts = [value] if isinstance(value, str) else items(value)
    return {word for text in texts if isinstance(text, str) for word in text.split()}


def _digest(*parts: str) -> str:
    # With its length before each, no two lists of parts are written alike.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
