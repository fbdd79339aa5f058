"""The pages that a person sees on this machine on the way to a login and back."""

import html
import secrets
from typing import NamedTuple
from urllib.parse import urlsplit

INVITING = "/login/"
"""Where the page is that leads to a login; what follows nobody can guess."""

HEADERS = (
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    # Where a form may lead to is not said: it would hold for wherever that leads on to.
    (
        "content-security-policy",
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("connection", "close"),
)

_PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<body style="font: 1.2rem/1.5 system-ui, sans-serif; margin: 15vh auto; max-width: 32rem">
<h1 style="font-size: 1.5rem">{title}</h1><p>{text}</p>{more}</body>
"""
_BUTTON = """
<form method="post" action="{path}"><button style="font: inherit; padding: .4em 1em">{label}\
</button></form>
"""


class Answer(NamedTuple):
    """What a browser is given."""

    status: int
    page: str
    location: str | None = None
    """Where it is sent on to."""


class Invitation(NamedTuple):
    """A page that tells a person what they are about to log in to, and leads there once."""

    server: str
    url: str
    """Where the server is."""
    address: str
    """Where the person logs in."""
    issuer: str
    """Who gives the login."""
    path: str

    @property
    def asker(self) -> str:
        """Who will ask for the password."""
        return _host(self.address)

    def page(self) -> str:
        """Return the page as it is before it has been used."""
        host = _host(self.url)
        by = "" if _host(self.issuer) == self.asker else f" in the name of {self.issuer}"
        text = (
            f"{self.server} is the MCP server at {host}. You are asked for your password, or your "
            f"consent, by {self.asker}{by}. Go on only if you have just asked for this yourself."
        )
        more = _BUTTON.format(path=self.path, label=html.escape(f"Go on to {self.asker}"))
        return page(f"Log in to {self.server}?", text, more)


def _host(url: str) -> str:
    """Return who is behind an address: what stands before that could be taken for it."""
    return urlsplit(url).netloc.rpartition("@")[2]


def invitation(server: str, url: str, address: str, issuer: str) -> Invitation:
    """Return a page that nobody knows of yet."""
    return Invitation(server, url, address, issuer, f"{INVITING}{secrets.token_urlsafe(24)}")


def page(title: str, text: str, more: str = "") -> str:
    """Return a page that says something; `more` is HTML."""
    return _PAGE.format(title=html.escape(title), text=html.escape(text), more=more)
