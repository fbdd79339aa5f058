"""Whatever the README tells a person to type is typed here, and does what the README says."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from aggregator.cli.parser import COMMANDS
from tests.cli.shell import Shell
from tests.patience import PATIENCE
from tests.processes.driver import ROOT

pytestmark = pytest.mark.slow

README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = ("aggregator", "claude", "code", "codex", "npx", "pip", "python3", "uv")


@dataclass(frozen=True)
class Typed:
    """What comes of a command."""

    shows: str
    """On stdout, or on stderr for what is said beside a result."""
    answer: str = ""
    """What the person answers when asked."""


TYPED = {
    "aggregator inspect": Typed("A client sees 5: ToolSearch, CallTool"),
    "aggregator inspect --example": Typed("5 of 5 servers ready, 64 tools"),
    "inspect notes": Typed("notes__create_note"),
    "inspect notes__create_note": Typed('"inputSchema"'),
    'aggregator search "convert a length to metres" --max-results 1': Typed("## units__convert_"),
    'aggregator search "open issues"': Typed('for "open issues"'),
    "aggregator call units__convert_unit value=3 source=km target=m": Typed("3000"),
    "aggregator check": Typed("no errors"),
    "aggregator init": Typed("Wrote `", answer="y\n" * 8),
    "aggregator add fetch -- uvx mcp-server-fetch": Typed("`fetch` is in `"),
    "aggregator add docs https://docs.example.com/mcp": Typed("`docs` is in `"),
    "aggregator doctor": Typed("5 of 5 servers are ready"),
    "aggregator token add anna": Typed("agg_"),
    "aggregator schema": Typed('"$schema"'),
    "aggregator import claude-code": Typed("Wrote `", answer="y\n"),
    "aggregator import cursor": Typed("Wrote `", answer="y\n"),
    "aggregator install claude-code": Typed("+++ ", answer="y\n"),
    "aggregator install codex": Typed("omit_tools_from", answer="y\n"),
    # Its client leaves at once.
    "aggregator serve": Typed(""),
}
SHOWN = (
    "aggregator inspect",
    'aggregator search "convert a length to metres" --max-results 1',
)
"""Commands whose whole output is in the README, in the order in which they are typed there."""
SERVED = "aggregator serve --http 8080"
ENTRY = "/path/to/.venv/bin/aggregator"
ELSEWHERE = {
    ".venv/bin/aggregator inspect": "is the `aggregator inspect` that is typed, by its path",
    "python3 -m venv .venv": "`.ci/run` does it",
    ".venv/bin/pip install -q -e .": "`.ci/run` does it",
    ".venv/bin/pip install -q -e '.[test]'": "`.ci/run` does it",
    ".venv/bin/pip install -e '.[semantic]'": "75 MB; `tests/search/semantic` uses it where it is",
    ".venv/bin/python -m pytest -n auto": "is what runs this",
    "pip wheel --no-deps -w dist .": "`.ci/run` builds it, and more",
    "aggregator remove fetch": "there is none before it is added; `tests/cli` does both",
    "aggregator login NAME": "needs a login; `tests/downstream/login` has one",
    "aggregator login linear": "needs a login; `tests/downstream/login` has one",
    "aggregator lock": "writes beside the configuration; `tests/cli` does it",
    "aggregator approve notes": "needs something that differs; `tests/cli` has it",
    "aggregator stats": "needs something that was counted; `tests/cli` has it",
    "aggregator open": "serves until told to stop; `tests/cli`, `tests/upstream/http/page`",
    "aggregator open --example": "the same",
    "aggregator status": "needs a hub; `tests/app/hub` has one",
    "serve --shared": "starts a hub; `tests/app/hub` does it",
    "aggregator secret set BOARD_TOKEN": "needs a keyring; `tests/cli` has one",
    "uv run aggregator inspect": "needs another program",
    "uv run --extra test pytest -n auto": "needs another program",
}
"""What is typed but not here, and why."""


def commands() -> Iterator[str]:
    """Yield every command that the README shows, in a block or in a sentence."""
    for block in re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            yield from line.partition("  # ")[0].rstrip().split(" && ")
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`([^`\n]+)`", prose):
        first, _, rest = span.partition(" ")
        if rest and (first in (*PROGRAMS, *COMMANDS) or first.startswith(".venv/bin/")):
            yield span


def for_clients() -> list[str]:
    """Return the commands of clients, by which they are told of us."""
    return [command for command in commands() if ENTRY in command]


def started_by(command: str) -> str:
    """Return what a client starts that is told of us by a command."""
    plain = re.sub(r"[^\w./-]+", " ", command).replace(" args ", " ")
    (started,) = re.findall(rf"{ENTRY} [\w-]+ --config /path/to/servers.yaml", plain)
    return started


def test_every_command_is_typed_or_there_is_a_reason() -> None:
    assert set(commands()) == {*TYPED, SERVED, *ELSEWHERE, *for_clients()}


def test_every_option_exists() -> None:
    """Options are named in sentences, away from their commands."""
    named = set(re.findall(r"`(--[a-z-]+)[^`]*`", README))
    known = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")

    assert named >= {"--json", "--undo"}
    assert [option for option in named if not re.search(rf"{option}\b", known)] == []


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return a person with two clients and a clone of the repository."""
    home, project = tmp_path / "home", tmp_path / "clone"
    home.mkdir()
    (project / ".venv").mkdir(parents=True)
    (project / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    shutil.copy(ROOT / "servers.yaml", project)
    shutil.copytree(ROOT / "examples", project / "examples")
    path = os.pathsep.join((str(project / ".venv" / "bin"), os.environ["PATH"]))
    shell = Shell(home, project, variables={"PATH": path})
    shell.give("claude-code")
    shell.give("cursor")
    return shell


def start(shell: Shell, command: str) -> "subprocess.Popen[str]":
    words = shlex.split(command)
    return subprocess.Popen(
        ["aggregator", *words] if words[0] in COMMANDS else words,
        cwd=shell.project,
        env=shell.all_variables(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def typed(shell: Shell, command: str, answer: str = "") -> tuple[int, str, str]:
    """Type a command; return its exit status, its result and what else it says."""
    with start(shell, command) as process:
        out, err = process.communicate(answer, timeout=3 * PATIENCE)
        return process.returncode, out, err


@pytest.mark.parametrize("command", TYPED)
def test_a_command_does_what_it_is_shown_for(shell: Shell, command: str) -> None:
    expected = TYPED[command]
    for before in SHOWN[: SHOWN.index(command)] if command in SHOWN else ():
        typed(shell, before)

    status, out, err = typed(shell, command, expected.answer)

    assert status == 0, err
    assert expected.shows in out + err
    assert "Traceback" not in err
    assert command not in SHOWN or out.strip() in README


def test_what_was_installed_is_taken_back_to_the_byte(shell: Shell) -> None:
    path = shell.file_of("claude-code").path
    before = path.read_bytes()

    typed(shell, "aggregator install claude-code", "y\n")
    between = path.read_bytes()
    status, _, err = typed(shell, "aggregator install claude-code --undo", "y\n")

    assert status == 0, err
    assert between != before
    assert path.read_bytes() == before


def test_clients_are_served_over_http(shell: Shell) -> None:
    """On a port that nobody else has."""
    with start(shell, SERVED.replace("8080", "0")) as process:
        assert process.stderr is not None
        said = process.stderr.readline(), process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert said[0].startswith("serving clients at http://127.0.0.1:")
    assert "Authorization: Bearer TOKEN" in said[1]
    assert process.returncode == 0


@pytest.mark.parametrize("started", sorted(set(map(started_by, for_clients()))))
def test_what_clients_are_told_to_start_is_a_command(shell: Shell, started: str) -> None:
    status, out, err = typed(shell, started.replace("/path/to", str(shell.project)))

    assert (status, out, err) == (0, "", "")
