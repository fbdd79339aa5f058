"""What definitions cost a model: counted where somebody can count, else told by their length."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import field
from math import ceil, fsum

from aggregator.basics.frozen import frozen
from aggregator.catalog.entries import ToolEntry
from aggregator.names import ServerName

CHARACTERS_PER_TOKEN = 2.5
"""Characters of a definition that cost a model about one token."""


@frozen
class Scale:
    """How many characters make a token."""

    counted: Mapping[ServerName, float] = field(default_factory=dict[ServerName, float])
    """In the definitions of each server that were counted, taken together."""
    usual: float = CHARACTERS_PER_TOKEN
    """In everything else."""
    is_growing: bool = False
    """Whether there is somebody who counts what has not been counted."""

    @classmethod
    def of(cls, counted: Mapping[ServerName, float], *, is_growing: bool) -> "Scale":
        """Return what follows from what was counted for everything else."""
        usual = fsum(counted.values()) / len(counted) if counted else CHARACTERS_PER_TOKEN
        return cls(dict(counted), usual, is_growing)

    def awaits(self, servers: Iterable[ServerName]) -> bool:
        """Whether definitions of one of these servers are still to be counted."""
        return self.is_growing and any(name not in self.counted for name in servers)

    def only(self, servers: Container[ServerName]) -> "Scale":
        """Return what would be known if there were no other servers."""
        counted = {name: each for name, each in self.counted.items() if name in servers}
        if len(counted) == len(self.counted):
            return self
        return Scale.of(counted, is_growing=self.is_growing)

    def tokens(self, entry: ToolEntry) -> int:
        """Return how many tokens a definition costs, of all that those of its server do."""
        return ceil(entry.characters / self.counted.get(entry.server, self.usual))

    def cost(self, entries: Iterable[ToolEntry]) -> float:
        """Return what definitions cost together."""
        characters: dict[ServerName, int] = {}
        for entry in entries:
            characters[entry.server] = characters.get(entry.server, 0) + entry.characters
        counted, usual = self.counted, self.usual
        return sum(number / counted.get(name, usual) for name, number in characters.items())

    def tokens_of_text(self, characters: int) -> int:
        """Return about how many tokens so many characters cost."""
        return ceil(characters / self.usual)


BY_LENGTH = Scale()
"""What holds where nobody counts."""
