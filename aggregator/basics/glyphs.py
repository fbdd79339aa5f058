"""What of a text an eye can see; the rest is taken out, or shown as escapes.

Text from elsewhere must not move a cursor, turn round what stands beside it, begin a line of ours,
or carry what only a model reads.
"""

import json
import re
import unicodedata

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]"
)
"""ANSI control sequences: colours, cursor movement, window titles, links."""
_LINE_ENDS = re.compile(r"\r\n?|[\u2028\u2029]")
_KEPT_CONTROLS = frozenset("\n\t\r")
_UNSEEN = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0"
    "\U0001d159\U000e0100-\U000e01ef"
)
"""Letters, marks and signs by name that are drawn as nothing: fillers, selectors, blanks.

With the controls, these are all that Unicode calls default ignorable, and two blank signs.
"""
_WRITTEN_WITH = "\u200c\u200d\ufe0e\ufe0f"
"""Joiners and presentations: as unseen as the rest, but Indic, Arabic and emoji need them."""
_SIGNS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
"""What is drawn as text or as emoji."""
_JOINED = f"{_SIGNS}\u0600-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010800-\U0001efff"
"""What a joiner can stand behind: emoji, and scripts whose letters change with their neighbours."""
_SMUGGLED = re.compile(f"[{_UNSEEN}\ufe0e\ufe0f]")
"""What is printable by name and may be seen by nobody."""
_STRAY = (
    f"(?<![{_JOINED}])(?<![{_SIGNS}][\ufe0e\ufe0f])[\u200c\u200d]"
    f"|(?<![{_SIGNS}])(?:(?<![0-9#*])[\ufe0e\ufe0f]|[\ufe0e\ufe0f](?!\u20e3))"
)
"""A joiner or a presentation where nothing is written with it; compiled when some text needs it."""


def clean(text: str) -> str:
    """Remove what a person would not see and a model would: escapes, overrides, tags, controls."""
    if _is_all_seen(text):
        return text
    return re.sub(_STRAY, "", "".join(filter(_is_seen, _ESCAPES.sub("", text))))


def on_one_line(text: str) -> str:
    """Return a text as one line, clean."""
    return " ".join(clean(text).split())


def on_its_lines(text: str) -> str:
    """Return a text clean and with the one end of a line that everything takes for one.

    A byte of a path that is no text has no other way to be seen than as an escape.
    """
    whole = "".join(map(_of_path, text)) if _has_surrogates(text) else text
    return clean(_LINE_ENDS.sub("\n", whole))


def escaped(text: str) -> str:
    """Show as JSON would escape it what cannot be seen; lines end where they did."""
    if _is_all_seen(text):
        return text
    plain = "".join(each if _is_plain(each) else _escape(each) for each in text)
    return re.sub(_STRAY, lambda stray: _escape(stray[0]), plain)


def _is_all_seen(text: str) -> bool:
    # Most of what is looked at are the keys of schemas, and short words.
    if text.isascii() and text.isprintable():
        return True
    # Lines and tabs are no reason to look at each character.
    lines = text.replace("\n", "").replace("\t", "")
    return lines.isprintable() and not _SMUGGLED.search(lines)


def _is_seen(character: str) -> bool:
    """Whether a character is text, or may be a part of some."""
    if character in _KEPT_CONTROLS or character in _WRITTEN_WITH:
        return True
    # Cc controls, Cf formats (bidirectional overrides, zero-width, tags), Co private use,
    # Cs lone surrogates, Cn unassigned: none of them is text.
    return unicodedata.category(character)[0] != "C" and not _SMUGGLED.match(character)


def _is_plain(character: str) -> bool:
    """Whether a character may stand in a line as it is, whoever reads it."""
    return character in "\n\t" or (_is_seen(character) and character not in "\r\u2028\u2029")


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1]


def _has_surrogates(text: str) -> bool:
    return not text.isprintable() and any("\ud800" <= each <= "\udfff" for each in text)


def _of_path(character: str) -> str:
    return _escape(character) if "\ud800" <= character <= "\udfff" else character
