"""What is said to whoever stops us, and has to wait for others to end."""

import signal
from collections.abc import Callable, Sequence

NAMED = 3
"""Servers that are named."""
BY_HAND = "Ctrl-C again"


class ShutdownNotice:
    """Tells whoever stops us what keeps us, and how it ends at once.

    It is said in another way to whoever stops us by a signal, if there is one.
    """

    def __init__(
        self, say: Callable[[str], None], say_when_told: Callable[[str], None] | None = None
    ) -> None:
        self._say = say
        self._say_when_told = say_when_told or say
        self._again = ""

    def told_by(self, number: int) -> None:
        """Know the signal that we are stopped by, which is not waited for if it comes twice."""
        self._say = self._say_when_told
        name = signal.Signals(number).name
        self._again = BY_HAND if number == signal.SIGINT else f"{name} again"

    def wait_for_calls(self, number: int, seconds: float) -> None:
        """Say how many calls are waited for, and for how long at the most."""
        calls = "1 call" if number == 1 else f"{number} calls"
        self._say(_waiting(calls, number, self._again, f" up to {seconds:g} s"))

    def wait_for_servers(self, names: Sequence[str]) -> None:
        """Say which servers are waited for."""
        self._say(waiting_for(names, self._again))


def waiting_for(names: Sequence[str], again: str = BY_HAND) -> str:
    """Say which servers are waited for; `again` is what ends them at once, if anything does."""
    shown = ", ".join(f"`{name}`" for name in names[:NAMED]) or "the servers"
    more = f" and {len(names) - NAMED} more" if names[NAMED:] else ""
    return _waiting(shown + more, len(names), again)


def _waiting(what: str, number: int, again: str, most: str = "") -> str:
    them = "it" if number == 1 else "them"
    step = f"; {again} ends {them} at once" if again else ""
    return f"waiting{most} for {what}{step}"
