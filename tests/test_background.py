"""The tests pass in the background too, where a shell has SIGINT ignored."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

PROGRAM = """
import subprocess, sys
import tests.conftest
told = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
subprocess.run([sys.executable, "-ISc", told], check=True)
"""


def test_what_tests_start_can_be_interrupted_although_they_cannot() -> None:
    ignoring = ["/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", PROGRAM]

    assert subprocess.check_output(ignoring, cwd=ROOT, text=True) == "False\n"
