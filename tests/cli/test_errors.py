"""Whatever goes wrong is said in one message, with the right exit status and no traceback."""

import json
import os
import signal
import sys
from collections.abc import Callable
from subprocess import PIPE, Popen
from tempfile import TemporaryFile

import pytest

from aggregator.cli.environment import ExitStatus
from aggregator.cli.parser import COMMANDS
from aggregator.cli.peer import Child
from tests.cli.session import Silent, await_end, ended, marked, run, session, start
from tests.cli.shell import FAULTY, Ran, Shell, faulty
from tests.loopback.web import listening

pytestmark = pytest.mark.slow

SERVERS = f"servers:\n  test:\n    {faulty()}\n"

USE_FILE = ["inspect", "inspect test", "search x", "call test__echo", "check", "serve"]
"""Commands that cannot do without a file of servers."""

INITIALIZE = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": '
    '"2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}\n'
)

START_SERVERS = ["inspect", "search x", "call slow__echo", "check", "doctor"]


def is_one_message(ran: Ran, status: ExitStatus, problem: str) -> bool:
    """Whether a command ended as it should, and said once what was wrong."""
    complaints = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    said = len(complaints) == 1 and problem in complaints[0]
    assert (ran.status, said, "Traceback" in ran.err) == (status, True, False), ran
    return True


# Unknown servers, tools, clients and files


@pytest.mark.parametrize(
    ("command", "status", "problem"),
    [
        ("inspect nowhere", ExitStatus.UNKNOWN, "there is no server or tool `nowhere`"),
        ("inspect test__nope", ExitStatus.UNKNOWN, "there is no server or tool `test__nope`"),
        ("call nowhere__echo", ExitStatus.UNKNOWN, "there is no server `nowhere`"),
        ("call test__nope", ExitStatus.UNKNOWN, "there is no tool `test__nope`"),
        ("doctor --client nobody", ExitStatus.USAGE, "nothing is known of a client `nobody`"),
        ("import nobody", ExitStatus.USAGE, "there is no client `nobody`"),
        ("install nobody", ExitStatus.USAGE, "there is no client `nobody`"),
        ("install cursor --scope nowhere", ExitStatus.USAGE, "Cursor has no scope `nowhere`"),
        ("import nowhere.json", ExitStatus.ERROR, "nowhere.json` does not exist"),
        ("install cursor --config nowhere.yaml", ExitStatus.USAGE, "nowhere.yaml` does not exist"),
        ("inspect --url http://127.0.0.1:1/mcp", ExitStatus.UNREACHED, "did not answer"),
    ],
)
def test_what_does_not_exist_is_named(
    shell: Shell, command: str, status: ExitStatus, problem: str
) -> None:
    shell.write_servers(SERVERS)

    assert is_one_message(run(shell, *command.split()), status, problem)


@pytest.mark.parametrize("command", [*USE_FILE, "serve --http 0"])
def test_without_a_file_nothing_is_started(shell: Shell, command: str) -> None:
    ran = run(shell, *command.split())

    assert is_one_message(ran, ExitStatus.USAGE, "servers.yaml` does not exist")
    assert ran.out == ""


@pytest.mark.parametrize("command", [each for each in USE_FILE if each != "serve"])
def test_a_pipe_is_refused_where_it_would_be_read_twice(shell: Shell, command: str) -> None:
    os.mkfifo(shell.project / "pipe")

    ran = run(shell, *command.split(), "--config", "pipe")

    assert is_one_message(ran, ExitStatus.USAGE, "pipe` is no file")
    assert ran.out == ""


# What is too much behind `secret` may be one, and is not quoted.
@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "secret"])
@pytest.mark.parametrize("argument", ["--nonsense", "-z"])
def test_a_wrong_argument_is_quoted(shell: Shell, command: str, argument: str) -> None:
    required = {"call": ["x"], "search": ["x"], "add": ["x", "https://y"], "remove": ["x"]}
    required |= {"logout": ["x"], "token": ["list"]}
    words = required.get(command, [])

    ran = shell.run(command, *words, argument)

    assert is_one_message(ran, ExitStatus.USAGE, f"unrecognized arguments: {argument}")
    assert f"hint: `aggregator {command} --help`" in ran.err


