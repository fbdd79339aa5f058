"""Carries what has changed to modern clients that listen."""

from collections.abc import Callable

from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import ServerEvent


class Bus(InMemorySubscriptionBus):
    """One on which whoever begins to listen can be told what it has missed."""

    def __init__(self) -> None:
        super().__init__()
        self._missed: list[ServerEvent] = []

    def greet_next(self, event: ServerEvent) -> None:
        """Have whoever is the next to listen told this first."""
        self._missed.append(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Tell a listener of events from here on."""
        unsubscribe = super().subscribe(listener)
        missed, self._missed = self._missed, []
        for event in missed:
            listener(event)
        return unsubscribe
