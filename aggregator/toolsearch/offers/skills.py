"""Skills on this machine: directories with a `SKILL.md`, read within bounds.

Inside a skill no link is followed: what is read is in its directory, whoever wrote the path.
"""

import os
import re
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from aggregator.basics.files import in_words
from aggregator.basics.glyphs import clean, on_one_line
from aggregator.config.document import read_document
from aggregator.errors import CallError, ConfigError

MAIN = "SKILL.md"
"""The file that makes a directory a skill, and says what it is for."""
MAX_SKILLS = 500
"""Skills that are read in all."""
MAX_LOOKED_AT = 5_000
"""Names in directories of skills that are looked at."""
MAX_FILES = 512
"""Files of one skill that can be read."""
MAX_DEPTH = 8
"""Directories inside each other that a skill may have."""
MAX_ENTRIES = 4_096
"""Names that are looked at in one skill: files, and directories that may have none."""
MAX_BYTES = 1 << 20
"""Bytes that a file may have to be read."""
MAX_MATTER = 32 * 1024
"""Characters of what stands in front of the text of a skill."""
MAX_DESCRIPTION = 4_096
"""Characters that are kept of what a skill says it is for."""
MAX_PROBLEMS = 20
"""Directories that are no skills of which each is told."""

_NAME = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*", re.IGNORECASE | re.ASCII)
_MAX_NAME = 64
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_NO_LINKS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)


class Skill(NamedTuple):
    """One skill on this machine."""

    name: str
    description: str
    directory: Path
    files: tuple[str, ...] = ()
    """What else is in it that can be read, by the path from its directory."""


