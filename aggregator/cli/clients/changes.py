"""Changes to files: shown before they are made, made whole or not at all."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from aggregator.cli.environment import CommandError, Environment
from aggregator.files import in_words, replace_file

HIDDEN = "***"
PRIVATE = 0o600


@dataclass(frozen=True)
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


def show(changes: Iterable[Change], secrets: Iterable[str], environment: Environment) -> None:
    """Print what would change, without a secret."""
    for change in changes:
        for line in _diff(change, sorted(secrets, key=len, reverse=True)):
            colour = {"+": "green", "-": "red", "@": "dim"}.get(line[:1])
            match colour:
                case "green" | "red" | "dim":
                    environment.say(environment.paint(line, colour))
                case _:
                    environment.say(line)


def check(changes: Iterable[Change]) -> None:
    """Refuse to overwrite what others wrote since a person was shown what would change.

    Raises:
        CommandError: A file is not what it was.
    """
    for change in changes:
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
    return (line.rstrip("\r\n") for line in unified_diff(before, after, *names, n=2))


def _lines(data: bytes | None, change: Change, secrets: Sequence[str]) -> list[str]:
    text = (data or b"").decode(errors="replace")
    if change.confidential:
        lines = text.splitlines(keepends=True)
        return [f"{line.partition('=')[0]}={HIDDEN}\n" for line in lines if "=" in line]
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text.splitlines(keepends=True)


def _write(change: Change) -> None:
    """Replace a file whole, through a link if it is one, with the rights it had."""
    path = change.path.resolve()
    if change.after is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else _new_mode(change)
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(13, "Permission denied")
    replace_file(path, change.after, mode=mode)


def _new_mode(change: Change) -> int:
    umask = os.umask(0)
    os.umask(umask)
    return PRIVATE if change.confidential else 0o666 & ~umask
