"""What is known of each client, by the name it gives itself."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from aggregator.config.values import SurfaceChoice

Relists = Literal["same-turn", "never", "unknown"]
"""What a client does when it is told that the list changed."""


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """What to expect of one client; the defaults are those of a client nobody has studied."""

    title: str = "an unknown client"
    relists: Relists = "unknown"
    lists_after_result: bool = False
    """It lists again only once the call that changed the list has returned."""
    defers_late_tools: bool = False
    """It hides a tool that joins the list behind a search of its own."""
    shows_whole_result: bool = False
    """Its model reads the whole result as JSON, `_meta` too."""
    max_result_chars: int | None = None
    """What of a text result reaches its model uncut, where that is known to be limited."""
    evidence: str = "it is not in the table of clients"
    surface: SurfaceChoice | None = None
    """The surface that configuration sets for this client."""

    @property
    def calls_late_tools(self) -> bool | None:
        """Can its model call, in the same turn, a tool that has just joined the list?"""
        if self.defers_late_tools:
            return False
        return {"same-turn": True, "never": False, "unknown": None}[self.relists]


UNKNOWN = ClientProfile()


def profile(client_name: str, overrides: Mapping[str, SurfaceChoice]) -> ClientProfile:
    """Return what is known of a client; `overrides` sets surfaces by the same names."""
    key = _key(client_name)
    surfaces = {_key(name): surface for name, surface in overrides.items()}
    return replace(_table().get(key, UNKNOWN), surface=surfaces.get(key))


def known_clients() -> Mapping[str, ClientProfile]:
    """Return the table of clients, by their names in lower case."""
    return _table()


_BRIDGE = re.compile(r"\s*\(via [^)]*\)\s*$")
"""What a bridge such as `mcp-remote` adds to the name of the client it stands for."""


def _key(client_name: str) -> str:
    return _BRIDGE.sub("", client_name).strip().casefold()


@cache
def _table() -> Mapping[str, ClientProfile]:
    text = Path(__file__).with_name("clients.toml").read_text(encoding="utf-8")
    table: dict[str, ClientProfile] = {}
    for row in tomllib.loads(text)["client"]:
        names = row.pop("names")
        row["relists"] = _relists(row["relists"])
        table |= dict.fromkeys(map(_key, names), ClientProfile(**row))
    return table


def _relists(word: str) -> Relists:
    match word:
        case "same-turn" | "never":
            return word
        case _:
            return "unknown"
