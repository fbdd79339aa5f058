"""How another access token is asked for, and what the answer means."""

import base64
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote, urlencode

from aggregator.basics.glyphs import on_one_line
from aggregator.basics.json import is_plain_object
from aggregator.downstream.login.record import Client, Login, Tokens

MAX_QUOTED = 200
"""Characters of an authorisation server's own words that become part of a sentence."""
LONGEST = 10 * 365 * 86400.0
"""Seconds that a token may be said to live and be believed."""

_PASSING = frozenset({"temporarily_unavailable", "server_error", "slow_down"})
"""Errors that say nothing about what was asked."""
_REFUSING = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class Ask(NamedTuple):
    """A form to be posted to an authorisation server."""

    url: str
    headers: Mapping[str, str]
    form: Mapping[str, str]

    @property
    def body(self) -> bytes:
        """The form as it is sent."""
        return urlencode(self.form).encode()

    def __repr__(self) -> str:
        return f"<Ask {self.url}>"


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    date: str | None = None
    """What time it is over there."""

    def __repr__(self) -> str:
        return f"<Reply {self.status}>"


class Refused(NamedTuple):
    """The authorisation server will not, now or later."""

    error: str
    words: str = ""

    def __str__(self) -> str:
        return f"{self.error}: {self.words}" if self.words else self.error


class Unavailable(NamedTuple):
    """There was no answer worth the name; nothing is known to have changed."""

    reason: str


Outcome = Tokens | Refused | Unavailable


def renewal(login: Login) -> Ask:
    """Return what renews a login."""
    form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token or ""}
    if login.resource is not None:
        form["resource"] = login.resource
    return asked(login.token_endpoint, login.client, form)


def revocation(login: Login, token: str, kind: str) -> Ask | None:
    """Return what ends a token, if its authorisation server has a way to."""
    if login.revocation_endpoint is None:
        return None
    form = {"token": token, "token_type_hint": kind}
    return asked(login.revocation_endpoint, login.client, form)


def asked(url: str, client: Client, form: Mapping[str, str]) -> Ask:
    """Return a form in the name of a client, proven as it was agreed on."""
    headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
    form = {**form, "client_id": client.id}
    if client.secret is not None and client.method == "client_secret_basic":
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif client.secret is not None and client.method != "none":
        form["client_secret"] = client.secret
    return Ask(url, headers, form)


def outcome(reply: Reply) -> Outcome:
    """Read what a token endpoint says."""
    data = _parsed(reply.body)
    if reply.status in (HTTPStatus.OK, HTTPStatus.CREATED):
        return _tokens(data) or Unavailable("its answer holds no token")
    error = data.get("error")
    if reply.status in _REFUSING and isinstance(error, str) and error not in _PASSING:
        return Refused(quoted(error), quoted(data.get("error_description", "")))
    return Unavailable(f"it answered {reply.status}")


def quoted(words: object) -> str:
    """Return what an authorisation server says so that it cannot pass for what we say."""
    text = words if isinstance(words, str) else ""
    line = on_one_line(text[: MAX_QUOTED + 1])
    return line if len(text) <= MAX_QUOTED else f"{line[:MAX_QUOTED]}…"


def _parsed(body: bytes) -> dict[str, object]:
    try:
        data: object = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return data if is_plain_object(data) else {}


def _tokens(data: Mapping[str, object]) -> Tokens | None:
    token, kind = data.get("access_token"), data.get("token_type", "Bearer")
    if not isinstance(token, str) or not _is_sendable(token):
        return None
    if not isinstance(kind, str) or kind.lower() != "bearer":
        return None
    refresh, scope = data.get("refresh_token"), data.get("scope")
    return Tokens(
        token,
        _seconds(data.get("expires_in")),
        refresh if isinstance(refresh, str) and refresh else None,
        scope if isinstance(scope, str) else None,
    )


def _is_sendable(token: str) -> bool:
    """Whether a token can stand in a header without becoming another."""
    return bool(token) and token.isascii() and token.isprintable() and " " not in token


def _seconds(value: object) -> float | None:
    """Return how long a token lives, also where that is written as a text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value[:12])
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return min(float(value), LONGEST)
