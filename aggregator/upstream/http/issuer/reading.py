"""What a token says of itself, before anybody has looked whether it is true.

Whatever is wrong with it without a look at any key is found here, so that nobody makes us ask an
issuer for keys by what it cannot have signed.
"""

import json
import math
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from aggregator.basics.glyphs import on_one_line
from aggregator.basics.json import items

ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
"""How a token may be signed: never by what we would know, too, and never not at all."""
MAX_TOKEN_BYTES = 16 * 1024
MAX_KEY_NAME = 256
MAX_SUBJECT = 256
LEEWAY = 60.0
"""Seconds by which the clocks of two machines may differ."""

_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_KINDS = (None, "jwt", "at+jwt", "application/at+jwt")
"""What a token may say that it is; others of the same issuer are for other ends."""


class Claim(NamedTuple):
    """What a token says, of which nothing is believed yet."""

    algorithm: str
    key: str | None
    """The name of the key that it is said to be signed with."""


class Flaw(NamedTuple):
    """Why a token opens nothing."""

    reason: str
    """In words for whoever shows it."""
    advice: str
    """For whoever runs us."""


NO_TOKEN = Flaw("The token is not one that is accepted here", "it has a token of another kind")
UNSIGNED = Flaw(
    "The token is not signed in a way that is accepted here",
    f"its token is not signed with {', '.join(ALGORITHMS)}",
)
UNKNOWN_KEY = Flaw(
    "The token is signed with a key that its issuer does not have",
    "its token is signed with a key that the issuer does not publish",
)
FORGED = Flaw("The signature of the token is wrong", "the signature of its token is wrong")
EXPIRED = Flaw("The token has expired", "its token has expired; clients ask for another")
EARLY = Flaw(
    "The token is not valid yet", "its token is not valid yet: see whether a clock is wrong"
)
NOBODY = Flaw("The token does not say whose it is", "its token has no `sub`")


def read(token: str, issuer: str, audiences: tuple[str, ...], now: float) -> Claim | Flaw:
    """Return which key a token is said to be signed with, unless it is of no use anyway."""
    if len(token) > MAX_TOKEN_BYTES or not _FORM.fullmatch(token):
        return NO_TOKEN
    header, claims = (_object(part) for part in token.split(".")[:2])
    if header is None or claims is None:
        return NO_TOKEN
    claim = _claim(header)
    if isinstance(claim, Flaw):
        return claim
    return _misdirected(claims, issuer, audiences) or _untimely(claims, now) or claim


def _claim(header: Mapping[str, Any]) -> Claim | Flaw:
    algorithm, key, kind = (header.get(name) for name in ("alg", "kid", "typ"))
    if algorithm not in ALGORITHMS:
        return UNSIGNED
    # What must be understood is understood by nobody here.
    if "crit" in header or (kind.lower() if isinstance(kind, str) else kind) not in _KINDS:
        return NO_TOKEN
    if key is not None and not (isinstance(key, str) and len(key) <= MAX_KEY_NAME):
        return UNKNOWN_KEY
    return Claim(algorithm, key)


def _misdirected(claims: Mapping[str, Any], issuer: str, audiences: tuple[str, ...]) -> Flaw | None:
    """Say why what a token claims opens nothing here, even if it is true."""
    if claims.get("iss") != issuer:
        advice = f"its token is from another issuer; `http.issuer` is `{issuer}`"
        return Flaw("The token is from an issuer that is not believed here", advice)
    if not _is_meant(claims.get("aud"), audiences):
        advice = f"its token is for others; `http.audience` is `{audiences[0]}`"
        return Flaw("The token is meant for others", advice)
    subject = claims.get("sub")
    if not isinstance(subject, str) or len(subject) > MAX_SUBJECT or not on_one_line(subject):
        # Whom nobody can see would be written down as nobody, which is whoever runs us.
        return NOBODY
    return None


def _is_meant(audience: object, ours: tuple[str, ...]) -> bool:
    named = (audience,) if isinstance(audience, str) else items(audience)
    return any(isinstance(each, str) and each in ours for each in named)


def _untimely(claims: Mapping[str, Any], now: float) -> Flaw | None:
    ends = moment(claims.get("exp"))
    if ends is None or ends + LEEWAY <= now:
        return EXPIRED
    begins = [claims[name] for name in ("nbf", "iat") if name in claims]
    is_begun = all((at := moment(each)) is not None and at - LEEWAY <= now for each in begins)
    return None if is_begun else EARLY


def moment(value: object) -> float | None:
    """Return a moment as a token has it, in seconds since the epoch; nothing if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _object(part: str) -> Mapping[str, Any] | None:
    try:
        text = urlsafe_b64decode(part + "=" * (-len(part) % 4))
        read: object = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return {**read} if isinstance(read, dict) else None


def _refuse(_text: str) -> NoReturn:
    raise ValueError
