"""A login as a value: what it was given by, how long it lasts, and what a renewal makes of it."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from aggregator.basics.json import is_plain_object, items

MARGIN = 30.0
"""Seconds before its end in which a token is renewed, so that none ends on its way."""
SHARE = 0.1
"""How much of a token's life that margin may be: some live for seconds."""


class Client(NamedTuple):
    """What an authorisation server knows us as."""

    id: str
    secret: str | None = None
    method: str | None = None
    """How we prove who we are at the token endpoint."""
    redirect_uris: tuple[str, ...] = ()
    is_registered: bool = False
    """Whether we registered it ourselves, and so may register another."""

    def __repr__(self) -> str:
        return f"<Client {self.id}>"


class Login(NamedTuple):
    """By what we may use one server, and how that is renewed."""

    url: str
    issuer: str
    """The authorisation server that gave it, and the only one that is ever shown it."""
    token_endpoint: str
    client: Client
    access_token: str
    obtained_at: float
    """By the clock of this machine, as all times here."""
    expires_at: float | None = None
    refresh_token: str | None = None
    scope: str = ""
    resource: str | None = None
    """What the token is for, if that is to be said again."""
    revocation_endpoint: str | None = None
    lost: str | None = None
    """Why it cannot be renewed any more, in the word of the authorisation server."""

    def __repr__(self) -> str:
        return f"<Login to {self.url} by {self.issuer}>"

    def is_valid(self, now: float) -> bool:
        """Whether the access token may still be good."""
        return self.expires_at is None or now < self.expires_at

    def is_due(self, now: float) -> bool:
        """Whether it is time for another access token."""
        if self.expires_at is None:
            return False
        margin = min(MARGIN, (self.expires_at - self.obtained_at) * SHARE)
        return now >= self.expires_at - margin

    @property
    def is_renewable(self) -> bool:
        """Whether another access token can be had without a person."""
        return self.refresh_token is not None and self.lost is None


class Tokens(NamedTuple):
    """What a token endpoint gives."""

    access_token: str
    expires_in: float | None = None
    refresh_token: str | None = None
    scope: str | None = None

    def __repr__(self) -> str:
        return "<Tokens>"


def with_tokens(login: Login, tokens: Tokens, now: float) -> Login:
    """Return a login with what it was renewed with; what is not said anew stays as it was."""
    return login._replace(
        access_token=tokens.access_token,
        obtained_at=now,
        expires_at=None if tokens.expires_in is None else now + tokens.expires_in,
        refresh_token=tokens.refresh_token or login.refresh_token,
        scope=login.scope if tokens.scope is None else tokens.scope,
        lost=None,
    )


def as_text(login: Login) -> str:
    """Return a login as it is kept."""
    return json.dumps({**login._asdict(), "client": login.client._asdict()}, indent=1)


def from_text(text: str) -> Login:
    """Return the login that a text keeps.

    Raises:
        ValueError: It keeps none.
    """
    data: object = json.loads(text)
    if not is_plain_object(data) or not is_plain_object(data.get("client")):
        raise ValueError("it holds no login")
    own, client = _known(data, Login._fields), _known(data["client"], Client._fields)
    texts = (own.get("url"), own.get("issuer"), own.get("token_endpoint"), client.get("id"))
    times = (own.get("obtained_at"), own.get("expires_at") or 0.0)
    is_whole = all(isinstance(each, str) for each in (*texts, own.get("access_token")))
    if not is_whole or not all(isinstance(each, int | float) for each in times):
        raise ValueError("it holds half a login")
    client["redirect_uris"] = tuple(map(str, items(client.get("redirect_uris"))))
    own["client"] = Client(**client)
    return Login(**own)


def _known(data: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """Return what is known of some data; a newer version may keep more."""
    return {name: data[name] for name in fields if name in data}
