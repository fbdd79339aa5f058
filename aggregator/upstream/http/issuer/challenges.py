"""What somebody is told who is not let in, and where an issuer is named: RFC 6750 and RFC 9728."""

from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from aggregator.config.http import Issuer
from aggregator.upstream.http.binding import PROTOCOL
from aggregator.upstream.http.issuer.reading import Flaw
from aggregator.upstream.http.refusal import Refusal

WELL_KNOWN = "/.well-known/oauth-protected-resource"
RETRY_AFTER = 10
"""Seconds after which whoever could not be judged may try again."""
NAME = "MCP tool aggregator"


def metadata(issuer: Issuer, path: str) -> dict[str, Any] | None:
    """Return how we describe ourselves at a path, if that is one where we do.

    What stands behind the address of the protocol is not looked at: it would tell a stranger
    which profiles there are.
    """
    behind = path.removeprefix(WELL_KNOWN)
    roots = ("", PROTOCOL, urlsplit(issuer.resource).path)
    profile = next((name for root in roots[1:] if (name := _below(behind, root))), None)
    if profile is None and behind not in roots:
        return None
    return {
        "resource": issuer.resource if profile is None else f"{issuer.resource}/{profile}",
        "authorization_servers": [issuer.name],
        "scopes_supported": list(issuer.scopes),
        "bearer_methods_supported": ["header"],
        "resource_name": NAME,
    }


def _below(path: str, root: str) -> str | None:
    name = path.removeprefix(f"{root}/")
    is_name = name.isascii() and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return name if path != name and is_name else None


def place(issuer: Issuer, path: str = PROTOCOL) -> str:
    """Return where we describe ourselves to whoever came to a path."""
    parts = urlsplit(issuer.resource)
    behind = _below(path, PROTOCOL)
    below = parts.path if behind is None else f"{parts.path}/{behind}"
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{below}"


def audiences(issuer: Issuer, path: str) -> tuple[str, ...]:
    """Return what a token may be meant for at a path: what we call ourselves there, too."""
    behind = _below(path, PROTOCOL)
    own = () if behind is None else (f"{issuer.resource}/{behind}",)
    return (*issuer.audiences, *own)


def unknown(issuer: Issuer, path: str, *, advice: str) -> Refusal:
    """Refuse somebody who has shown nothing."""
    challenge = _challenge(issuer, path, scope=issuer.scopes)
    return Refusal(HTTPStatus.UNAUTHORIZED, "A token is required", advice, challenge)


def flawed(issuer: Issuer, path: str, flaw: Flaw) -> Refusal:
    """Refuse somebody who has shown what opens nothing."""
    error = {"error": "invalid_token", "error_description": flaw.reason}
    challenge = _challenge(issuer, path, scope=issuer.scopes, **error)
    return Refusal(HTTPStatus.UNAUTHORIZED, flaw.reason, flaw.advice, challenge)


def lacking(issuer: Issuer, path: str, scopes: tuple[str, ...]) -> Refusal:
    """Refuse somebody of whom we know who it is, and who may see nothing there."""
    reason = f"The token lacks the scope `{' '.join(scopes)}`"
    challenge = _challenge(issuer, path, scope=scopes, error="insufficient_scope")
    advice = "its token has no scope that a rule of `http.access` asks for"
    return Refusal(HTTPStatus.FORBIDDEN, reason, advice, challenge)


def unsettled(issuer: Issuer) -> Refusal:
    """Refuse somebody of whom we cannot find out who it is."""
    return Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "It cannot be found out now who you are; try again",
        f"the keys of the issuer `{issuer.name}` cannot be had",
        retry_after=RETRY_AFTER,
    )


def _challenge(issuer: Issuer, path: str, *, scope: tuple[str, ...], **error: str) -> str:
    told = {**error, "resource_metadata": place(issuer, path), "scope": " ".join(scope)}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in told.items())
