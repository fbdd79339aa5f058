"""What a server says of itself when a link to it is opened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aggregator.downstream.inflight import Era
from aggregator.json import JsonObject, as_object


@dataclass(frozen=True, slots=True)
class Peer:
    """What a server said of itself when the link was opened."""

    era: Era
    protocol_version: str
    name: str = ""
    version: str = ""
    capabilities: JsonObject = field(default_factory=dict[str, Any])
    instructions: str = ""

    def announces(self, kind: str) -> bool:
        """Whether the server says it tells of changes to its list of `kind`."""
        return as_object(self.capabilities.get(kind)).get("listChanged") is True


def describe(era: Era, version: str, info: object, result: Mapping[str, Any]) -> Peer:
    """Read what a server says of itself, whatever shape it has."""
    described = as_object(info)
    instructions = result.get("instructions")
    return Peer(
        era=era,
        protocol_version=version,
        name=str(described.get("name") or ""),
        version=str(described.get("version") or ""),
        capabilities=as_object(result.get("capabilities")),
        instructions=instructions if isinstance(instructions, str) else "",
    )
