"""What is known of providers whose logins need more than the specification says."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple
from urllib.parse import urlsplit


class Preset(NamedTuple):
    """What one provider needs, unless `oauth` says otherwise."""

    hosts: tuple[str, ...]
    """What the host of the server, or of its authorisation server, is or ends with."""
    reason: str
    authorization_params: Mapping[str, str] = MappingProxyType({})
    resource: Literal[False] | None = None
    advice: str = ""
    """What to do, since nobody can register there by a program."""


NOTHING = Preset((), "")

PRESETS = (
    Preset(
        ("googleapis.com", "accounts.google.com"),
        "without both there is no refresh token, and a login lasts for an hour",
        authorization_params={"access_type": "offline", "prompt": "consent"},
        advice="Create an OAuth client of the type `Desktop app` in the Google Cloud console",
    ),
    Preset(
        ("login.microsoftonline.com",),
        "it refuses a `resource` beside scopes (AADSTS9010010)",
        resource=False,
        advice="Register an application in Entra ID, as a public client with this redirect URI",
    ),
    Preset(
        ("githubcopilot.com", "github.com"),
        "it takes no registrations",
        advice="Create an OAuth app on GitHub (Settings, Developer settings), or put a personal "
        "access token into `headers`",
    ),
    Preset(
        ("slack.com",),
        "it takes no registrations, and wants scopes",
        advice="Create a Slack app, and name its `clientId`, `scopes` and `redirectUri`",
    ),
)


def preset(*addresses: str | None) -> Preset:
    """Return what is known of whoever is behind some addresses."""
    hosts = [urlsplit(each).hostname or "" for each in addresses if each]
    for each in PRESETS:
        if any(
            host == known or host.endswith(f".{known}") for host in hosts for known in each.hosts
        ):
            return each
    return NOTHING
