"""Whether replicas could be started with what the file says that they share."""

from collections.abc import Iterator

import anyio

from aggregator.cli.lint import Finding
from aggregator.config.http import Replicas


def tell_shared(shared: Replicas) -> Iterator[Finding]:
    """Yield why no replica would start, or each would be alone."""
    # A file that is not there is made by the first that is started.
    if shared.key is not None and shared.key.exists():
        # Few files name one, and nobody else waits for what it takes to look.
        from aggregator.upstream.http.binding import BindingError  # noqa: PLC0415 - see above
        from aggregator.upstream.http.replicas.key_file import KeyFile  # noqa: PLC0415 - see above

        try:
            KeyFile(shared.key)
        except BindingError as error:
            yield Finding("error", "", f"{error}; {error.hint}" if error.hint else str(error))
    if shared.store is not None:
        yield from _tell_store(shared.store)


def _tell_store(url: str) -> Iterator[Finding]:
    try:
        from aggregator.upstream.http.replicas.store import trouble_with  # noqa: PLC0415 - an extra
    except ImportError:
        said = "`http.state` needs the extra `redis`: `pip install 'mcp-tool-aggregator[redis]'`"
        yield Finding("error", "", said)
        return
    if problem := anyio.run(trouble_with, url):
        # Its address may have a password in it.
        said = f"the store of `http.state` cannot be reached from here ({problem})"
        yield Finding("warning", "", f"{said}; replicas go on as without it")
