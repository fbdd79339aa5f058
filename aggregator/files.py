"""Files that are replaced whole, and what is wrong with those that cannot be."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replace a file whole, so that no crash leaves half of one.

    Without a mode, only its owner may read it.

    Raises:
        OSError: It could not be written; what was there is as it was.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def in_words(error: OSError) -> str:
    """Say what the system says of a file, without its number and its path."""
    return (error.strerror or str(error)).lower()
