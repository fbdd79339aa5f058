"""What a model is told of a result that was shortened, and of what it reads of one again."""

from typing import Any

from aggregator.basics.json import JsonObject
from aggregator.toolsearch.wording import FRAME, compact
from aggregator.upstream.results.kept import KEPT_FOR, Kept
from aggregator.upstream.results.parts import tokens_of
from aggregator.upstream.results.reading import MAX_MATCHES, Asked, Findings, Page
from aggregator.upstream.results.shortening import Shortened

RESULTS_URI = "catalog://results"
PREFIX = "result:"
"""What the names begin with by which results are read again: no tool can have a colon in its."""
STRUCTURED = "structured"
"""What stands behind the name for its structured content."""
RESULT_META = "aggregator/result"
"""The `_meta` key that holds the facts for programs."""
TOLD_BYTES = 1_200
"""Bytes that we say of a result at the most, with the names of our tools as clients show them."""
SAMPLE = "some words"
AROUND = 1_000
"""Characters before a place where words were found that are read with it."""


def uri_of(name: str) -> str:
    """Return where a result can be read as a resource."""
    return f"{RESULTS_URI}/{name}"


def name_in(text: str) -> str | None:
    """Return the name of a result that a name or a URI stands for, if it stands for one."""
    for start in (PREFIX, f"{RESULTS_URI}/", f"resource:{RESULTS_URI}/"):
        if text.startswith(start):
            return text.removeprefix(start)
    return None


def shortened(kept: Kept, shown: Shortened, limit: int, reader: str) -> list[JsonObject]:
    """Return what is shown of a result that is kept; nothing for a reader if there is none."""
    uri, length = uri_of(kept.name), kept.whole.length
    is_cut = shown.until < shown.since
    told: list[str] = []
    if is_cut:
        told.append(
            f"{_size(kept)}, and one result may cost {limit:,} tokens here: these are its "
            f"characters 0 to {shown.until:,} and {shown.since:,} to {length:,}. All of it is kept "
            f"for you until it was not read for {KEPT_FOR / 60:.0f} minutes, as the resource {uri}"
        )
        if reader:
            read = called(reader, kept.name, {"from": shown.until})
            found = called(reader, kept.name, {"find": SAMPLE})
            told.append(f"Read on by {read}; find words in it by {found}")
    if kept.structured is not None:
        part = f"{kept.name}/{STRUCTURED}"
        read = f", read by {called(reader, part, {'from': 0})}" if reader else ""
        size = f"{kept.structured.length:,} characters"
        told.append(f"Its structured content ({size}) is left out: resource {uri_of(part)}{read}")
    return _framed(told, shown)


def unkept(kept: Kept, shown: Shortened, limit: int) -> list[JsonObject]:
    """Return what is shown of a result that is too large even to be kept."""
    told = (
        f"{_size(kept)}, and one result may cost {limit:,} tokens here: these are its "
        f"characters 0 to {shown.until:,} and {shown.since:,} to {kept.whole.length:,}. The rest "
        "is too much to be kept: ask for less"
    )
    return _framed([told], shown)


def _framed(told: list[str], shown: Shortened) -> list[JsonObject]:
    """Return what is shown, with what is told of it first: what stands there no client cuts."""
    note = _text(f"[{'. '.join(told)}.]")
    if shown.until >= shown.since:
        return [note, *shown.head, *shown.middle, *shown.tail]
    gap = f"[{shown.since - shown.until:,} characters are left out here, from {shown.until:,} on]"
    return [note, *shown.head, _text(gap), *shown.middle, *shown.tail]


def page(name: str, kept: Kept, read: Page, length: int, reader: str) -> dict[str, Any]:
    """Return a page as the result of a call: what it is, and then nothing but its text."""
    told = f"Characters {read.start:,} to {read.end:,} of {length:,} of a result of {kept.tool}"
    facts: dict[str, Any] = {
        "name": f"{PREFIX}{name}",
        "from": read.start,
        "to": read.end,
        "characters": length,
        "parts": read.slices,
    }
    if read.end < length:
        facts["next"] = read.end
        told += f". Next: {called(reader, name, {'from': read.end})}"
    else:
        told += ": its end"
    return {"content": [_text(f"[{told}.]"), *read.blocks], "_meta": {RESULT_META: facts}}


def findings(
    name: str, kept: Kept, asked: Asked, found: Findings, *, length: int, reader: str
) -> dict[str, Any]:
    """Return where words were found as the result of a call."""
    number = f"{found.matches:,}{' or more' if found.matches >= MAX_MATCHES else ''}"
    told = (
        f"{number} {'match' if found.matches == 1 else 'matches'} of {compact([*asked.words])} in "
        f"characters {asked.position:,} to {found.until:,} of {length:,} of a result of {kept.tool}"
    )
    if 0 < len(found.excerpts) < found.matches:
        told += f"; the {len(found.excerpts)} places with most of them:"
    lines = [told, *(f"at {each.position} | {each.text}" for each in found.excerpts)]
    if found.excerpts:
        around = max(found.excerpts[0].position - AROUND, 0)
        lines.append(f"Read around a place by {called(reader, name, {'from': around})}")
    if found.until < length:
        further = {"find": " ".join(asked.words), "from": found.until}
        lines.append(f"Look further by {called(reader, name, further)}")
    if found.excerpts:
        lines.append(FRAME)
    facts = {
        "name": f"{PREFIX}{name}",
        "matches": found.matches,
        "found": [{"at": each.position, "words": each.found} for each in found.excerpts],
        "until": found.until,
        "characters": length,
    }
    return {"content": [_text("\n".join(lines))], "_meta": {RESULT_META: facts}}


def called(reader: str, name: str, arguments: JsonObject) -> str:
    """Return a call that a model can copy."""
    return f"{reader} {compact({'name': f'{PREFIX}{name}', 'arguments': arguments})}"


def _size(kept: Kept) -> str:
    length = kept.whole.length
    tokens = tokens_of(length, kept.ratio)
    return f"This result has {length:,} characters, about {tokens:,} tokens"


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
