"""What the process of a server may use at the most."""

from typing import NamedTuple


class Limits(NamedTuple):
    """What a server's process, and each that it starts, may use at the most; `None` is no limit."""

    memory: int | None = None
    """Bytes of address space."""
    processes: int | None = None
    """Processes of the user who runs us, its own among them."""
    files: int | None = None
    """Files and connections open at a time."""


NO_LIMITS = Limits()