class Skills(NamedTuple):
    """What was read, and a sentence for what could not be."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()


class SkillFileError(CallError):
    """A file of a skill that cannot be read; says which can."""

    kind = "no-such-file"


class _UnusableError(Exception):
    """A directory is no skill that can be used; says why."""


def read_skills(directories: Iterable[Path]) -> Skills:
    """Read the skills that directories are, or hold; of two of one name the first is kept."""
    found: dict[str, Skill] = {}
    problems: list[str] = []
    for each in _candidates(directories, problems):
        if len(found) == MAX_SKILLS:
            problems.append(f"There are more than {MAX_SKILLS} skills; the rest is left out")
            break
        try:
            skill = _skill(each)
        except _UnusableError as error:
            problems.append(f"`{each}`: {error}")
            continue
        if skill is None:
            continue
        first = found.setdefault(skill.name, skill)
        if first is not skill:
            problems.append(
                f"`{each}`: `{first.directory}` has the name `{skill.name}` already; rename one"
            )
    more = len(problems) - MAX_PROBLEMS
    told = [*problems[:MAX_PROBLEMS], *([f"{more:,} more cannot be used"] if more > 0 else [])]
    return Skills(tuple(found.values()), tuple(map(on_one_line, told)))


def read_file(skill: Skill, path: str = MAIN) -> bytes:
    """Return what is in a file of a skill, by the path from its directory.

    Raises:
        SkillFileError: There is none, or it is too large.
    """
    parts = path.split("/")
    if path != MAIN and path not in skill.files:
        raise SkillFileError(_no_file(skill, path))
    try:
        content = _content(skill.directory, parts)
    except OSError as error:
        raise SkillFileError(
            f"`{path}` of the skill `{skill.name}` cannot be read: {in_words(error)}"
        ) from None
    if len(content) > MAX_BYTES:
        raise SkillFileError(f"`{path}` of the skill `{skill.name}` is larger than 1 MiB")
    return content


def _no_file(skill: Skill, path: str) -> str:
    shown = ", ".join(f"`{each}`" for each in (MAIN, *skill.files)[:MAX_PROBLEMS])
    return f"The skill `{skill.name}` has no file `{on_one_line(path[:200])}`; it has {shown}"


def _candidates(directories: Iterable[Path], problems: list[str]) -> Iterator[Path]:
    """Yield the directories that may be skills: those named, or the ones in them."""
    left = MAX_LOOKED_AT
    for directory in directories:
        try:
            names = _names(directory, left)
        except OSError as error:
            problems.append(f"`{directory}` cannot be read: {in_words(error)}")
            continue
        left -= len(names)
        if MAIN in names:
            yield directory.resolve()
            continue
        root = directory.resolve()
        for name in names:
            inside = root / name
            if inside.is_symlink() and (inside / MAIN).is_file():
                if not inside.resolve().is_relative_to(root):
                    problems.append(f"`{inside}` leads elsewhere: name where it leads in `skills`")
                    continue
                inside = inside.resolve()
            if (inside / MAIN).is_file():
                yield inside


def _names(directory: Path, most: int) -> list[str]:
    """Return the names in a directory in order, and no more than so many."""
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in islice(entries, most))


def _skill(directory: Path) -> Skill | None:
    """Read what a skill says of itself; nothing if it is not meant for models.

    Raises:
        _UnusableError: It cannot be used.
    """
    try:
        raw = _content(directory, [MAIN])
    except OSError as error:
        raise _UnusableError(f"{MAIN} cannot be read: {in_words(error)}") from None
    if len(raw) > MAX_BYTES:
        raise _UnusableError(f"{MAIN} is larger than 1 MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _UnusableError(f"{MAIN} is not UTF-8 text") from None
    matter, body = _divided(text)
    said = _said(matter, directory)
    if said.get("disable-model-invocation", "").lower() == "true":
        return None
    name = _named(said.get("name", ""), directory.name)
    description = on_one_line((said.get("description") or _opening(body))[:MAX_DESCRIPTION])
    if not description:
        raise _UnusableError(f"{MAIN} does not say what it is for: give it a `description`")
    return Skill(name, description, directory, tuple(_files(directory)))


def _divided(text: str) -> tuple[str, str]:
    """Return what stands in front of a text between two fences, and the text."""
    head = text[: MAX_MATTER + 16].replace("\r\n", "\n")
    if (first := _FENCE.match(head)) is None:
        return "", text
    if (last := _FENCE.search(head, first.end())) is None:
        raise _UnusableError(f"{MAIN} begins with `---`, and no other ends what it begins")
    return head[first.end() : last.start()], text[last.end() :]


def front_matter(text: str) -> dict[str, str]:
    """Return the texts that stand in front of a skill's own, by their keys.

    Raises:
        ValueError: They cannot be read.
    """
    try:
        return _said(_divided(text)[0], Path(MAIN))
    except _UnusableError as error:
        raise ValueError(str(error)) from None


def _said(matter: str, directory: Path) -> dict[str, str]:
    if not matter.strip():
        return {}
    try:
        data = read_document(matter, str(directory / MAIN)).data
    except ConfigError as error:
        # The first line of the file is the fence.
        where = "" if error.line is None else f"line {error.line}: "
        raise _UnusableError(f"what stands in front of {MAIN}, {where}{error.problem}") from None
    if not isinstance(data, dict):
        raise _UnusableError(f"what stands in front of {MAIN} must be `name:` and `description:`")
    return {key: value for key, value in data.items() if isinstance(value, str)}


def _named(said: str, directory: str) -> str:
    for name in (said.strip(), directory):
        if _NAME.fullmatch(name) and len(name) <= _MAX_NAME:
            return name
    raise _UnusableError("its name must be up to 64 letters and digits with single `-` between")


def _opening(body: str) -> str:
    """Return the first paragraph of a text that says nothing in front."""
    lines = (line.strip() for line in body[:MAX_DESCRIPTION].splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def _files(directory: Path) -> Iterator[str]:
    """Yield the paths of what can be read in a skill beside its main file, within bounds."""
    left, looked_at = MAX_FILES - 1, 0
    waiting = [("", 0)]
    while waiting:
        inside, depth = waiting.pop(0)
        for entry in _entries(directory / inside, MAX_ENTRIES - looked_at):
            looked_at += 1
            if not left:
                return
            path = f"{inside}{entry.name}"
            if entry.name.startswith(".") or clean(path) != path:
                continue
            if entry.is_dir(follow_symlinks=False) and depth < MAX_DEPTH:
                waiting.append((f"{path}/", depth + 1))
            elif entry.is_file(follow_symlinks=False) and path != MAIN:
                left -= 1
                yield path


def _entries(directory: Path, most: int) -> Sequence[os.DirEntry[str]]:
    """Return what is in a directory in order, no more than so many; nothing if it is closed."""
    found: Sequence[os.DirEntry[str]] = ()
    with suppress(OSError), os.scandir(directory) as entries:
        found = sorted(islice(entries, most), key=lambda each: each.name)
    return found


def _content(directory: Path, parts: list[str]) -> bytes:
    """Read a regular file, one byte more than it may have at the most; no link is followed.

    Raises:
        OSError: It cannot be read.
    """
    with _opened(str(directory), os.O_RDONLY | os.O_DIRECTORY) as top:
        return _inside(top, parts)


def _inside(directory: int, parts: list[str]) -> bytes:
    first, *rest = parts
    if rest:
        with _opened(first, _NO_LINKS | os.O_DIRECTORY, directory) as inner:
            return _inside(inner, rest)
    # Without a writer, a pipe would not even be opened.
    with _opened(first, _NO_LINKS | os.O_NONBLOCK | os.O_NOCTTY, directory) as file:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(0, "it is not a file")
        with os.fdopen(os.dup(file), "rb") as reader:
            return reader.read(MAX_BYTES + 1)


@contextmanager
def _opened(path: str, flags: int, directory: int | None = None) -> Generator[int, None, None]:
    descriptor = os.open(path, flags, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
