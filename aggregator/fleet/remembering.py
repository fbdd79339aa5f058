"""Take what is noted to disk, and keep nobody waiting for it."""

from contextlib import suppress

import anyio
from anyio import to_thread

from aggregator.basics.signals import Signal
from aggregator.memory import Notebook

SAVING_PAUSE = 1.0
"""Seconds to gather facts before they are written."""


async def save_news(notebook: Notebook, news: Signal) -> None:
    """Write what is noted, until cancelled; then once more.

    Only the file is left to a thread: whoever notes a fact meanwhile finds the notebook whole.
    """
    try:
        while True:
            while not notebook.has_news:
                await news.wait()
            await anyio.sleep(SAVING_PAUSE)
            batch = notebook.take()
            # Where no thread can be started, it stays noted for the next time.
            with suppress(RuntimeError):
                notebook.settle(batch, await to_thread.run_sync(batch.write))
    finally:
        notebook.save()
