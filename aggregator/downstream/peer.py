"""What a server says of itself when a link to it is opened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aggregator.eras import Era, era_of
from aggregator.json import JsonObject, as_object


@dataclass(frozen=True, slots=True)
class Peer:
    """A server that has introduced itself."""

    protocol_version: str
    name: str = ""
    version: str = ""
    capabilities: JsonObject = field(default_factory=dict[str, Any])
    instructions: str = ""

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
        name=str(described.get("name") or ""),
        version=str(described.get("version") or ""),
        capabilities=as_object(result.get("capabilities")),
        instructions=instructions if isinstance(instructions, str) else "",
    )
