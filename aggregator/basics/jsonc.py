"""What people write into JSON that is none: comments, and commas before a closing bracket."""

import re

GAP = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
"""What may stand between the parts of it."""

_TEXT = r'"(?:[^"\\]|\\.)*+"?'
_COMMENT = re.compile(rf"{_TEXT}|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])", re.DOTALL)
_WRITTEN = re.compile(r"[^\r\n]")


def bare(text: str) -> str:
    """Return the text with spaces in the place of all that, so that each line stays its own."""
    return _LAST_COMMA.sub(_blank, _COMMENT.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else _WRITTEN.sub(" ", found[0])
