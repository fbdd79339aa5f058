"""A directory that the paths a caller gives cannot leave."""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path


class RefusedError(Exception):
    """A path that may not be used; the message says why."""


class Sandbox:
    """The files below one directory, named by paths relative to it."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()

    def locate(self, path: str) -> Path:
        """Return the real place of a path, with every symbolic link followed.

        Raises:
            RefusedError: The path leads out of the sandbox.
        """
        with readable(path):
            return self._inside(path, (self.root / path).resolve())

    def locate_entry(self, path: str) -> Path:
        """Return the place of a directory entry, which may itself be a symbolic link.

        Raises:
            RefusedError: The path leads out of the sandbox, or is the sandbox itself.
        """
        with readable(path):
            # `..` must be gone before the last part is taken for the entry's name.
            plain = Path(os.path.normpath(self.root / path))
            entry = self._inside(path, plain.parent.resolve() / plain.name)
        if entry == self.root:
            raise RefusedError("That is the sandbox itself; name a file or directory in it")
        return entry

    def name(self, place: Path) -> str:
        """Return the path that leads to a place, as a caller would write it."""
        return place.relative_to(self.root).as_posix()

    def files(self, directory: Path, pattern: str = "*") -> Iterator[Path]:
        """Yield, in order, the regular files below a directory whose path fits a glob pattern."""
        for parent, directories, names in os.walk(directory):
            directories.sort()
            for name in sorted(names):
                place = Path(parent, name)
                if place.match(pattern) and place.is_file() and not place.is_symlink():
                    yield place

    def _inside(self, path: str, place: Path) -> Path:
        if not place.is_relative_to(self.root):
            raise RefusedError(
                f"`{path}` leads out of the sandbox; use a path below it, such as `docs/a.md`"
            )
        return place


@contextmanager
def readable(path: str) -> Generator[None]:
    """Turn what the operating system says of a path into a sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise RefusedError(f"There is no `{path}`; `list_directory` shows what there is") from error
    except FileExistsError as error:
        raise RefusedError(f"`{path}` exists already") from error
    except UnicodeDecodeError as error:
        raise RefusedError(f"`{path}` is not UTF-8 text") from error
    except OSError as error:
        raise RefusedError(f"`{path}`: {error.strerror or error}") from error
    except ValueError as error:
        raise RefusedError(f"`{path}` is not a path: {error}") from error
    except RuntimeError as error:
        raise RefusedError(f"`{path}` is a symbolic link that leads to itself") from error
