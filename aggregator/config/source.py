"""The file itself: its text, and errors that point into it."""

import os
import shlex
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from aggregator.basics.files import in_words, read_within
from aggregator.basics.frozen import frozen
from aggregator.config.document import MAX_CHARACTERS, Document, Location, Value, dotted
from aggregator.config.dotenv import read_env_file
from aggregator.config.variables import Expansion
from aggregator.config.wording import first_of, problems
from aggregator.entry.place import CONFIG_VARIABLE, user_config
from aggregator.errors import ConfigError

_Form = TypeVar("_Form", bound=BaseModel)


@frozen(slots=False)
class Source:
    """A file that has been read, and the place relative paths in it start from."""

    path: Path
    document: Document
    deadline: float | None = None
    """When pipes that it names must have been read, on the clock of `time.monotonic`."""
    home: str | None = None
    """What `~` stands for, which is the home of whoever it is read for, and not of this process."""
    names: set[str] = field(default_factory=set[str])
    """The variables that it has been found to refer to."""
    files: dict[Path, None] = field(default_factory=dict[Path, None])
    """The files of variables that it has been found to refer to."""

    @property
    def directory(self) -> Path:
        """The directory of the file."""
        return self.path.absolute().parent

    def resolved(self, written: str) -> Path:
        """Return a path in the file as an absolute one."""
        if self.home and (written == "~" or written.startswith("~/")):
            return Path(self.home, written[2:])
        with suppress(RuntimeError):  # there is no such user: then `~` is a name like any other
            return self.directory / Path(written).expanduser()
        return self.directory / written

    def error(self, problem: str, location: Location, hint: str | None = None) -> ConfigError:
        """Return an error that points at a location."""
        return ConfigError(str(self.path), problem, line=self.document.line(location), hint=hint)

    def variables_in(self, path: Path) -> dict[str, str]:
        """Return the variables in a file that this one refers to.

        Raises:
            EnvFileError: It cannot be read, or a line is not `NAME=value`.
        """
        self.files[path] = None
        return read_env_file(path, self.deadline)

    def check_references(self, expansion: Expansion) -> None:
        """Take note of variables, and refuse a `${` that begins nothing.

        Raises:
            ConfigError: There is one.
        """
        self.names.update(expansion.used, expansion.missing.values())
        for location in expansion.bad:
            raise self.error(
                f"`{dotted(location)}` has a `${{` that is not `${{NAME}}`, `${{NAME:-default}}` "
                "or `${keyring:NAME}`",
                location,
                "Write `$${` for a literal `${`",
            )

    def filled(self, form: type[_Form], data: Value, location: Location) -> _Form:
        """Return the form filled in with what stands at a location.

        Raises:
            ConfigError: It does not fit.
        """
        try:
            return form.model_validate(data)
        except ValidationError as error:
            # Not chained: pydantic's own text quotes values, and they may be secrets.
            found = problems(error, self.document, str(self.path), location)
            raise first_of(found) from None


def read_text(
    path: Path, environ: Mapping[str, str] = MappingProxyType({}), deadline: float | None = None
) -> str:
    """Return the text of a file; one that is a pipe must have ended by the deadline.

    Raises:
        ConfigError: There is no such file, or it is not text of a reasonable size.
    """
    raw = _read_bytes(path, environ, deadline)
    if len(raw) > MAX_CHARACTERS:
        raise ConfigError(str(path), "is larger than 1 MiB", is_of_file=True)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            str(path), "is not UTF-8 text", line=line, hint="Save the file as UTF-8"
        ) from None


def _read_bytes(path: Path, environ: Mapping[str, str], deadline: float | None) -> bytes:
    try:
        return read_within(path, MAX_CHARACTERS, deadline)
    except FileNotFoundError:
        makes = f"`aggregator init{_place(path, environ)}` makes one for you"
        is_named = _is_named(path, environ.get(CONFIG_VARIABLE) or "")
        other = f"`{CONFIG_VARIABLE}` names this file" if is_named else "`--config` names another"
        hint = f"{makes}; {other}"
        raise ConfigError(str(path), "does not exist", hint=hint, is_of_file=True) from None
    except IsADirectoryError:
        hint = "Name the file in it, such as `servers.yaml`"
        raise ConfigError(str(path), "is a directory", hint=hint, is_of_file=True) from None
    except OSError as error:
        reason = in_words(error)
        raise ConfigError(str(path), f"cannot be read: {reason}", is_of_file=True) from None
    except ValueError:
        raise ConfigError(repr(str(path)), "is not a path") from None


def _is_named(path: Path, named: str) -> bool:
    """Return whether a file is the one that the environment names, from wherever that counts."""
    parts = Path(named).expanduser().parts
    return bool(parts) and path.parts[-len(parts) :] == parts


def _place(path: Path, environ: Mapping[str, str]) -> str:
    """Return what `init` has to be told to make a file, if it would make another by itself."""
    is_usual = not environ.get(CONFIG_VARIABLE) and str(path) == user_config(environ)
    return "" if is_usual else f" --config {shlex.quote(str(path))}"


def anyone_can_write(path: Path) -> bool:
    """Return whether every user of this machine may change which programs are started."""
    with suppress(OSError):  # what has been read may be gone by now, as in the middle of an edit
        return os.name == "posix" and bool(path.stat().st_mode & stat.S_IWOTH)
    return False
