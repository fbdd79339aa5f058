"""Answer a client that asks what it asked the last time, while what serves it is being loaded.

A client begins with the same few requests at every start, and the answers are nearly always the
same. A thread reads what comes and answers from a record for as long as the client says, word for
word, what it said then. Whatever else it says is left alone. Then everything that was read is
handed over, from the first byte: whoever takes over answers all of it anew, and so knows the
client as if there had been nobody before; only what has been said already is not said twice.
"""

import json
import os
import select
import stat
import sys
from collections.abc import Mapping, Sequence
from threading import Thread

from aggregator.entry.basis import Basis, find_basis
from aggregator.entry.place import config_path, example_path
from aggregator.entry.record import Json, Record, are, read
from aggregator.entry.typed import typed

CHUNK_BYTES = 64 * 1024
"""Bytes read at once."""
MAX_LINE_BYTES = 64 * 1024
"""Bytes that a request may have to be answered here."""
SWITCH_INTERVAL = 0.001
"""Seconds after which what is being loaded lets the answer have its turn."""

_STANDARD = (0, 1, 2)
_INITIALIZED = "notifications/initialized"


def begin(arguments: Sequence[str]) -> "Herald | None":
    """Have a client answered from here on, if there is one to be served over stdio."""
    serving = typed(arguments)
    if serving is None or not _is_there():
        return None
    try:
        directory = os.getcwd()
        file = example_path() if serving.example else serving.config
        herald = Herald(config_path(file, os.environ, directory), os.environ, serving.profile)
        herald.start()
    except (OSError, RuntimeError):
        # Without a directory, a descriptor or a thread to be had, nobody is answered ahead.
        return None
    return herald


class Said:
    """A line of the client's, and what it was answered, if it was."""

    __slots__ = ("line", "result")

    def __init__(self, line: bytes, result: Json | None) -> None:
        self.line = line
        self.result = result


class Lead:
    """All that has happened on the standard streams before they are taken over."""

    __slots__ = ("basis", "rest", "said", "unsent")

    def __init__(
        self,
        said: tuple[Said, ...] = (),
        rest: bytes = b"",
        unsent: bytes = b"",
        basis: Basis | None = None,
    ) -> None:
        self.said = said
        """The lines that were understood, in their order."""
        self.rest = rest
        """What was read behind them."""
        self.unsent = unsent
        """What the client has not taken of the last answer."""
        self.basis = basis
        """What the answers rest on, if that can be told."""


class Prompter:
    """Knows what was answered to whoever began like this; does no I/O but to find its record."""

    def __init__(self, basis: Basis | None, variables: Mapping[str, str]) -> None:
        self._basis = basis
        self._variables = variables
        self._record: Record | None = None
        self._given = 0
        self._is_greeted = False

    def answer(self, line: bytes) -> tuple[bytes, Json | None] | None:
        """Return what to write for a line, and its result; `None` if it is not for us."""
        message = _message(line)
        if message is None:
            return None
        method, identifier, params = message
        if identifier is None:
            return self._heed(method)
        try:
            result = self._result(method, params)
        except RecursionError:
            # What can just be read may be nested too deeply to be written.
            return None
        if result is None:
            return None
        whole: Json = {"jsonrpc": "2.0", "id": identifier, "result": result}
        return json.dumps(whole, separators=(",", ":")).encode() + b"\n", result

    def _heed(self, method: str) -> tuple[bytes, None] | None:
        """Take note that a session has begun; nothing else that is only told is understood."""
        if self._given != 1 or self._is_greeted or method != _INITIALIZED:
            return None
        self._is_greeted = True
        return b"", None

    def _result(self, method: str, params: object) -> Json | None:
        """Return what was answered, if it is what comes next."""
        if self._record is None:
            self._record = self._recalled(method, params)
        answers = self._record.current()
        if self._given >= len(answers) or not answers[self._given].fits(method, params):
            return None
        # Who has not said that the session has begun is not to be told of changes either.
        if self._given and answers[0].method == "initialize" and not self._is_greeted:
            return None
        self._given += 1
        return answers[self._given - 1].result

    def _recalled(self, method: str, params: object) -> Record:
        found = self._basis and read(self._basis.path(method, params))
        return found if found and found.holds(self._variables) else Record(())


class Herald:
    """Reads our standard input, and answers on our standard output, until told to stop."""

    def __init__(self, config: str, variables: Mapping[str, str], profile: str = "") -> None:
        self._config = config
        self._profile = profile
        self._variables = variables
        self._basis: Basis | None = None
        self._said: list[Said] = []
        self._rest = bytearray()
        self._unsent = b""
        self._stop, self._stopping = os.pipe()
        self._thread = Thread(target=self._run, name="herald", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._thread.start()

    def take_over(self) -> Lead:
        """Stop at once, and return all that was read and said."""
        os.close(self._stopping)
        self._thread.join()
        os.close(self._stop)
        return Lead(tuple(self._said), bytes(self._rest), self._unsent, self._basis)

    def _run(self) -> None:
        self._basis = find_basis(self._config, self._variables, self._profile)
        prompter = Prompter(self._basis, self._variables)
        while self._wait(0, select.POLLIN):
            try:
                chunk = os.read(0, CHUNK_BYTES)
            except OSError:
                return
            self._rest += chunk
            if not chunk or not self._answer(prompter) or len(self._rest) > MAX_LINE_BYTES:
                return

    def _answer(self, prompter: Prompter) -> bool:
        """Answer each line that is there; say whether more may be."""
        while b"\n" in self._rest:
            line, _, rest = self._rest.partition(b"\n")
            if len(line) > MAX_LINE_BYTES:
                return False
            answer = prompter.answer(bytes(line))
            if answer is None:
                return False
            content, result = answer
            self._said.append(Said(bytes(line), result))
            self._rest = rest
            if not self._write(content):
                return False
        return True

    def _write(self, content: bytes) -> bool:
        """Write an answer, as far as somebody takes it; say whether all of it is written."""
        self._unsent = content
        while self._unsent and self._wait(1, select.POLLOUT):
            try:
                # So much a pipe takes that has room, without having us wait for more.
                written = os.write(1, self._unsent[: select.PIPE_BUF])
            except OSError:
                return False
            self._unsent = self._unsent[written:]
        return not self._unsent

    def _wait(self, descriptor: int, event: int) -> bool:
        """Wait until a descriptor is ready; say whether it is, or we are told to stop."""
        poll = select.poll()
        poll.register(descriptor, event)
        poll.register(self._stop, select.POLLIN)
        return self._stop not in dict(poll.poll())


def _message(line: bytes) -> tuple[str, str | int | None, Json | None] | None:
    """Return the method of a message, its id and its params; `None` if it can be no request."""
    try:
        message = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    if not are(dict, message) or message.get("jsonrpc") != "2.0":
        return None
    method, identifier, params = (message.get(key) for key in ("method", "id", "params"))
    is_call = are(str, method) and (params is None or are(dict, params))
    is_named = identifier is None or are(str, identifier) or type(identifier) is int
    return (method, identifier, params) if is_call and is_named else None


def _is_there() -> bool:
    """Whether there is a client at our standard streams, and no person or file."""
    try:
        modes = [os.fstat(each).st_mode for each in _STANDARD]
    except OSError:
        return False
    are_pipes = (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes[:2])
    return os.name == "posix" and all(are_pipes)
