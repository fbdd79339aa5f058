"""A tool as it was and as it is, beside or below each other, with every word that differs."""

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from aggregator.basics.glyphs import on_its_lines
from aggregator.basics.json import JsonObject
from aggregator.catalog.lock import kept
from aggregator.cli.paper import Paper, fill, width_of

WIDE = 100
"""Columns from which on two pages have room beside each other."""
GAP = " │ "
MAX_WORDS = 400
"""Words of a line that are compared one by one."""


class Row(NamedTuple):
    """A line as it was and as it is."""

    before: str
    after: str
    is_same: bool


def compared(title: str, before: JsonObject | None, after: JsonObject | None, paper: Paper) -> str:
    """Show what is different between two definitions."""
    rows = list(_rows(_lines(before), _lines(after)))
    body = _beside(rows, paper) if paper.width >= WIDE else _below(rows, paper)
    return "\n".join([paper.paint(title, "bold"), *body])


def _lines(tool: JsonObject | None) -> list[str]:
    """Return a definition as lines: its description as it reads, the rest as JSON."""
    if tool is None:
        return []
    plain = kept(tool)
    description = plain.pop("description", None)
    said = on_its_lines(description).split("\n") if isinstance(description, str) else []
    rest = on_its_lines(json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False))
    # What follows a line is no difference of it.
    return [*said, *(line.removesuffix(",") for line in rest.split("\n"))]


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[Row]:
    """Yield pairs of lines that stand for each other, of those that differ and their neighbours."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(2)):
        if number:
            yield Row("…", "…", is_same=True)
        for tag, a, b, c, d in group:
            old, new = before[a:b], after[c:d]
            if tag == "equal":
                yield from (Row(*pair, is_same=True) for pair in zip(old, new, strict=True))
                continue
            for at in range(max(len(old), len(new))):
                pair = (old[at] if at < len(old) else "", new[at] if at < len(new) else "")
                yield _marked(*pair)


def _marked(before: str, after: str) -> Row:
    """Return two lines with the words marked that are in one of them alone."""
    old, new = (_words(each) for each in (before, after))
    # Of a line that has no other beside it, every word is so.
    if max(len(old), len(new)) > MAX_WORDS or not (before.strip() and after.strip()):
        return Row(before, after, is_same=False)
    left, right = list[str](), list[str]()
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        is_same = tag == "equal"
        left += old[a:b] if is_same else [_mark(old[a:b], "[-", "-]")]
        right += new[c:d] if is_same else [_mark(new[c:d], "{+", "+}")]
    return Row(" ".join(filter(None, left)), " ".join(filter(None, right)), is_same=False)


def _words(line: str) -> list[str]:
    """Return the words of a line, the first with what it is indented by."""
    indent = line[: len(line) - len(line.lstrip())]
    first, *rest = line.strip().split(" ")
    return [indent + first, *rest]


def _mark(words: Sequence[str], opening: str, closing: str) -> str:
    text = " ".join(words)
    bare = text.strip()
    indent = text[: len(text) - len(text.lstrip())]
    return f"{indent}{opening}{bare}{closing}" if bare else text


def _beside(rows: Sequence[Row], paper: Paper) -> Iterator[str]:
    room = (paper.width - len(GAP)) // 2
    for row in rows:
        old, new = (_folded(each, room) for each in (row.before, row.after))
        for at in range(max(len(old), len(new))):
            left = old[at] if at < len(old) else ""
            right = new[at] if at < len(new) else ""
            padded = left + " " * (room - width_of(left))
            shown = (padded, right) if row.is_same else _painted(padded, right, paper)
            yield GAP.join(shown).rstrip()


def _folded(line: str, room: int) -> list[str]:
    pieces = fill(line, room, hanging=" ").split("\n")
    # What has no place to break is broken anywhere: the other side has its own room.
    return [piece[at : at + room] for piece in pieces for at in range(0, max(len(piece), 1), room)]


def _below(rows: Sequence[Row], paper: Paper) -> Iterator[str]:
    for row in rows:
        if row.is_same:
            yield fill(f"  {row.before}", paper.width, hanging="  ")
            continue
        old, new = (
            fill(f"{sign} {each}", paper.width, hanging="  ") if each else ""
            for sign, each in (("-", row.before), ("+", row.after))
        )
        yield from filter(None, _painted(old, new, paper))


def _painted(before: str, after: str, paper: Paper) -> tuple[str, str]:
    return (
        paper.paint(before, "red") if before.strip() else before,
        paper.paint(after, "green") if after.strip() else after,
    )
