"""The two eras of the protocol, and which version belongs to which."""

from typing import Literal

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Era = Literal["handshake", "modern"]


def era_of(version: str | None) -> Era:
    """Return the era that a version of the protocol belongs to."""
    return "modern" if version in MODERN_PROTOCOL_VERSIONS else "handshake"


def is_modern(version: str | None) -> bool:
    """Whether a version of the protocol knows no sessions."""
    return version in MODERN_PROTOCOL_VERSIONS
