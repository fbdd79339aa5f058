"""Whatever a terminal's letters are, nothing that is said ends in a traceback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.serving import serving
from tests.cli.shell import Shell, faulty
from tests.patience import PATIENCE

ENCODINGS = ["latin-1", "ascii", "cp1252", "shift_jis", "utf-16", "utf-8"]
TOKEN = "0123456789abcdef" * 3
NAMES = "Ünïcødé 漢字 👩\u200d💻 …"


def typed(shell: Shell, *arguments: bytes, encoding: str, stdin: bytes = b"") -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"aggregator", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
        env={**shell.all_variables(), "PYTHONIOENCODING": encoding},
        cwd=shell.project,
    )
    return done.stdout.decode(encoding), done.stderr.decode(encoding)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where an aggregator is that all these commands can ask."""
    shell = Shell(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project"))
    shell.variables["AGGREGATOR_TOKEN"] = TOKEN
    with serving(shell, f"servers:\n  test:\n    {faulty()} {NAMES}\n") as (where, _said):
        yield where


@pytest.fixture
def asking(shell: Shell) -> Shell:
    """A person whom that aggregator knows."""
    shell.variables["AGGREGATOR_TOKEN"] = TOKEN
    return shell


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_an_encoding_has_no_letters_for_is_escaped(
    asking: Shell, url: str, encoding: str
) -> None:
    asking.write_servers("servers: {}\n")

    out, err = typed(asking, b"inspect", b"--json", b"--url", url.encode(), encoding=encoding)
    page, more = typed(asking, b"check", os.fsencode("näme…"), b"\xff", encoding=encoding)

    (server,) = json.loads(out)["servers"]
    assert server["description"] == f"A test {NAMES}"
    assert "Traceback" not in err + page + more
    assert "error: there is no server" in more


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_is_piped_in_is_taken_for_json(asking: Shell, url: str, encoding: str) -> None:
    given = json.dumps({"text": NAMES}, ensure_ascii=False).encode()
    call = (b"call", b"test__echo", b"--url", url.encode(), b"--json", b"-")

    out, err = typed(asking, *call, b"--raw", encoding=encoding, stdin=given)
    _, broken = typed(asking, *call, encoding=encoding, stdin=b"\xff{")

    assert NAMES in json.loads(out)["content"][0]["text"], err
    assert "`--json` is not JSON" in broken
