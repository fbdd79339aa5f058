"""An MCP server that reads and writes files in one directory, and cannot leave it.

The directory is `FILES_ROOT`, or `mcp-tool-aggregator/examples/files` in the user's state
directory; it is made when the first tool is called.
"""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    Resolve,
)
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field
from sandbox import RefusedError, Sandbox, readable
from serving import ADDS, EDITS, READS, REPLACES, SETS, ExampleServer, plural, serve, state_path

MAX_BYTES = 1_000_000
"""The largest file, in bytes, that is read, searched or written."""

MAX_ENTRIES = 500
"""The most directory entries or matches in one answer."""

LINE_LENGTH = 200
"""Characters of a matching line that are shown."""

PathInSandbox = Annotated[str, Field(description="A path relative to the sandbox", min_length=1)]
Directory = Annotated[str, Field(description="A directory; `.` is the whole sandbox")]
Pattern = Annotated[str, Field(description="Which files, as a glob such as `*.md` or `docs/*.txt`")]

server = ExampleServer(
    "files",
    title="Files",
    instructions="Files in one sandboxed directory: read, write, search, move and delete them.",
)


@dataclass(frozen=True)
class Entry:
    """What is known of a file or directory without reading it."""

    path: str
    kind: Literal["file", "directory", "link", "other"]
    bytes: int
    modified: str


@dataclass(frozen=True)
class DirectoryListing:
    """The entries of a directory; `more` when some were left out."""

    entries: list[Entry]
    more: bool


