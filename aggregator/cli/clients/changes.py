"""Changes to files: shown before they are made, made whole or not at all."""

import os
import shlex
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from io import StringIO
from pathlib import Path

from aggregator.basics.files import in_words, replace_file
from aggregator.basics.frozen import frozen
from aggregator.basics.glyphs import escaped
from aggregator.cli.environment import CommandError, Environment
from aggregator.config.dotenv import EnvFileError, assignments

HIDDEN = "***"
PRIVATE = 0o600
OF_OTHERS = 0o077
"""The rights that nobody but the owner has in what is private."""


@frozen(slots=False)
class Change:
    """What a file was and what it is to be; `None` where there is none."""

    path: Path
    before: bytes | None
    after: bytes | None
    confidential: bool = False
    """Whether only the names in it may be shown, as in an env file."""

    @property
    def is_needed(self) -> bool:
        """Whether anything changes at all."""
        return self.before != self.after


def show(
    changes: Iterable[Change], secrets: Iterable[str], environment: Environment, *, asks: bool
) -> None:
    """Print what would change, without a secret; `asks` says whether a person agrees to it first.

    Raises:
        CommandError: They would be asked about what nobody has read to its end.
    """
    with announcing(environment, asks=asks):
        for change in changes:
            for line in _diff(change, sorted(secrets, key=len, reverse=True)):
                colour = {"+": "green", "-": "red", "@": "dim"}.get(line[:1])
                match colour:
                    case "green" | "red" | "dim":
                        environment.say(environment.paint(line, colour))
                    case _:
                        environment.say(line)


@contextmanager
def announcing(environment: Environment, *, asks: bool) -> Generator[None]:
    """Let whoever reads what is about to be done go away before its end, unless a person is asked.

    Raises:
        CommandError: One would be.
    """
    try:
        yield
    except BrokenPipeError:
        environment.say_nothing_more()
        if asks:
            raise CommandError(
                "nothing was changed, as what would change was not read to its end",
                "Repeat the command with `--yes`, or without `|`",
            ) from None


def check(changes: Iterable[Change]) -> None:
    """Refuse to overwrite what others wrote since a person was shown what would change.

    Raises:
        CommandError: A file is not what it was, or others could read what is confidential.
    """
    for change in changes:
        if change.confidential:
            check_private(change.path)
        if content(change.path) != change.before:
            raise CommandError(
                f"`{change.path}` has changed meanwhile", "Run it again; nothing was written"
            )


def make(changes: Sequence[Change]) -> None:
    """Write all files, or leave them as they were.

    Raises:
        CommandError: A file is not what it was, or cannot be written.
    """
    check(changes)
    done: list[Change] = []
    for change in changes:
        try:
            _write(change)
        except OSError as error:
            for each in done:
                _write(Change(each.path, each.after, each.before))
            reason = in_words(error)
            raise CommandError(
                f"`{change.path}` cannot be written: {reason}", "Nothing was changed"
            ) from None
        done.append(change)


def content(path: Path) -> bytes | None:
    """Return what a file holds, or nothing if there is none.

    Raises:
        CommandError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = in_words(error)
        raise CommandError(f"`{path}` cannot be read: {reason}") from None


def _diff(change: Change, secrets: Sequence[str]) -> Iterable[str]:
    before, after = (_lines(each, change, secrets) for each in (change.before, change.after))
    sides = (change.before, change.after)
    names = ("/dev/null" if each is None else str(change.path) for each in sides)
    return (escaped(line.rstrip("\r\n")) for line in unified_diff(before, after, *names, n=2))


def _lines(data: bytes | None, change: Change, secrets: Sequence[str]) -> list[str]:
    text = (data or b"").decode(errors="replace")
    if change.confidential:
        return _names(change.path, text)
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    # Nothing else ends a line of a file, whatever some programs take for an end.
    return list(StringIO(text))


def _names(path: Path, text: str) -> list[str]:
    """Return the lines of an env file without their values, which may go on over several."""
    try:
        return [f"{name}={HIDDEN}\n" for name, _ in assignments(path, text.replace("\r\n", "\n"))]
    except EnvFileError:
        return [f"{HIDDEN}\n"]


def check_private(path: Path) -> None:
    """Refuse to put secrets where others would read them, and where that is for them to change.

    Raises:
        CommandError: A link leads to a file that others can read.
    """
    if os.name != "posix" or not path.is_symlink() or not path.exists():
        return
    target = path.resolve()
    if stat.S_IMODE(target.stat().st_mode) & OF_OTHERS:
        raise CommandError(
            f"`{path}` is a link to `{target}`, which others can read; no secret goes there",
            f"`chmod 600 {shlex.quote(str(target))}` makes it yours alone; or remove the link",
        )


def _write(change: Change) -> None:
    """Replace a file whole, through a link if it is one, with the rights it had.

    What is confidential is for its owner alone, whoever could read it before.
    """
    path = change.path.resolve()
    if change.after is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    keeps = path.exists() and not change.confidential
    mode = path.stat().st_mode & 0o777 if keeps else _new_mode(change)
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(13, "Permission denied")
    replace_file(path, change.after, mode=mode)


def _new_mode(change: Change) -> int:
    umask = os.umask(0)
    os.umask(umask)
    return PRIVATE if change.confidential else 0o666 & ~umask
