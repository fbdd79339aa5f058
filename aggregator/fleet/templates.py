"""Whether a URI is one that a template of RFC 6570 describes, in time linear in the URI."""

import re
from dataclasses import dataclass
from functools import lru_cache

MAX_URI = 4096
"""Characters a URI may have to be looked for among templates."""
MAX_PARTS = 64
"""Literals and expressions a template may have."""

_EXPRESSION = re.compile(r"\{([^{}]*)\}")

_SPANNING = frozenset("+#/?&;")
"""Operators whose values may hold a slash, or several values with one between them."""


@dataclass(frozen=True, slots=True)
class Template:
    """The literals of a template, and what stands between them."""

    literals: tuple[str, ...]
    """One more than there are expressions."""
    spans: tuple[bool, ...]
    """Whether each expression may hold a slash."""

    @property
    def weight(self) -> int:
        """How much of a URI the template pins down: the more, the better it fits."""
        return sum(map(len, self.literals))

    def matches(self, uri: str) -> bool:
        """Whether the template describes a URI.

        Every place the text so far can end is followed at once, so that no template, however
        ambiguous, takes longer than its length times that of the URI.
        """
        if len(uri) > MAX_URI or not uri.startswith(self.literals[0]):
            return False
        ends = {len(self.literals[0])}
        for spans, literal in zip(self.spans, self.literals[1:], strict=True):
            ends = _after_literal(uri, _after_expression(uri, ends, spans=spans), literal)
            if not ends:
                return False
        return len(uri) in ends


@lru_cache(maxsize=4096)
def parse(text: str) -> Template | None:
    """Read a template; `None` if it has too many parts to be followed."""
    pieces = _EXPRESSION.split(text)
    literals, expressions = tuple(pieces[::2]), pieces[1::2]
    if len(pieces) > MAX_PARTS:
        return None
    return Template(literals, tuple(each[:1] in _SPANNING for each in expressions))


def _after_expression(uri: str, begins: set[int], *, spans: bool) -> set[int]:
    """Return where an expression can end that begins in one of these places."""
    ends: set[int] = set()
    is_open = False
    for place in range(min(begins), len(uri) + 1):
        is_open = is_open or place in begins
        if is_open:
            ends.add(place)
        if place < len(uri) and uri[place] == "/" and not spans:
            is_open = False
    return ends


def _after_literal(uri: str, begins: set[int], literal: str) -> set[int]:
    return {place + len(literal) for place in begins if uri.startswith(literal, place)}