def test_a_port_that_is_taken_is_named(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    with listening() as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = run(shell, "serve", "--http", address)

    assert is_one_message(ran, ExitStatus.ERROR, f"cannot listen on `{address}`: address already")


# No permission


@pytest.mark.parametrize("command", [*USE_FILE, "serve --http 0"])
def test_a_file_that_may_not_be_read_is_named(shell: Shell, command: str) -> None:
    shell.write_servers(SERVERS).chmod(0)

    ran = run(shell, *command.split())

    assert is_one_message(ran, ExitStatus.USAGE, "servers.yaml` cannot be read: permission denied")
    assert ran.out == ""


def test_doctor_goes_on_without_what_it_may_not_read(shell: Shell) -> None:
    file = shell.write_servers(SERVERS)
    file.chmod(0)
    known = shell.give("windsurf")
    known.chmod(0)
    closed = shell.give("cursor").parent
    closed.chmod(0)
    try:
        ran = run(shell, "doctor")
    finally:
        closed.chmod(0o700)

    said = " ".join(ran.out.split())
    assert ran.status is ExitStatus.USAGE
    assert ran.err == ""
    assert f"`{file}` cannot be read: permission denied" in said
    assert f"windsurf: `{known}` cannot be read: permission denied" in said
    assert f"cursor: `{closed}" in said


def forbid_clients_file(shell: Shell) -> None:
    shell.give("cursor").chmod(0)


def forbid_clients_directory(shell: Shell) -> None:
    shell.give("cursor").parent.chmod(0o500)


def close_clients_directory(shell: Shell) -> None:
    shell.give("cursor").parent.chmod(0)


def forbid_project(shell: Shell) -> None:
    shell.give("cursor")
    shell.project.chmod(0o500)


def forbid_state(shell: Shell) -> None:
    state = shell.home / ".local" / "state"
    state.mkdir(parents=True)
    state.chmod(0o500)


@pytest.mark.parametrize(
    ("command", "forbid", "problem"),
    [
        ("import cursor --yes --into new.yaml", forbid_clients_file, "cannot be read: permission"),
        ("import cursor --yes --into new.yaml", close_clients_directory, "permission denied"),
        ("import cursor --yes --into new.yaml", forbid_project, "cannot be written: permission"),
        ("install cursor --yes", forbid_clients_file, "cannot be read: permission denied"),
        ("install cursor --yes", forbid_clients_directory, "cannot be written: permission denied"),
        ("install cursor --yes", close_clients_directory, "permission denied"),
        ("install cursor --yes", forbid_state, "permission denied"),
        ("serve --http 0", forbid_state, "token file"),
    ],
)
def test_what_is_forbidden_is_named_and_nothing_is_changed(
    shell: Shell, command: str, forbid: Callable[[Shell], None], problem: str
) -> None:
    shell.write_servers(SERVERS)
    forbid(shell)
    try:
        assert is_one_message(run(shell, *command.split()), ExitStatus.ERROR, problem)
    finally:
        for path in (
            shell.project,
            shell.file_of("cursor").path.parent,
            shell.home / ".local/state",
        ):
            if path.exists():
                path.chmod(0o700)
    path = shell.file_of("cursor").path
    assert not path.exists() or b"toolbox" not in path.read_bytes()
    assert not (shell.project / "new.yaml").exists()


def test_a_state_that_may_not_be_written_is_done_without(shell: Shell) -> None:
    path = shell.write_servers(SERVERS)
    forbid_state(shell)

    ran = run(shell, "call", "test__echo", "text=hello")

    assert ran == Ran(ExitStatus.FINE, "hello\n", f"Using `{path}`\n")


def test_a_program_that_may_not_be_run_is_the_problem_of_its_server(shell: Shell) -> None:
    program = shell.project / "program"
    program.touch(mode=0o600)
    shell.write_servers(f"{SERVERS}  forbidden: {{command: ./program, description: x}}\n")

    ran = run(shell, "check")

    assert ran.status is ExitStatus.UNAVAILABLE
    assert "error: forbidden: " in ran.out
    assert "program` is not executable" in " ".join(ran.out.split())
    assert "1 error" in ran.out


def test_the_log_keeps_the_secrets_of_a_server_that_is_added_while_serving(shell: Shell) -> None:
    path = shell.write_servers("servers: {}")
    told = "import os, sys; sys.exit('the token is ' + os.environ['API_TOKEN'])"
    with start(shell, "serve", "-v") as process:
        assert process.stderr is not None
        assert process.stdin is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        assert process.stdout is not None
        process.stdout.readline()
        path.write_text(
            f"servers: {{new: {{command: {sys.executable}, args: [-c, {json.dumps(told)}], "
            "env: {API_TOKEN: 5ecr3t-of-the-new-one}}}",
            encoding="utf-8",
        )
        said = next(line for line in process.stderr if "the token is" in line)
        process.stdin.close()
        process.stdin = None
        rest = ended(process)

    assert "5ecr3t" not in said + rest.err


# Ctrl-C


@pytest.mark.parametrize("command", START_SERVERS)
def test_ctrl_c_ends_a_command_at_once_and_leaves_no_process(shell: Shell, command: str) -> None:
    server = Silent(shell)
    with start(shell, *command.split(), "--wait", "60") as process:
        server.asked()
        os.killpg(process.pid, signal.SIGINT)
        ran = ended(process)

    assert ran.status is ExitStatus.INTERRUPTED
    *before, last = ran.err.strip().splitlines()
    assert last == "interrupted"
    # A machine that is busy takes longer than anybody waits in silence.
    assert all(line.startswith(("waiting for ", "Using `")) for line in before)
    for pid in session(process.pid):
        await_end(pid)


def write_stubborn(shell: Shell) -> None:
    """Have a server that does not end when asked to, which takes seconds."""
    stubborn = f"[{FAULTY}, ok, --ignore-eof, --ignore-term, --sign, {shell.project}]"
    shell.write_servers(
        f"servers: {{stubborn: {{command: {sys.executable}, args: {stubborn}, description: x}}}}"
    )


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("call stubborn__echo text=hello", ExitStatus.FINE),
        ("call stubborn__nope", ExitStatus.UNKNOWN),
        ("search echo", ExitStatus.FINE),
        ("inspect stubborn", ExitStatus.FINE),
        ("check", ExitStatus.FINE),
    ],
)
def test_what_is_slow_to_end_holds_up_no_command_and_ends(
    shell: Shell, command: str, status: ExitStatus
) -> None:
    write_stubborn(shell)

    ran = run(shell, *command.split())
    left = marked(str(shell.project))

    assert ran.status is status
    assert "waiting for" not in ran.err
    for pid in left:
        await_end(pid)


