"""What is said to whoever stops us, and has to wait for others to end."""

from collections.abc import Sequence

NAMED = 3
"""Servers that are named."""


def waiting(what: str, number: int, seconds: float | None = None) -> str:
    """Say what is waited for, for how long at the most, and what a person can do about it."""
    most = "" if seconds is None else f" up to {seconds:g} s"
    them = "it" if number == 1 else "them"
    return f"waiting{most} for {what}; Ctrl-C again ends {them} at once"


def waiting_for(names: Sequence[str]) -> str:
    """Say which servers are waited for."""
    shown = ", ".join(f"`{name}`" for name in names[:NAMED]) or "the servers"
    more = f" and {len(names) - NAMED} more" if names[NAMED:] else ""
    return waiting(shown + more, len(names))
