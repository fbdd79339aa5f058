"""Tell whoever waits that something has changed: look again."""

import anyio


class Signal:
    """A level, not an edge: it says that something changed, and never what.

    Who waits looks first and waits then, without an `await` in between, so no change is missed:

        while not condition():
            await signal.wait()
    """

    def __init__(self) -> None:
        self._sent = anyio.Event()

    def send(self) -> None:
        """Wake everybody who waits now."""
        sent, self._sent = self._sent, anyio.Event()
        sent.set()

    async def wait(self) -> None:
        """Wait for the next time it is sent."""
        await self._sent.wait()
