"""The numbers of the ranking, each with its reason."""

from dataclasses import dataclass
from enum import IntEnum


class Field(IntEnum):
    """Where in a tool's definition a word stands."""

    NAME = 0
    TITLE = 1
    SERVER = 2
    HINT = 3
    DESCRIPTION = 4
    PARAMETER = 5
    DETAIL = 6
    """Descriptions and enum values of parameters."""
    SIBLINGS = 7
    """What most tools of the same server speak of."""


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """How much a word in one field counts, and how much the length of the field matters."""

    weight: float
    usual: float
    """The number of words at which the length changes nothing."""
    slope: float
    """0: length does not matter; 1: twice as long counts half as much."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Everything that can be tuned."""

    name: FieldWeight = FieldWeight(5.0, 3.0, 0.4)
    title: FieldWeight = FieldWeight(2.0, 3.0, 0.4)
    server: FieldWeight = FieldWeight(5.0, 3.0, 0.2)
    hint: FieldWeight = FieldWeight(3.0, 6.0, 0.4)
    description: FieldWeight = FieldWeight(1.5, 20.0, 0.6)
    parameter: FieldWeight = FieldWeight(0.6, 4.0, 0.3)
    detail: FieldWeight = FieldWeight(0.4, 20.0, 0.6)
    siblings: FieldWeight = FieldWeight(0.0, 1.0, 0.0)
    saturation: float = 1.5
    equivalent: float = 0.6
    part: float = 0.5
    coverage: float = 0.5
    adjacent: float = 0.3
    crowding: float = 0.9
    twin: float = 0.9

    def field(self, field: Field) -> FieldWeight:
        """Return the weight of one field."""
        return (
            self.name,
            self.title,
            self.server,
            self.hint,
            self.description,
            self.parameter,
            self.detail,
            self.siblings,
        )[field]


WEIGHTS = Weights()