@dataclass(frozen=True)
class Match:
    """A line that contains what was searched for."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class SearchResult:
    """Matching lines; `more` when some were left out."""

    matches: list[Match]
    files_searched: int
    files_skipped: int
    more: bool


class Confirmation(BaseModel):
    """What a person is asked before a directory full of files is deleted."""

    delete: bool = Field(description="Delete the directory and everything in it")


@server.offer("List a directory", READS, hint="ls dir folder contents browse")
def list_directory(path: Directory = ".") -> DirectoryListing:
    """List the files and directories in a directory, with size and time of the last change."""
    with _sandbox(path) as sandbox:
        places = sorted(sandbox.locate(path).iterdir())
        entries = [_entry(sandbox, place) for place in places[:MAX_ENTRIES]]
    return DirectoryListing(entries, more=len(places) > MAX_ENTRIES)


@server.offer("Find files", READS, hint="glob locate by name where is")
def find_files(pattern: Pattern, path: Directory = ".") -> DirectoryListing:
    """Find files by name anywhere below a directory."""
    with _sandbox(path) as sandbox:
        found = list(islice(sandbox.files(sandbox.locate(path), pattern), MAX_ENTRIES + 1))
        entries = [_entry(sandbox, place) for place in found[:MAX_ENTRIES]]
    return DirectoryListing(entries, more=len(found) > MAX_ENTRIES)


@server.offer("File information", READS, hint="stat size modified exists")
def file_info(path: PathInSandbox) -> Entry:
    """Tell what a path is, how large it is and when it was changed, without reading it."""
    with _sandbox(path) as sandbox:
        return _entry(sandbox, sandbox.locate(path))


@server.offer("Read a file", READS, hint="cat open show contents view")
def read_file(
    path: PathInSandbox,
    first_line: Annotated[int, Field(description="Start with this line", ge=1)] = 1,
    lines: Annotated[int, Field(description="At most this many lines", ge=1, le=10_000)] = 2_000,
) -> str:
    """Return the text of a file or some of its lines; binary or over 1 MB is refused."""
    with _sandbox(path) as sandbox:
        text = _read(sandbox.locate(path), path)
    chosen = text.splitlines(keepends=True)[first_line - 1 :]
    left = len(chosen) - lines
    note = f"\n[{plural(left, 'more line')}; continue at line {first_line + lines}]"
    return "".join(chosen[:lines]) + (note if left > 0 else "")


@server.offer("Search in files", READS, hint="grep text contents containing")
def search_files(
    text: Annotated[str, Field(description="The text to look for", min_length=1)],
    path: Directory = ".",
    pattern: Pattern = "*",
    ignore_case: Annotated[bool, Field(description="Whether `A` also finds `a`")] = True,
) -> SearchResult:
    """Find the lines that contain a text, in all files below a directory.

    Binary files and files over 1 MB are skipped, and counted.
    """
    matches: list[Match] = []
    searched = skipped = 0
    with _sandbox(path) as sandbox:
        for place in sandbox.files(sandbox.locate(path), pattern):
            try:
                contents = _read(place, sandbox.name(place))
            except RefusedError:
                skipped += 1
                continue
            searched += 1
            matches += _matches(sandbox.name(place), contents, text, ignore_case=ignore_case)
            if len(matches) > MAX_ENTRIES:
                break
    more = len(matches) > MAX_ENTRIES
    return SearchResult(matches[:MAX_ENTRIES], searched, skipped, more)


@server.offer("Write a file", REPLACES, hint="save create overwrite")
def write_file(
    path: PathInSandbox,
    content: Annotated[str, Field(description="The whole text of the file", max_length=MAX_BYTES)],
    overwrite: Annotated[bool, Field(description="Replace the file if there is one")] = False,
) -> str:
    """Write a text file, with the directories it needs; replace one only if asked to."""
    with _sandbox(path) as sandbox, readable(path):
        place = sandbox.locate(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("w" if overwrite else "x", encoding="utf-8", newline="") as file:
            file.write(content)
    return f"Wrote {plural(len(content), 'character')} to {path}"


@server.offer("Append to a file", ADDS, hint="add line log")
def append_to_file(
    path: PathInSandbox,
    content: Annotated[str, Field(description="The text to add", max_length=MAX_BYTES)],
) -> str:
    """Add text at the end of a file, on a new line; the file is made if there is none."""
    with _sandbox(path) as sandbox, readable(path):
        place = sandbox.locate(path)
        old = _read(place, path) if place.exists() else ""
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a", encoding="utf-8", newline="") as file:
            file.write(content if not old or old.endswith("\n") else "\n" + content)
    return f"Added {plural(len(content), 'character')} to {path}"


@server.offer("Replace in a file", EDITS, hint="edit change substitute patch")
def replace_in_file(
    path: PathInSandbox,
    old: Annotated[str, Field(description="The exact text to replace", min_length=1)],
    new: Annotated[str, Field(description="The text to put there")],
    every: Annotated[bool, Field(description="Replace every occurrence, not only one")] = False,
) -> str:
    """Replace a text in a file. Unless `every` is set, the text must occur exactly once."""
    with _sandbox(path) as sandbox, readable(path):
        place = sandbox.locate(path)
        text = _read(place, path)
        count = text.count(old)
        if not count:
            raise RefusedError(f"The text does not occur in `{path}`; read the file first")
        if count > 1 and not every:
            raise RefusedError(f"The text occurs {count} times; give more of it, or set `every`")
        place.write_text(text.replace(old, new), encoding="utf-8", newline="")
    return f"Replaced {plural(count, 'occurrence')} in {path}"


@server.offer("Make a directory", SETS, hint="mkdir folder new")
def create_directory(path: PathInSandbox) -> str:
    """Make a directory and the directories above it; it is no error if it exists."""
    with _sandbox(path) as sandbox, readable(path):
        sandbox.locate(path).mkdir(parents=True, exist_ok=True)
    return f"The directory {path} exists"


@server.offer("Move or rename", EDITS, hint="rename mv")
def move_path(
    source: Annotated[str, Field(description="What to move", min_length=1)],
    destination: Annotated[str, Field(description="Its new path; it must not exist yet")],
) -> str:
    """Move or rename a file or directory. Nothing is ever overwritten."""
    with _sandbox(source) as sandbox:
        old, new = sandbox.locate_entry(source), sandbox.locate_entry(destination)
        if new.exists() or new.is_symlink():
            raise RefusedError(f"`{destination}` exists already; choose another name")
        if new.is_relative_to(old):
            raise RefusedError(f"`{source}` cannot be moved into itself")
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
    return f"Moved {source} to {destination}"


@server.offer("Copy a file", ADDS, hint="duplicate cp")
def copy_file(
    source: Annotated[str, Field(description="The file to copy", min_length=1)],
    destination: Annotated[str, Field(description="The path of the copy; it must not exist yet")],
) -> str:
    """Copy a file. Nothing is ever overwritten."""
    with _sandbox(source) as sandbox:
        old, new = sandbox.locate(source), sandbox.locate_entry(destination)
        if new.exists() or new.is_symlink():
            raise RefusedError(f"`{destination}` exists already; choose another name")
        _require_file(old, source)
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(old, new)
    return f"Copied {source} to {destination}"


@server.offer("Delete a file", REPLACES, hint="remove rm unlink")
def delete_file(path: PathInSandbox) -> str:
    """Delete a file, or a symbolic link but not what it points to. There is no way back."""
    with _sandbox(path) as sandbox:
        place = sandbox.locate_entry(path)
        if place.is_dir() and not place.is_symlink():
            raise RefusedError(f"`{path}` is a directory; use `delete_directory`")
        place.unlink()
    return f"Deleted {path}"


def ask_before_deleting(
    path: str, confirm: bool, ctx: Context
) -> Confirmation | Elicit[Confirmation]:
    """Ask a person if there is something to lose and the client can ask."""
    with _sandbox(path) as sandbox:
        place = sandbox.locate_entry(path)
        if place.is_symlink() or not place.is_dir():
            raise RefusedError(f"`{path}` is not a directory; use `delete_file`")
        count = sum(1 for _ in place.rglob("*"))
    capabilities = ctx.client_capabilities
    if count and capabilities is not None and capabilities.elicitation is not None:
        return Elicit(
            f"Delete `{path}` and the {plural(count, 'entry', 'entries')} in it?", Confirmation
        )
    if count and not confirm:
        raise ToolError(f"`{path}` is not empty; to delete it with all it contains, set `confirm`")
    return Confirmation(delete=True)


@server.offer("Delete a directory", REPLACES, hint="remove rmdir folder recursive")
def delete_directory(
    path: PathInSandbox,
    answer: Annotated[ElicitationResult[Confirmation], Resolve(ask_before_deleting)],
    confirm: Annotated[  # noqa: ARG001 - read by `ask_before_deleting`
        bool, Field(description="Delete all it contains, where no person can be asked")
    ] = False,
) -> str:
    """Delete a directory with everything in it. There is no way back.

    If it is not empty, a person is asked; where the client cannot ask, `confirm` must be set.
    """
    if not isinstance(answer, AcceptedElicitation) or not answer.data.delete:
        raise ToolError(f"`{path}` was kept: the person did not agree to delete it")
    with _sandbox(path) as sandbox:
        shutil.rmtree(sandbox.locate_entry(path))
    return f"Deleted {path}"


@contextmanager
def _sandbox(path: str) -> Generator[Sandbox]:
    """Enter the sandbox; what goes wrong there becomes an error the caller can read."""
    try:
        with readable(path):
            yield Sandbox(state_path("FILES_ROOT", "files"))
    except RefusedError as error:
        raise ToolError(str(error)) from error


def _entry(sandbox: Sandbox, place: Path) -> Entry:
    status = place.lstat()
    modified = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
    return Entry(sandbox.name(place), _kind(place), status.st_size, modified)


def _kind(place: Path) -> Literal["file", "directory", "link", "other"]:
    if place.is_symlink():
        return "link"
    if place.is_dir():
        return "directory"
    return "file" if place.is_file() else "other"


def _require_file(place: Path, path: str) -> None:
    size = place.stat().st_size
    if not place.is_file():
        raise RefusedError(f"`{path}` is not a regular file")
    if size > MAX_BYTES:
        raise RefusedError(f"`{path}` is too large: {size:,} bytes, and the limit is {MAX_BYTES:,}")


def _read(place: Path, path: str) -> str:
    with readable(path):
        _require_file(place, path)
        with place.open(encoding="utf-8", newline="") as file:
            return file.read()


def _matches(path: str, contents: str, text: str, *, ignore_case: bool) -> list[Match]:
    def fold(line: str) -> str:
        return line.casefold() if ignore_case else line

    return [
        Match(path, number, line.strip()[:LINE_LENGTH])
        for number, line in enumerate(contents.splitlines(), start=1)
        if fold(text) in fold(line)
    ]


if __name__ == "__main__":
    serve(server)
