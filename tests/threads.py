"""A machine on which no thread can be started any more."""

from typing import NoReturn


async def refuse(*_call: object, **_options: object) -> NoReturn:
    """Do as `to_thread.run_sync` does then."""
    raise RuntimeError("can't start new thread")
