"""What a server says of itself when a link to it is opened."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from aggregator.basics.eras import Era, era_of
from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, as_object

MAX_SAID = 64 * 1024
"""Characters that are kept of anything a server says of itself."""


@frozen
class Peer:
    """A server that has introduced itself."""

    protocol_version: str
    name: str = ""
    version: str = ""
    capabilities: JsonObject = field(default_factory=dict[str, Any])
    instructions: str = ""
    about: str = ""
    """What it calls itself, for people."""
    is_told_less: bool = False
    """Whether it was told of clients that can be asked less than others can."""

    @property
    def era(self) -> Era:
        """The era it speaks."""
        return era_of(self.protocol_version)

    def announces(self, kind: str) -> bool:
        """Whether the server says it tells of changes to its list of `kind`."""
        return as_object(self.capabilities.get(kind)).get("listChanged") is True


def describe(version: str, info: object, result: Mapping[str, Any]) -> Peer:
    """Read what a server says of itself, whatever shape it has."""
    described = as_object(info)
    instructions = result.get("instructions")
    return Peer(
        protocol_version=version,
        name=_said(described.get("name")),
        version=_said(described.get("version")),
        capabilities=as_object(result.get("capabilities")),
        instructions=_said(instructions) if isinstance(instructions, str) else "",
        about=_said(described.get("description") or described.get("title")),
    )


def _said(value: object) -> str:
    return str(value or "")[:MAX_SAID]
