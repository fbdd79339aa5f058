"""Vectors that outlive a run, by a hash of the text they stand for.

Losing one costs a few milliseconds, so nothing here ever raises: a file that is damaged is
replaced, and where none can be used, vectors are kept for as long as the process lives.
"""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from time import time

MAX_VECTORS = 50_000
"""Vectors kept on disk, about 45 MB; those unused for longest leave first."""
PATIENCE = 1.0
"""Seconds to wait for another process that is writing."""
DAY = 86_400
"""Seconds; when a vector was last of use is noted by the day."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS vectors"
    " (key BLOB PRIMARY KEY, vector BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID"
)
_READ = "SELECT vector FROM vectors WHERE key = ?"
_WRITE = "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)"
_TOUCH = "UPDATE vectors SET used = ? WHERE key = ? AND used < ?"
_PRUNE = (
    "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors ORDER BY used, key"
    " LIMIT max(0, (SELECT count(*) FROM vectors) - ?))"
)


class Cache:
    """The vectors of one model, each of the same number of bytes."""

    def __init__(
        self,
        path: Path | None,
        *,
        model: str,
        size: int,
        limit: int = MAX_VECTORS,
        clock: Callable[[], float] = time,
    ) -> None:
        self._model = blake2b(model.encode()).digest()
        self._size = size
        self._limit = limit
        self._clock = clock
        self._found: set[bytes] = set()
        self._database = _opened(path)

    def get(self, text: str) -> bytes | None:
        """Return the vector of a text, if it is known and whole."""
        key = self._key(text)
        with suppress(sqlite3.Error):
            row: tuple[object] | None = self._database.execute(_READ, (key,)).fetchone()
            if row and isinstance(row[0], bytes) and len(row[0]) == self._size:
                self._found.add(key)
                return row[0]
        return None

    def put(self, vectors: Iterable[tuple[str, bytes]]) -> None:
        """Keep the vectors of some texts."""
        today = self._today()
        rows = [(self._key(text), vector, today) for text, vector in vectors]
        with suppress(sqlite3.Error), self._database:
            self._database.executemany(_WRITE, rows)

    def tidy(self) -> None:
        """Note what was of use, and let go of what exceeds the bound."""
        today = self._today()
        with suppress(sqlite3.Error), self._database:
            self._database.executemany(_TOUCH, [(today, key, today) for key in self._found])
            self._database.execute(_PRUNE, (self._limit,))
        self._found.clear()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _today(self) -> int:
        return int(self._clock()) // DAY

    def _key(self, text: str) -> bytes:
        return blake2b(text.encode(), key=self._model, digest_size=16).digest()


def _opened(path: Path | None) -> sqlite3.Connection:
    """Return a database in a file, or in memory where there can be none."""
    if path is not None:
        with suppress(OSError, sqlite3.Error):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _sound(path)
    return _connected(":memory:")


def _sound(path: Path) -> sqlite3.Connection:
    """Return the database of a file; one that is damaged is begun again."""
    try:
        return _connected(str(path))
    except sqlite3.OperationalError:
        # Another process is busy with it: that is no damage.
        raise
    except sqlite3.DatabaseError:
        path.unlink()
        return _connected(str(path))


def _connected(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name, timeout=PATIENCE)
    try:
        database.execute(_TABLE)
        database.commit()
        if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError(name)
    except sqlite3.Error:
        database.close()
        raise
    return database
