"""What the README shows is what the commands print."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.driver import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "command",
    [["inspect"], ["search", "convert a length to metres", "--max-results", "1"]],
)
def test_the_output_shown_is_printed(tmp_path: Path, command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "aggregator", *command],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "NO_COLOR": "1"},
    )

    assert done.stdout.strip() in (ROOT / "README.md").read_text(encoding="utf-8")
