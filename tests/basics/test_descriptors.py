"""More open files for us, and no more than before for what we start."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, resource, sys
from aggregator.basics.descriptors import limit, raise_limit
from aggregator.downstream.stdio.process import spawn

before = limit()
raise_limit()
raise_limit()
child = "import resource; input(); print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
process, pipes = spawn([sys.executable, "-c", child], dict(os.environ), None)
os.set_blocking(pipes.stdout.fileno(), True)
pipes.stdin.write(b"now\\n")
soft, hard = pipes.stdout.read().split()
print(before, limit(), int(soft), int(hard))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there a child can be given back its own")
@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ("ulimit -Sn 300; ulimit -Hn 5000", [300, 5000, 300, 5000]),
        ("ulimit -n 300", [300, 300, 300, 300]),
    ],
)
def test_a_child_has_the_limit_that_we_were_given(limits: str, expected: list[int]) -> None:
    said = subprocess.check_output(
        ["/bin/sh", "-c", f'{limits}; exec "$0" -c "$1"', sys.executable, SCRIPT], timeout=60
    )

    assert [int(each) for each in said.split()] == expected
