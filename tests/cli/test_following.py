"""A call that becomes a task is followed to its end, as any other is waited for."""

import json
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from aggregator.cli import main
from aggregator.cli.environment import ExitStatus
from aggregator.cli.following import LEAST, MOST, USUAL, pause
from tests.cli.shell import ROOT, Ran, Shell, Terminal

JOBS = {
    "command": sys.executable,
    "args": ["-m", "tests.conformance.everything", "--era", "modern"],
    "cwd": str(ROOT),
}


def called(directory: Path, *words: str, typed: str | None = None) -> Ran:
    """Call a tool of a server that makes tasks, as a program or as a person who types."""
    config = directory / "servers.yaml"
    config.write_text(json.dumps({"servers": {"jobs": JOBS}}), encoding="utf-8")
    out, err = StringIO(), Terminal()
    environment = Shell(directory, directory).environment(out, err)
    if typed is not None:
        environment = replace(environment, stdin=Terminal(typed))
    return Ran(main(("call", *words), environment), out.getvalue(), err.getvalue())


@pytest.mark.slow
def test_the_result_of_a_task_is_printed_as_that_of_a_call(tmp_path: Path) -> None:
    ran = called(tmp_path, "jobs__slow_compute", "seconds=0.2", "label=tea")

    assert (ran.status, ran.out) == (ExitStatus.FINE, "Computed tea\n"), ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("jobs__failing_job", "The job has failed"),
        ("jobs__protocol_error_job", "`jobs__protocol_error_job`: The job has broken down (code"),
    ],
)
def test_a_task_that_fails_is_a_call_that_does(tool: str, said: str, tmp_path: Path) -> None:
    ran = called(tmp_path, tool)

    assert ran.status is ExitStatus.TOOL_ERROR
    assert said in ran.out + ran.err


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "said"), [("y\nyes\n", "x is deleted"), (None, "x is kept")])
def test_what_a_task_asks_is_asked_once(typed: str | None, said: str, tmp_path: Path) -> None:
    ran = called(tmp_path, "jobs__confirm_delete", "filename=x", typed=typed)

    assert ran.status is ExitStatus.FINE, ran.err
    assert said in ran.out
    assert ran.err.count("Delete x?") == 1


@pytest.mark.parametrize(
    ("wanted", "seconds"),
    [(500, 0.5), (0, LEAST), (-7, LEAST), (1e9, MOST), (None, USUAL), ("soon", USUAL), ([], USUAL)],
)
def test_a_server_is_asked_as_often_as_it_wants_within_bounds(
    wanted: object, seconds: float
) -> None:
    assert pause({"pollIntervalMs": wanted}) == seconds
