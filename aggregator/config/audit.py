"""Where and how each call is written down."""

from pathlib import Path
from typing import Literal, NamedTuple

ArgumentsChoice = Literal["none", "hash", "full"]

MAX_BYTES = 64 * 1024 * 1024
"""Bytes that the file may have before the next one is begun."""


class Audit(NamedTuple):
    """Where each call is written down, and how much of it."""

    file: Path
    arguments: ArgumentsChoice = "none"
    required: bool = False
    """Whether nothing is called that cannot be written down."""
    max_bytes: int = MAX_BYTES
