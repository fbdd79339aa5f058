"""Whether a URI is one that a template of RFC 6570 describes, in time linear in the URI."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from aggregator.basics.effort import Effort

MAX_URI = 4096
"""Characters a URI may have to be looked for among templates."""
MAX_PARTS = 64
"""Literals and expressions a template may have."""
CHARACTERS = 64
"""Characters of a template that are followed in the time of one step."""

_EXPRESSION = re.compile(r"\{([^{}]*)\}")

_SPANNING = frozenset("+#/?&;")
"""Operators whose values may hold a slash, or several values with one between them."""


class Template(NamedTuple):
    """The literals of a template, and what stands between them."""

    literals: tuple[str, ...]
    """One more than there are expressions."""
    spans: tuple[bool, ...]
    """Whether each expression may hold a slash."""

    @property
    def weight(self) -> int:
        """How much of a URI the template pins down: the more, the better it fits."""
        return sum(map(len, self.literals))

    def matches(self, uri: "Address") -> bool:
        """Whether the template describes a URI.

        Every place the text so far can end is followed at once, each of them one bit of a number,
        so that no template, however ambiguous, takes longer than its parts times the URI.
        """
        head, *rest = self.literals
        if not (uri.text.startswith(head) and uri.text.endswith(rest[-1] if rest else head)):
            return False
        ends = 1 << len(head)
        for spans, literal in zip(self.spans, rest, strict=True):
            places = uri.onward(ends) if spans else uri.in_segment(ends)
            ends = (places & uri.places(literal)) << len(literal)
            if not ends:
                return False
        return bool(ends >> len(uri.text) & 1)


class Address:
    """A URI that is looked for, and what has been found out of it on the way."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._everywhere = (2 << len(text)) - 1
        self._of = defaultdict[str, int](int)
        """Where each character stands."""
        for place, each in enumerate(text):
            self._of[each] |= 1 << place
        self._inside = (self._everywhere >> 1) ^ self._of["/"]

    def onward(self, begins: int) -> int:
        """Return every place from the first of these on."""
        return self._everywhere & -(begins & -begins)

    def in_segment(self, begins: int) -> int:
        """Return every place that is reached from one of these without passing a slash."""
        # What is added at the begin of a run of ones is carried to its end.
        return begins | ((self._inside + (begins & self._inside)) ^ self._inside)

    def places(self, literal: str) -> int:
        """Return where in the URI a text stands."""
        if literal not in self.text:
            return 0
        places = self._everywhere
        for place, each in enumerate(literal):
            places &= self._of[each] >> place
        return places


@lru_cache(maxsize=16_384)
def parse(text: str) -> Template | None:
    """Read a template; `None` if it has too many parts to be followed."""
    pieces = _EXPRESSION.split(text, MAX_PARTS)
    literals, expressions = tuple(pieces[::2]), pieces[1::2]
    if len(pieces) > MAX_PARTS:
        return None
    return Template(literals, tuple(each[:1] in _SPANNING for each in expressions))


class Templates:
    """The templates of one server, by what the URIs they describe begin with."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = defaultdict[str, list[str]](list)
        for text in texts:
            self._texts[text.partition("{")[0]].append(text)
        self._lengths = sorted(set(map(len, self._texts)))

    def weight(self, uri: Address, effort: Effort) -> int:
        """Return how much of a URI the best of them pins down; less than nothing if none fits."""
        best = -1
        for text in self._alike(uri):
            if not effort.spend(1 + len(text) // CHARACTERS):
                break
            template = parse(text)
            if template is not None and template.weight > best and template.matches(uri):
                best = template.weight
        return best

    def _alike(self, uri: Address) -> Iterator[str]:
        """Yield the templates that begin like a URI."""
        for length in self._lengths:
            yield from self._texts.get(uri.text[:length], ())