def test_what_does_not_end_by_itself_is_left_to_end(shell: Shell) -> None:
    program = "import time; print('{}', flush=True); time.sleep(600)"
    with (
        TemporaryFile() as log,
        Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE) as process,
    ):
        child = Child(process, log)
        child.listen()
        child.part()
        is_left = process.poll() is None
        process.kill()

    assert is_left


def test_ctrl_c_says_what_it_waits_for(shell: Shell) -> None:
    write_stubborn(shell)
    with start(shell, "inspect", "--watch") as process:
        assert process.stdout is not None
        assert any("Deferred" in line for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)
        ran = ended(process)

    waiting = "waiting for `stubborn`; Ctrl-C again ends it at once"
    assert waiting in ran.err.splitlines()


@pytest.mark.parametrize("command", ["import cursor --into new.yaml", "install cursor"])
def test_ctrl_c_is_an_answer_to_a_question(shell: Shell, command: str) -> None:
    shell.write_servers(SERVERS)
    before = shell.give("cursor").read_bytes()
    with start(shell, *command.split()) as process:
        assert process.stderr is not None
        said = ""
        while not said.endswith("[y/N] "):
            letter = process.stderr.read(1)
            assert letter, f"it ended without a question: {said}"
            said += letter
        os.killpg(process.pid, signal.SIGINT)
        ran = ended(process)

    assert ran.status is ExitStatus.INTERRUPTED
    assert ran.err.strip() == "interrupted"
    assert shell.file_of("cursor").path.read_bytes() == before
    assert not (shell.project / "new.yaml").exists()


def test_ctrl_c_is_how_serving_over_http_ends(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    with start(shell, "serve", "--http", "0") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("serving clients at")
        os.killpg(process.pid, signal.SIGINT)
        ran = ended(process)

    assert ran.status is ExitStatus.FINE
    assert "Traceback" not in ran.err


def test_serving_over_http_says_what_its_end_waits_for(shell: Shell) -> None:
    write_stubborn(shell)
    with start(shell, "serve", "--http", "0", "-v") as process:
        assert process.stderr is not None
        assert any("stubborn: ready" in line for line in process.stderr)
        os.killpg(process.pid, signal.SIGINT)
        ran = ended(process)

    assert "waiting for `stubborn`; Ctrl-C again ends it at once" in ran.err
    assert ran.status is ExitStatus.FINE


@pytest.mark.parametrize(
    ("told", "again"), [(signal.SIGINT, "Ctrl-C again"), (signal.SIGTERM, "SIGTERM again")]
)
def test_serving_over_http_says_at_once_which_calls_its_end_waits_for(
    shell: Shell, told: signal.Signals, again: str
) -> None:
    pipe = shell.home / "received"
    os.mkfifo(pipe)
    arguments = f"[{FAULTY}, ok, --log, {pipe}]"
    shell.write_servers(f"servers: {{test: {{command: {sys.executable}, args: {arguments}}}}}")
    with (
        pipe.open("r+b", buffering=0) as received,
        start(shell, "serve", "--http", "0", "--drain", "300s") as process,
    ):
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        with start(shell, "call", "test__wait", "--url", url) as caller:
            assert any(b"tools/call" in line for line in received)
            os.killpg(process.pid, told)
            said = next(line for line in process.stderr if line.startswith("waiting"))
            os.killpg(process.pid, told)
            ended(caller)

    assert said == f"waiting up to 300 s for 1 call; {again} ends it at once\n"
    assert process.returncode == 128 + told


def test_ctrl_c_ends_serving_over_stdio(shell: Shell) -> None:
    server = Silent(shell)
    with start(shell, "serve") as process:
        server.asked()
        os.killpg(process.pid, signal.SIGINT)
        ran = ended(process)

    assert ran == Ran(ExitStatus.FINE, "", "")
