"""SIGTERM, for commands that have started something and have to end it."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

from aggregator.basics.shutdown_notice import BY_HAND

AGAIN = "SIGTERM again"


class Terminated(KeyboardInterrupt):
    """A command was told to end by SIGTERM."""


@contextmanager
def heeding_sigterm() -> Generator[None]:
    """End the block by SIGTERM as Ctrl-C would, unless it is ignored."""
    is_heard = threading.current_thread() is threading.main_thread()
    if not is_heard or signal.getsignal(signal.SIGTERM) == signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def again(told: KeyboardInterrupt) -> str:
    """Return what does at once what was told once."""
    return AGAIN if isinstance(told, Terminated) else BY_HAND


def _terminate(*_: object) -> NoReturn:
    raise Terminated
