"""Notes, tags and links in one SQLite file."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS tags (
    note INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (note, tag)
);
CREATE TABLE IF NOT EXISTS links (
    source INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    PRIMARY KEY (source, target)
);
"""


@dataclass(frozen=True)
class Note:
    """A whole note."""

    id: int
    title: str
    body: str
    tags: list[str]
    links_to: list[int]
    linked_from: list[int]
    created: str
    updated: str


@dataclass(frozen=True)
class TagCount:
    """A tag and the number of notes that carry it."""

    tag: str
    notes: int


class NoSuchNoteError(LookupError):
    """There is no note of that number."""

    def __init__(self, note_id: int) -> None:
        super().__init__(f"There is no note {note_id}")


class Store:
    """The notes of one database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Generator["Store"]:
        """Open the file, made if need be; what is done inside is saved together or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as database:
            database.executescript(SCHEMA)
            database.execute("PRAGMA foreign_keys = ON")
            with database:
                yield cls(database)

    def add(self, title: str, body: str, tags: Sequence[str]) -> int:
        """Add a note and return its number."""
        now = _now()
        cursor = self._database.execute(
            "INSERT INTO notes (title, body, created, updated) VALUES (?, ?, ?, ?)",
            (title, body, now, now),
        )
        note_id = int(cursor.lastrowid or 0)
        self.tag(note_id, tags)
        return note_id

    def get(self, note_id: int) -> Note:
        """Return a note.

        Raises:
            NoSuchNoteError: No note has that number.
        """
        row = self._database.execute(
            "SELECT title, body, created, updated FROM notes WHERE id = ?", (note_id,)
        ).fetchone()
        if row is None:
            raise NoSuchNoteError(note_id)
        title, body, created, updated = row
        return Note(
            id=note_id,
            title=title,
            body=body,
            tags=self._column("SELECT tag FROM tags WHERE note = ? ORDER BY 1", note_id),
            links_to=self._column("SELECT target FROM links WHERE source = ? ORDER BY 1", note_id),
            linked_from=self._column(
                "SELECT source FROM links WHERE target = ? ORDER BY 1", note_id
            ),
            created=created,
            updated=updated,
        )

    def ids(self, tag: str | None = None) -> list[int]:
        """Return the numbers of all notes, or of those with a tag, the newest change first."""
        if tag is None:
            rows = self._database.execute("SELECT id FROM notes ORDER BY updated DESC, id DESC")
        else:
            rows = self._database.execute(
                "SELECT id FROM notes JOIN tags ON note = id WHERE tag = ?"
                " ORDER BY updated DESC, id DESC",
                (clean_tag(tag),),
            )
        return [row[0] for row in rows]

    def rewrite(self, note_id: int, title: str, body: str) -> None:
        """Give a note another title and text."""
        self._database.execute(
            "UPDATE notes SET title = ?, body = ?, updated = ? WHERE id = ?",
            (title, body, _now(), note_id),
        )

    def remove(self, note_id: int) -> None:
        """Delete a note with its tags and links."""
        self._database.execute("DELETE FROM notes WHERE id = ?", (note_id,))

    def tag(self, note_id: int, tags: Sequence[str]) -> None:
        """Put tags on a note."""
        rows = [(note_id, clean_tag(tag)) for tag in tags if clean_tag(tag)]
        self._database.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", rows)

    def untag(self, note_id: int, tags: Sequence[str]) -> None:
        """Take tags off a note."""
        rows = [(note_id, clean_tag(tag)) for tag in tags]
        self._database.executemany("DELETE FROM tags WHERE note = ? AND tag = ?", rows)

    def tag_counts(self) -> list[TagCount]:
        """Return every tag with the number of its notes, the most used first."""
        rows = self._database.execute(
            "SELECT tag, count(*) FROM tags GROUP BY tag ORDER BY count(*) DESC, tag"
        )
        return [TagCount(tag, notes) for tag, notes in rows]

    def link(self, source: int, target: int) -> None:
        """Link one note to another."""
        self._database.execute("INSERT OR IGNORE INTO links VALUES (?, ?)", (source, target))

    def unlink(self, source: int, target: int) -> bool:
        """Remove a link and say whether there was one."""
        cursor = self._database.execute(
            "DELETE FROM links WHERE source = ? AND target = ?", (source, target)
        )
        return cursor.rowcount > 0

    def _column(self, statement: str, note_id: int) -> list[Any]:
        return [row[0] for row in self._database.execute(statement, (note_id,))]


def clean_tag(tag: str) -> str:
    """Return the tag as it is kept: without `#`, in lower case."""
    return tag.strip().lstrip("#").casefold()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
