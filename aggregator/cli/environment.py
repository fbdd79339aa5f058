"""Everything outside the program that a command may touch."""

import atexit
import codecs
import json
import os
import select
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from enum import IntEnum
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from aggregator.basics.files import in_words
from aggregator.basics.frozen import frozen
from aggregator.basics.glyphs import on_its_lines
from aggregator.cli.paper import READABLE, Colour, Paper, fill
from aggregator.cli.stderr_writer import StderrWriter, never_blocking
from aggregator.entry.ahead import Herald

USUAL_WIDTH = 80
"""Columns of a terminal that does not say how wide it is."""
ESCAPED = "aggregator.escaped"
"""What a stream does with characters that its encoding has not, by the name it is registered as."""

CLEAR = "\x1b[H\x1b[2J"
"""What empties a terminal."""

_CODES: Mapping[Colour, int] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}


_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}
"""What can be answered to a question; whoever types nothing agrees to nothing."""


class ExitStatus(IntEnum):
    """What a command tells the shell."""

    FINE = 0
    ERROR = 1
    USAGE = 2
    TOOL_ERROR = 3
    """The tool ran and says that it failed; nothing is wrong with the way to it."""
    UNAVAILABLE = 4
    """A server is not ready, or went away."""
    UNKNOWN = 5
    """There is no such server or tool, or it is not clear which is meant."""
    UNREACHED = 6
    """The aggregator at `--url` did not answer, or refused."""
    NEEDS_LOGIN = 7
    """A server wants nothing but that somebody logs in."""
    INTERRUPTED = 130
    """128 plus the number of SIGINT, as shells have it."""
    TERMINATED = 143
    """And of SIGTERM."""


class CommandError(Exception):
    """What stops a command: one sentence for a person, and what to do about it."""

    def __init__(
        self, problem: str, hint: str | None = None, status: ExitStatus = ExitStatus.ERROR
    ) -> None:
        super().__init__(problem)
        self.hint = hint
        self.status = status


class ToldError(CommandError):
    """One that a person has read already, while the rest was being cleaned up."""


