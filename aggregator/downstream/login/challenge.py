"""What a refusal says of the login that it wants."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

MAX_HEADER = 8192
"""Characters of a challenge that are looked at."""
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: +[\x21\x23-\x5b\x5d-\x7e]+)*")
"""How scopes may be written, by RFC 6749."""
# Each run of letters is tried from its first alone: else a long one takes its square.
_PARAMETER = re.compile(r'(?<![A-Za-z_])([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


class Challenge(NamedTuple):
    """What a server answers to whoever may not do what they ask."""

    is_bearer: bool = False
    """Whether it says that it wants a token at all."""
    error: str = ""
    scope: str = ""
    resource_metadata: str = ""

    @property
    def wants_more(self) -> bool:
        """Whether the login is good, only not for this."""
        return self.error == "insufficient_scope"


def challenge(headers: Mapping[str, str]) -> Challenge:
    """Read the challenge of a response."""
    header = headers.get("www-authenticate", "")[:MAX_HEADER]
    begins = re.search(r"\bbearer\b", header, re.IGNORECASE)
    if begins is None:
        return Challenge()
    found = {
        name.lower(): quoted or plain
        for name, quoted, plain in reversed(_PARAMETER.findall(header, begins.end()))
    }
    scope = found.get("scope", "")
    return Challenge(
        is_bearer=True,
        error=found.get("error", ""),
        # It becomes part of a command that a person is asked to run.
        scope=scope if _SCOPE.fullmatch(scope) else "",
        resource_metadata=found.get("resource_metadata", ""),
    )


def is_refusal(status: int) -> bool:
    """Whether a status is about who asks."""
    return status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
