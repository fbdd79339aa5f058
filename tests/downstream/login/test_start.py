"""What a start does not wait for."""

import os
import subprocess
import sys


def test_serving_imports_nothing_that_only_a_login_needs() -> None:
    """The SDK's part of OAuth takes a second to load."""
    program = (
        "import sys, aggregator.cli.serve, aggregator.app.life, aggregator.downstream.http.reach\n"
        "unwanted = ('mcp.client.auth', 'filelock', 'jwt', 'webbrowser')\n"
        "print([name for name in sys.modules if name.startswith(unwanted)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )

    assert done.stdout.strip() == "[]"
