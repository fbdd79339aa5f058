"""An MCP server that keeps personal notes, with tags and links, in one SQLite file.

The file is `NOTES_DB`, or `mcp-tool-aggregator/examples/notes.db` in the user's state directory;
it is made when the first tool is called.
"""

import json
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from notes_store import NoSuchNoteError, Note, Store, TagCount
from pydantic import Field
from serving import ADDS, EDITS, READS, REPLACES, SETS, ExampleServer, plural, serve, state_path

TITLE_LENGTH = 80
"""Characters of a quick note's first line that become its title."""

SNIPPET_LENGTH = 160
"""Characters of a note's text shown in a list."""

NoteId = Annotated[int, Field(description="The number of the note", ge=1)]
Title = Annotated[str, Field(description="A short title", min_length=1, max_length=200)]
Body = Annotated[str, Field(description="The text of the note; Markdown is welcome")]
Tags = Annotated[tuple[str, ...], Field(description="Tags; `#` and letter case are ignored")]
OneTag = Annotated[str | None, Field(description="Only notes that carry this tag")]
Limit = Annotated[int, Field(description="At most this many notes", ge=1, le=200)]
Source = Annotated[int, Field(description="The number of the note that refers to the other", ge=1)]
Target = Annotated[int, Field(description="The number of the note that is referred to", ge=1)]

server = ExampleServer(
    "notes",
    title="Notes",
    instructions="Personal notes in SQLite: jot down, search, tag, link and export them.",
)


@dataclass(frozen=True)
class Summary:
    """A note as it stands in a list."""

    id: int
    title: str
    snippet: str
    tags: list[str]
    updated: str


@dataclass(frozen=True)
class Listing:
    """Some notes, and how many there are in all."""

    notes: list[Summary]
    total: int


@dataclass(frozen=True)
class TagListing:
    """Every tag in use."""

    tags: list[TagCount]


@server.offer(
    "Quick note",
    ADDS,
    hint="jot down remember memo remind write save idea",
    always_load=True,
)
def quick_note(text: Annotated[str, Field(description="What to remember", min_length=1)]) -> str:
    """Save a thought as a note in one step; its first line becomes the title.

    Use `create_note` instead to choose a title and tags.
    """
    first_line = text.strip().partition("\n")[0][:TITLE_LENGTH]
    return create_note(first_line or "Untitled", text)


@server.offer("Create a note", ADDS, hint="memo journal jot down write new")
def create_note(title: Title, body: Body = "", tags: Tags = ()) -> str:
    """Create a note with a title, a text and tags, and return its number."""
    with _store() as store:
        return f"Created note {store.add(title, body, tags)}: {title}"


@server.offer("Read a note", READS)
def get_note(note_id: NoteId) -> Note:
    """Return one note whole: its text, its tags, and the links to and from other notes."""
    with _store() as store:
        return store.get(note_id)


@server.offer("Search notes", READS, hint="find lookup recall what did I write")
def search_notes(
    query: Annotated[str, Field(description="Words that must all occur", min_length=1)],
    tag: OneTag = None,
    limit: Limit = 20,
) -> Listing:
    """Find the notes whose title, text or tags contain all the words, in any order or letter case.

    Notes with the words in their title come first.
    """
    words = query.casefold().split()
    found = [note for note in _notes(tag) if _contains(words, _searchable(note))]
    found.sort(key=lambda note: not _contains(words, note.title))
    return _listing(found, limit)


@server.offer("List notes", READS)
def list_notes(
    order: Annotated[
        Literal["newest", "oldest", "title"],
        Field(description="`newest` by last change, `oldest` by creation, or by `title`"),
    ] = "newest",
    tag: OneTag = None,
    limit: Limit = 50,
    offset: Annotated[int, Field(description="Skip this many notes", ge=0)] = 0,
) -> Listing:
    """List notes with a line of each: all of them, or those with a tag."""
    notes = _notes(tag)
    if order == "oldest":
        notes.sort(key=lambda note: (note.created, note.id))
    if order == "title":
        notes.sort(key=lambda note: note.title.casefold())
    return _listing(notes, limit, offset)


@server.offer("Update a note", EDITS)
def update_note(
    note_id: NoteId,
    title: Annotated[str | None, Field(description="The new title, if it changes")] = None,
    body: Annotated[str, Field(description="The new text, or the text to append")] = "",
    mode: Annotated[
        Literal["keep", "replace", "append"],
        Field(description="What happens to the text; `append` starts a new line"),
    ] = "keep",
) -> Note:
    """Change a note's title, and replace its text or append to it."""
    if body and mode == "keep":
        raise ToolError("Set `mode` to `replace` or `append` to say what `body` is for")
    with _store() as store:
        old = store.get(note_id)
        texts = {"keep": old.body, "replace": body, "append": f"{old.body}\n{body}".lstrip("\n")}
        store.rewrite(note_id, title or old.title, texts[mode])
        return store.get(note_id)


@server.offer("Delete a note", REPLACES)
def delete_note(note_id: NoteId) -> str:
    """Delete a note for good, together with its tags and links."""
    with _store() as store:
        title = store.get(note_id).title
        store.remove(note_id)
    return f"Deleted note {note_id}: {title}"