@frozen(slots=False)
class Environment:
    """The streams, the variables and the directory a command works with."""

    stdout: TextIO
    stderr: TextIO
    variables: Mapping[str, str]
    directory: Path
    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    platform: str = sys.platform
    python: str = sys.executable
    """What starts another aggregator."""
    brush: str = field(default_factory=lambda: f"\x1b{os.urandom(8).hex()}[")
    """What begins a colour until it is written: nobody else can know it, and so none can paint."""
    writer: StderrWriter | None = None
    """What keeps stderr from holding us up."""
    herald: Herald | None = None
    """Who answers a client on the standard streams until they are taken over."""

    @classmethod
    def of_process(cls, herald: Herald | None = None) -> "Environment":
        """Return the one this process has."""
        codecs.register_error(ESCAPED, _escape)
        _open_what_is_closed()
        for stream, errors in (
            (sys.stdout, ESCAPED),
            (sys.stderr, ESCAPED),
            (sys.stdin, "surrogateescape"),
        ):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors=errors)
        writer = None
        if os.name == "posix":
            writer = StderrWriter(sys.stderr.fileno())
            # Also what others write there: a traceback, a warning.
            sys.stderr = never_blocking(sys.stderr, writer)
            atexit.register(writer.drain)
        return cls(sys.stdout, sys.stderr, os.environ, Path.cwd(), writer=writer, herald=herald)

    @property
    def home(self) -> Path:
        """The directory of the person who runs the command."""
        name = "USERPROFILE" if self.platform == "win32" else "HOME"
        home = self.variables.get(name)
        if not home:
            raise CommandError(f"the variable `{name}` is not set, so no home directory is known")
        return Path(home)

    def tell(self, sentence: str) -> None:
        """Write a result that is a sentence; on a terminal it is wrapped at words."""
        self.say(self.paper.fill(sentence) if self.stdout.isatty() else sentence)

    def known_as(self, path: Path, stream: TextIO | None = None) -> str:
        """Return what a person calls a file; a program gets its whole path."""
        home = Path(self.variables.get("HOME") or "/")
        is_seen = (stream or self.stderr).isatty()
        is_own = is_seen and home != Path("/") and path.is_relative_to(home)
        return f"~/{path.relative_to(home)}" if is_own else str(path)

    def say(self, text: str) -> None:
        """Write a result, at once: what follows may take long."""
        self._write(self._legible(text))

    def say_anew(self, text: str) -> None:
        """Write a result in the place of the one before, where a terminal shows it."""
        before = CLEAR if self.stdout.isatty() else "\n"
        self._write(before + self._legible(text))

    def wait_while_read(self, seconds: float) -> None:
        """Wait that long, unless whoever reads our results goes away meanwhile.

        Raises:
            BrokenPipeError: It has gone, as `head` does: to write would tell, and we may not.
        """
        try:
            descriptor = self.stdout.fileno()
            poll = select.poll()
        except (OSError, ValueError, AttributeError):
            # Nobody can go away from what is no file, and Windows cannot be asked.
            time.sleep(seconds)
            return
        # An end is told of whatever is asked for.
        poll.register(descriptor, 0)
        if poll.poll(seconds * 1000):
            raise BrokenPipeError

    def hand_over(self, text: str) -> None:
        """Write what is not ours: a program gets it as it is, and a person what can be seen."""
        whole = self._legible(text) if self.stdout.isatty() else text
        self._write(whole)

    def say_nothing_more(self) -> None:
        """Write results nowhere from now on; what is held back of them would fail at the end."""
        with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), self.stdout.fileno())

    def note(self, text: str, end: str = "\n") -> None:
        """Write what a person may want to know beside the result."""
        self._put(self._wrapped(text), end)

    def complain(self, problem: str, hint: str | None = None) -> None:
        """Write what went wrong and, if there is something to do about it, what."""
        self._tell("error:", "red", problem)
        if hint:
            self.note(f"\nhint: {hint}")

    def warn(self, text: str) -> None:
        """Write what works but may not be meant."""
        self._tell("warning:", "yellow", text)

    def agrees(self, question: str) -> bool:
        """Ask a person, where somebody can answer, until it is a yes or a no.

        Raises:
            CommandError: There is nobody to ask.
        """
        while (answer := self._answer(question)) not in _ANSWERS:
            self.note("Answer `y` or `n`")
        return _ANSWERS[answer]

    def _answer(self, question: str) -> str:
        is_asked = _is_awaited(self.stdin)
        if is_asked:
            self.note(f"{question} [y/N] ", end="")
        answer = self.read_line()
        if not answer:
            if is_asked:
                self.note("")
            why = "nothing was answered" if self.stdin.isatty() else "there is nobody to ask"
            raise CommandError(f"nothing was changed, as {why}", "Repeat the command with `--yes`")
        return answer.strip().lower()

    def read_line(self) -> str:
        """Return what a person types, with its end; nothing when nobody will type any more."""
        return _recovered(self.stdin.readline(), self.stdin)

    def read_all(self) -> str:
        """Return all that comes on stdin."""
        # Programs write JSON as UTF-8, whatever a terminal's letters are.
        if hasattr(self.stdin, "buffer"):
            return self.stdin.buffer.read().decode("utf-8", "replace")
        return self.stdin.read()

    def width(self, stream: TextIO) -> int:
        """Return how many columns there are now to write in."""
        said = self.variables.get("COLUMNS", "")
        wanted = int(said) if said.isdecimal() and said.isascii() else 0
        if not stream.isatty():
            return wanted or READABLE
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        # What a shell has exported was true when it was exported.
        return columns or wanted or USUAL_WIDTH

    def ellipsis(self, stream: TextIO) -> str:
        """Return the sign for what is left out, in letters that the stream has."""
        try:
            "…".encode(stream.encoding or "utf-8")
        except (UnicodeError, LookupError):
            return "..."
        return "…"

    @property
    def paper(self) -> Paper:
        """What results are written on."""
        return Paper(self.width(self.stdout), self.paint, self.ellipsis(self.stdout))

    def paint(self, text: str, colour: Colour, stream: TextIO | None = None) -> str:
        """Return the text in a colour, where the stream shows colours and nobody minds."""
        if not self._shows_colours(stream or self.stdout):
            return text
        return f"{self.brush}{_CODES[colour]}m{text}{self.brush}0m"

    def _write(self, text: str) -> None:
        """Write a result.

        Raises:
            BrokenPipeError: Whoever read our results has gone.
            CommandError: There is no room for it.
        """
        try:
            print(text, file=self.stdout, flush=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            self.say_nothing_more()
            raise CommandError(f"standard output cannot be written: {in_words(error)}") from None

    def _legible(self, text: str) -> str:
        """Return a text whose only escapes are the colours that we gave it."""
        return "\x1b[".join(map(on_its_lines, text.split(self.brush)))

    def _tell(self, kind: str, colour: Colour, text: str) -> None:
        # What it quotes may have lines of its own, which must not pass for others of ours.
        whole = on_its_lines(text).replace("\n", "\n  ")
        told = self._wrapped(f"{kind} {whole}").removeprefix(kind)
        self._put(self.paint(kind, colour, self.stderr) + told)

    def _put(self, text: str, end: str = "\n") -> None:
        print(self._legible(text), end=end, file=self.stderr, flush=True)

    def _wrapped(self, text: str) -> str:
        """Wrap at words what a terminal would break anywhere; a program reads whole lines."""
        if not self.stderr.isatty():
            return text
        # Behind a question there is room for the answer.
        space = text[len(text.rstrip(" ")) :]
        return fill(text, min(self.width(self.stderr), READABLE), hanging="  ") + space

    def _shows_colours(self, stream: TextIO) -> bool:
        unwanted = self.variables.get("NO_COLOR") or self.variables.get("TERM") == "dumb"
        return stream.isatty() and not unwanted


def _open_what_is_closed() -> None:
    """Put nothing in the place of each standard stream that we were started without.

    The next file that is opened would take its number, and be read or written in its stead.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None and os.name == "posix":
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, _substitute(descriptor))


def _substitute(descriptor: int) -> TextIO:
    if descriptor == 1:
        return _Nowhere(os.fdopen(descriptor, "wb"), encoding="utf-8")
    return os.fdopen(descriptor, "w" if descriptor else "r", encoding="utf-8")


class _Nowhere(TextIOWrapper):
    """Standard output that is closed: a result that nobody gets is no success."""

    def write(self, _text: str) -> int:
        raise CommandError("standard output is closed, so there is no place for the result")


def _is_awaited(stream: TextIO) -> bool:
    """Return whether an answer is yet to come, from a person or through a pipe."""
    if stream.isatty():
        return True
    try:
        return not select.select([stream], [], [], 0)[0]
    except (OSError, ValueError):
        # It is nothing that the system can wait for.
        return False


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Write as JSON would what an encoding has no place for."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _recovered(text: str, stream: TextIO) -> str:
    """Return what was typed as UTF-8 where the encoding of the stream has no place for it."""
    if text.isascii() or not any("\udc80" <= each <= "\udcff" for each in text):
        return text
    return text.encode(stream.encoding, "surrogateescape").decode("utf-8", "replace")
