"""What is read again of a result that was shortened: a page of it, or where words are in it."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from typing import NamedTuple

from aggregator.basics.effort import Turn
from aggregator.basics.json import JsonObject, is_array
from aggregator.errors import InvalidCallError
from aggregator.toolsearch.wording import one_line
from aggregator.upstream.results.parts import FRAME, Whole, end_of
from aggregator.upstream.results.shortening import piece_of

POSITION_KEYS = ("from", "offset", "start", "position")
"""Where a position may stand in the arguments, the right place first."""
WORD_KEYS = ("find", "query", "search", "words", "text", "pattern")
"""Where words may stand."""
MAX_WORDS = 16
"""Words, or phrases in quotes, that are looked for."""
MAX_WORD = 100
"""Characters of each."""
MAX_MATCHES = 10_000
"""Places that are looked at; what comes behind them is found by going on from there."""
COMPARED = 128
"""Characters that are compared in the time of one step."""
SCANNED = 32_768
"""Characters that are looked through at a time; where words are many and long, fewer."""
MAX_COMPARED = 1 << 18
"""Characters that are compared at a time at the most: words may agree with a text nearly to their
ends wherever one looks."""
MAX_COMPARED_IN_ALL = 1 << 30
"""Characters that are compared for one answer; what comes behind them is found by going on, too."""
MAX_EXCERPTS = 10
EXCERPT = 300
"""Characters of an excerpt, and of the stretches that are compared by the words in them."""

_WORD = re.compile(r'"([^"]+)"|(\S+)')


class Asked(NamedTuple):
    """What is to be read."""

    position: int = 0
    words: tuple[str, ...] = ()


class Page(NamedTuple):
    """Some of a text, from one position to another."""

    blocks: list[JsonObject]
    slices: list[tuple[int, int]]
    """How much of which part each block is."""
    start: int
    end: int


class Excerpt(NamedTuple):
    """A place where words were found."""

    position: int
    text: str
    found: int
    """How many of the words are there."""


class Findings(NamedTuple):
    """What came of looking for words."""

    matches: int
    excerpts: list[Excerpt]
    until: int
    """Up to where was looked."""


def parse(arguments: JsonObject, length: int) -> Asked:
    """Read what is asked of a text of this length.

    Raises:
        InvalidCallError: It cannot be read.
    """
    said = next((arguments[key] for key in POSITION_KEYS if key in arguments), 0)
    try:
        position = int(_said(said)[:MAX_WORD].replace(",", ""))
    except ValueError:
        position = -1
    if not 0 <= position < max(length, 1):
        raise InvalidCallError(
            f"`from` must be a number from 0 to {max(length - 1, 0):,}: "
            "the position of the first character to read"
        )
    sought = next((arguments[key] for key in WORD_KEYS if arguments.get(key)), "")
    texts = map(_said, sought[:MAX_WORDS]) if is_array(sought) else [_said(sought)]
    words = dict.fromkeys(each for text in texts for each in _words(text))
    return Asked(position, tuple(words)[:MAX_WORDS])


def _said(value: object) -> str:
    """Return a value as a model means it; what holds others, and may be of any size, says nothing.

    So does a number of so many digits that they would take long to be written.
    """
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, float) or _is_short(value) else ""


def _is_short(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() <= MAX_WORD


def _words(text: str) -> Iterator[str]:
    for phrase, word in _WORD.findall(text[: MAX_WORDS * MAX_WORD]):
        yield (phrase or word)[:MAX_WORD]


def page(whole: Whole, position: int, room: int) -> Generator[None, None, Page]:
    """Return what follows on a position, as much as fits; yield where a turn is over."""
    turn, end = Turn(), position
    blocks, slices = list[JsonObject](), list[tuple[int, int]]()
    for number in range(_part_at(whole, position), len(whole.parts)):
        if turn.is_over(1):
            yield
        part = whole.parts[number]
        if not part.text:
            continue
        if (left := room - FRAME) < FRAME:
            break
        begin = end - part.start
        stop = end_of(part.text, begin, left)
        text = part.text[begin:stop]
        blocks.append(piece_of(part, text))
        slices.append((number, len(text)))
        room -= FRAME + len(text.encode("utf-8", "surrogatepass"))
        end = part.start + stop
        if stop < len(part.text):
            break
    return Page(blocks, slices, position, end)


def find(whole: Whole, asked: Asked) -> Generator[None, None, Findings]:
    """Return where words are, the places that have most of them first; yield after each turn."""
    groups = "|".join(f"({re.escape(each)})" for each in asked.words)
    pattern, longest = re.compile(groups, re.IGNORECASE), max(map(len, asked.words))
    places, matches, until = defaultdict[int, dict[int, int]](dict), 0, whole.length
    turn = Turn()
    compared, spent = sum(map(len, asked.words)), 0
    scanned = min(SCANNED, MAX_COMPARED // compared)
    for part in whole.parts:
        for start in range(max(asked.position - part.start, 0), len(part.text), scanned):
            stop = start + scanned
            for each in pattern.finditer(part.text, start, stop + longest - 1):
                if each.start() >= stop:
                    break
                matches += 1
                at = part.start + each.start()
                places[at // EXCERPT].setdefault(each.lastindex or 0, at)
            looked = min(scanned, len(part.text) - start)
            spent += looked * compared
            if matches >= MAX_MATCHES or spent >= MAX_COMPARED_IN_ALL:
                until = min(part.start + stop, part.end)
                return Findings(matches, _best(whole, places), until)
            if turn.is_over(1 + looked * compared // COMPARED, cleaned=looked):
                yield
    return Findings(matches, _best(whole, places), until)


def _best(whole: Whole, places: Mapping[int, Mapping[int, int]]) -> list[Excerpt]:
    """Return the places that have most of the words, and of these the first."""
    ranked = sorted((-len(found), min(found.values())) for found in places.values())
    return [Excerpt(at, excerpt(whole, at), -found) for found, at in ranked[:MAX_EXCERPTS]]


def excerpt(whole: Whole, position: int) -> str:
    """Return what stands around a position, on one line."""
    part = whole.parts[_part_at(whole, position)]
    inside = position - part.start
    start = max(inside - EXCERPT // 3, 0)
    return one_line(part.text[start : start + EXCERPT], EXCERPT)


def _part_at(whole: Whole, position: int) -> int:
    """Return the number of the part that a position is in."""
    return bisect_right(whole.parts, position, key=lambda part: part.end)
