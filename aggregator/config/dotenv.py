"""Read variables from an env file."""

import re
from collections.abc import Iterator
from pathlib import Path

from aggregator.basics.files import in_words, read_within

MAX_BYTES = 1 << 20
"""Bytes an env file may have."""

_SKIPPED = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_ASSIGNMENT = re.compile(
    r"""
    [ \t]*(?:export[ \t]+)?
    (?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*
    (?:"(?P<double>(?:[^"\\]|\\.)*)"
      |'(?P<single>[^']*)'
      |(?P<plain>(?!["'])[^\n]*?))
    [ \t]*(?:(?<=[\s"'=])\#[^\n]*)?(?:\n|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class EnvFileError(Exception):
    """An env file that cannot be used."""

    def __init__(self, path: Path, problem: str, line: int | None = None) -> None:
        where = f"`{path}`" if line is None else f"`{path}`, line {line}"
        super().__init__(f"{where}: {problem}")
        self.path = path
        self.problem = problem
        self.line = line

    @property
    def missing(self) -> bool:
        """Whether there is no such file."""
        return isinstance(self.__cause__, FileNotFoundError)


def read_env_file(path: Path, deadline: float | None = None) -> dict[str, str]:
    """Return the variables in an env file; one that is a pipe must have ended by the deadline.

    Raises:
        EnvFileError: It cannot be read, or a line is not `NAME=value`.
    """
    try:
        raw = read_within(path, MAX_BYTES, deadline)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise EnvFileError(path, _reason(error)) from error
    except UnicodeDecodeError:
        raise EnvFileError(path, "is not UTF-8 text") from None
    if len(raw) > MAX_BYTES or "\0" in text:
        raise EnvFileError(path, "is not an env file")
    return dict(assignments(path, text.replace("\r\n", "\n")))


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    return f"cannot be read: {in_words(error)}"


def assignments(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield the variables in the text of an env file.

    Raises:
        EnvFileError: A line is not `NAME=value`.
    """
    position = 0
    while position < len(text):
        if skipped := _SKIPPED.match(text, position):
            position = skipped.end()
        elif found := _ASSIGNMENT.match(text, position):
            yield found["name"], _value(found)
            position = found.end()
        else:
            line = text.count("\n", 0, position) + 1
            raise EnvFileError(path, "expected `NAME=value`", line)


def _value(found: re.Match[str]) -> str:
    if found["double"] is not None:
        return _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), found["double"])
    return found["single"] if found["single"] is not None else found["plain"]
