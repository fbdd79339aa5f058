"""Tell whoever waits that something has changed: look again."""

import anyio


class Signal:
    """A level, not an edge: it says that something changed, and never what.

    Who waits looks first and waits then, without an `await` in between, so no change is missed:

        while not condition():
            await signal.wait()
    """

    def __init__(self) -> None:
        self._awaited: anyio.Event | None = None
        """What those who wait now wait for; nothing if nobody does, as mostly."""

    def send(self) -> None:
        """Wake everybody who waits now."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited.set()

    async def wait(self) -> None:
        """Wait for the next time it is sent."""
        if self._awaited is None:
            self._awaited = anyio.Event()
        await self._awaited.wait()
