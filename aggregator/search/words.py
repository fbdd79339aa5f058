"""The words of a text: folded, split the way identifiers are built, and stemmed.

Documents and queries pass through the same functions, so that whatever is done to a word is done
to both sides.
"""

import re
import unicodedata
from functools import cache

from aggregator.search.stems import stem

__all__ = ["stem", "tokens", "words"]

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Han
    "\U00020000-\U0003ffff"
)
"""Scripts written without spaces between words."""
_INDIC = "\u0900-\u0dff"
"""Scripts whose vowel signs are no letters, but belong to words all the same."""
_ASCII_RUN = re.compile(r"[A-Za-z0-9]+")
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640]")
"""Accents and vowel points that people leave out when they type."""
_HUMPS = re.compile(
    r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*|[0-9]+[a-z]*"
)


def words(text: str) -> list[str]:
    """Split a text into lower-case words, in order; humps are words of their own."""
    return [part for parts in tokens(text) for part in parts]


def tokens(text: str) -> list[tuple[str, ...]]:
    """Split a text into words, each as its humps: `createIssue` is one word of two."""
    if text.isascii():
        return [_humps(run) for run in _ASCII_RUN.findall(text)]
    found: list[tuple[str, ...]] = []
    for unspaced, run in _runs().findall(_without_accents(text)):
        if unspaced:
            found += [(gram,) for gram in _grams(unspaced)]
        else:
            found.append(_humps(run))
    return found


@cache
def _runs() -> re.Pattern[str]:
    """Return what splits a text by script; slow to compile, and plain English does without."""
    return re.compile(rf"([{_UNSPACED}]+)|((?:[^\W_{_UNSPACED}]|[{_INDIC}])+)")


def _humps(run: str) -> tuple[str, ...]:
    """Split one run of letters where its case says so."""
    tail = run[1:]
    if tail == tail.lower() or run.isupper() or not run.isascii():
        return (run.casefold(),)
    return tuple(part.lower() for part in _HUMPS.findall(run))


def _grams(run: str) -> list[str]:
    """Cut a run of an unspaced script into overlapping pairs."""
    if len(run) == 1:
        return [run]
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _without_accents(text: str) -> str:
    """Make compatible forms equal, and drop the marks people leave out."""
    spread = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", _MARKS.sub("", spread))
