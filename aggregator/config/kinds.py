"""What a search can find, in the words of the file and of a query."""

from typing import Literal, get_args

FoundKind = Literal["tool", "prompt", "skill", "resource"]

FOUND: tuple[FoundKind, ...] = ("tool", "prompt", "skill")
"""The kinds of what is found without being asked for by kind."""
EVERY_KIND: tuple[FoundKind, ...] = get_args(FoundKind)