@server.offer("Tag a note", SETS, hint="label categorize organize")
def tag_note(note_id: NoteId, tags: Tags) -> Note:
    """Add tags to a note; the tags it has already stay."""
    with _store() as store:
        store.get(note_id)
        store.tag(note_id, tags)
        return store.get(note_id)


@server.offer("Remove tags from a note", SETS)
def untag_note(note_id: NoteId, tags: Tags) -> Note:
    """Take tags off a note; tags it does not have are ignored."""
    with _store() as store:
        store.untag(note_id, tags)
        return store.get(note_id)


@server.offer("List tags", READS)
def list_tags() -> TagListing:
    """List every tag with the number of notes that carry it, the most used first."""
    with _store() as store:
        return TagListing(store.tag_counts())


@server.offer("Link two notes", SETS, hint="connect relate reference backlink")
def link_notes(source: Source, target: Target) -> str:
    """Link one note to another; `get_note` shows the link on both."""
    if source == target:
        raise ToolError("A note cannot be linked to itself: give two different numbers")
    with _store() as store:
        titles = store.get(source).title, store.get(target).title
        store.link(source, target)
    return f"Linked note {source} ({titles[0]}) to note {target} ({titles[1]})"


@server.offer("Unlink two notes", SETS)
def unlink_notes(source: Source, target: Target) -> str:
    """Remove the link from one note to another."""
    with _store() as store:
        if not store.unlink(source, target):
            raise ToolError(f"There is no link from note {source} to note {target}")
    return f"Removed the link from note {source} to note {target}"


@server.offer("Export notes", READS, hint="backup download dump all markdown json")
async def export_notes(
    ctx: Context,
    form: Annotated[
        Literal["markdown", "json"], Field(description="The form of the document")
    ] = "markdown",
    tag: OneTag = None,
) -> str:
    """Return all notes, or those with a tag, as one document; reports progress note by note."""
    notes: list[Note] = []
    with _store() as store:
        ids = store.ids(tag)
        for done, note_id in enumerate(ids, start=1):
            notes.append(store.get(note_id))
            await ctx.report_progress(done, len(ids), f"Exported {plural(done, 'note')}")
    if form == "json":
        return json.dumps([asdict(note) for note in notes], indent=2, ensure_ascii=False)
    return "\n\n".join(map(_markdown, notes)) or "There are no notes to export"


@server.resource("notes://recent", title="Recent notes", mime_type="text/markdown")
def recent_notes() -> str:
    """List the ten notes changed last, one line each."""
    lines = [f"- {note.id}: {note.title}" for note in _notes(None)[:10]]
    return "\n".join(lines) or "There are no notes yet"


@server.resource("notes://note/{note_id}", title="A note", mime_type="text/markdown")
def note_document(note_id: str) -> str:
    """Show one note as a Markdown document."""
    try:
        return _markdown(get_note(int(note_id)))
    except (ValueError, ToolError) as error:
        raise ResourceNotFoundError(f"There is no note {note_id}") from error


@server.prompt(title="Summarise notes")
def summarise_notes(
    topic: Annotated[str, Field(description="What the summary is about")],
) -> str:
    """Ask for a summary of what the notes say about a topic."""
    found = search_notes(topic).notes
    listed = "\n".join(f"- note {note.id}: {note.title}" for note in found) or "- none found"
    return (
        f"Summarise what my notes say about {topic}. These mention it:\n{listed}\n"
        "Read them with `get_note`, follow their links, and cite the numbers of the notes."
    )


@contextmanager
def _store() -> Generator[Store]:
    """Open the notes; what goes wrong inside becomes an error the caller can read."""
    path = state_path("NOTES_DB", "notes.db")
    try:
        with Store.open(path) as store:
            yield store
    except NoSuchNoteError as error:
        raise ToolError(f"{error}; `list_notes` and `search_notes` show the numbers") from error
    except (OSError, sqlite3.Error) as error:
        raise ToolError(f"The notes in `{path}` cannot be used: {error}") from error


def _notes(tag: str | None) -> list[Note]:
    with _store() as store:
        return [store.get(note_id) for note_id in store.ids(tag)]


def _searchable(note: Note) -> str:
    return " ".join([note.title, note.body, *note.tags])


def _contains(words: list[str], text: str) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def _listing(notes: list[Note], limit: int, offset: int = 0) -> Listing:
    page = notes[offset : offset + limit]
    return Listing(notes=[_summary(note) for note in page], total=len(notes))


def _summary(note: Note) -> Summary:
    snippet = " ".join(note.body.split())
    if len(snippet) > SNIPPET_LENGTH:
        snippet = snippet[: SNIPPET_LENGTH - 1] + "…"
    return Summary(note.id, note.title, snippet, note.tags, note.updated)


def _markdown(note: Note) -> str:
    tags = " ".join(f"#{tag}" for tag in note.tags)
    links = ", ".join(f"note {target}" for target in note.links_to)
    parts = [f"# {note.title}", tags, note.body, links and f"See also: {links}"]
    return "\n\n".join(part for part in parts if part)


if __name__ == "__main__":
    serve(server)
