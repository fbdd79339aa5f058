"""An aggregator that serves over HTTP, for commands that ask one with `--url`."""

import re
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from tests.cli.shell import Shell, faulty
from tests.cli.warm import warm_python
from tests.patience import PATIENCE

SERVERS = f"servers:\n  test:\n    {faulty()}\n"


@contextmanager
def serving(shell: Shell, servers: str = SERVERS) -> Generator[tuple[str, Iterator[str]]]:
    """Serve over HTTP on a free port, and return where, and what is said from then on."""
    path = shell.write_servers(servers)
    command = [warm_python(), "-m", "aggregator", "serve", "--config", str(path), "--http", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=shell.all_variables()
    ) as process:
        assert process.stderr is not None
        said = iter(process.stderr.readline, "")
        found = next(filter(None, (re.search(r"http://\S+", line) for line in said)))
        try:
            yield found[0], said
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)
