"""Regular expressions that take no longer than they are long, whatever they say.

A pattern becomes a graph, and a text is walked through it once, in all ways at the same time: no
way is ever tried again, so nothing can be made to try for ever. What goes back in a text, and what
looks ahead in it, cannot be had that way and is refused.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

MAX_PATTERN = 200
"""Characters of a pattern."""
MAX_NODES = 400
"""Nodes of its graph; a count such as `{3,9}` repeats what it counts."""
MAX_DEPTH = 20
"""Groups inside of groups."""
MAX_KNOWN = 2_000
"""Steps through the graph that are remembered."""

Key = TypeVar("Key")
Test = Callable[[str], bool]
_Around = tuple[bool | None, bool | None]
"""Whether a letter stands before a place, and after it; None at the ends of the text."""


class PatternError(Exception):
    """A pattern cannot be used; the message says why."""


class _Node(NamedTuple):
    """One place in the graph: takes a character, looks around, or only leads on."""

    test: Test | None = None
    look: Callable[[_Around], bool] | None = None


_LOOKS: dict[str, Callable[[_Around], bool]] = {
    "^": lambda around: around[0] is None,
    "$": lambda around: around[1] is None,
    "b": lambda around: bool(around[0]) != bool(around[1]),
    "B": lambda around: bool(around[0]) == bool(around[1]),
}


def _is_letter(char: str) -> bool:
    return char.isalnum() or char == "_"


_KINDS: dict[str, Test] = {
    "d": str.isdecimal,
    "w": _is_letter,
    "s": str.isspace,
    "D": lambda char: not char.isdecimal(),
    "W": lambda char: not _is_letter(char),
    "S": lambda char: not char.isspace(),
}
_SIGNS = {"n": "\n", "t": "\t", "r": "\r"}
_COUNT = re.compile(r"\{(\d{1,3})(?:(,)(\d{1,3})?)?\}")


class _Graph:
    """A pattern while it is read: nodes, and what each leads to."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self.nodes: list[_Node] = []
        self.leads: list[list[int]] = []

    def whole(self) -> tuple[int, int]:
        """Read the whole pattern, and return where it begins and ends."""
        ends = self._choice(0)
        if self._at < len(self._source):
            raise PatternError("a ) closes no group")
        return ends

    def _add(self, node: _Node, *leads: int) -> int:
        if len(self.nodes) >= MAX_NODES:
            raise PatternError("it repeats too much")
        self.nodes.append(node)
        self.leads.append(list(leads))
        return len(self.nodes) - 1

    def _next(self) -> str:
        return self._source[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        taken = self._source.startswith(text, self._at)
        self._at += len(text) * taken
        return taken

    def _choice(self, depth: int) -> tuple[int, int]:
        """Read alternatives."""
        if depth > MAX_DEPTH:
            raise PatternError("its groups are nested too deep")
        begin, end = self._add(_Node()), self._add(_Node())
        while True:
            first, last = self._sequence(depth)
            self.leads[begin].append(first)
            self.leads[last].append(end)
            if not self._take("|"):
                return begin, end

    def _sequence(self, depth: int) -> tuple[int, int]:
        """Read what stands one after the other."""
        begin = end = self._add(_Node())
        while self._next() not in ("", "|", ")"):
            first, last = self._repeated(depth)
            self.leads[end].append(first)
            end = last
        return begin, end

    def _repeated(self, depth: int) -> tuple[int, int]:
        """Read one thing, and how often it may stand there."""
        start = self._at
        part = self._part(depth)
        least, most = self._count()
        if (least, most) == (1, 1):
            return part
        after = self._at
        begin = end = self._add(_Node())
        for number in range(max(least, 1 if most is None else most)):
            if number:
                self._at = start
                part = self._part(depth)
            self.leads[end].append(part[0])
            passed = self._add(_Node())
            self.leads[part[1]].append(passed)
            if number >= least:
                self.leads[end].append(passed)
            end = passed
        if most is None:
            self.leads[end].append(part[0])
        self._at = after
        return begin, end

    def _count(self) -> tuple[int, int | None]:
        """Read how often; which of several ways is taken first makes no difference here."""
        counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        found: tuple[int, int | None] = (1, 1)
        if (sign := self._next()) in counts and sign:
            self._at += 1
            found = counts[sign]
        elif counted := _COUNT.match(self._source, self._at):
            self._at = counted.end()
            least = int(counted[1])
            most = int(counted[3]) if counted[3] else None if counted[2] else least
            if most is not None and most < least:
                raise PatternError(f"{counted[0]} counts down")
            found = least, most
        else:
            return found
        self._at += self._next() in ("?", "+")
        if self._next() and self._next() in "*+?":
            raise PatternError(f"there is nothing before {self._next()} to repeat")
        return found

    def _part(self, depth: int) -> tuple[int, int]:
        """Read one thing that may stand in a text."""
        sign = self._next()
        self._at += 1
        if sign == "(":
            return self._group(depth)
        if sign == "[":
            return self._taking(self._class())
        if sign == ".":
            return self._taking(lambda char: char != "\n")
        if sign == "\\":
            return self._escape()
        if sign in ("^", "$"):
            return self._looking(sign)
        if sign in ("*", "+", "?"):
            raise PatternError(f"there is nothing before {sign} to repeat")
        return self._taking(_one(sign))

    def _group(self, depth: int) -> tuple[int, int]:
        if self._next() == "?" and not (self._take("?:") or self._take("?i)")):
            raise PatternError("a group that begins with (? cannot be used, but for (?:")
        # Letter case makes no difference, so what switches it off is an empty group.
        if self._source[self._at - 1] == ")":
            node = self._add(_Node())
            return node, node
        ends = self._choice(depth + 1)
        if not self._take(")"):
            raise PatternError("a group is not closed")
        return ends

    def _escape(self) -> tuple[int, int]:
        sign = self._next()
        self._at += 1
        if sign in _KINDS:
            return self._taking(_KINDS[sign])
        if sign in ("b", "B"):
            return self._looking(sign)
        if not sign or sign.isdecimal() or (sign.isalpha() and sign not in _SIGNS):
            raise PatternError(f"\\{sign} cannot be used")
        return self._taking(_one(_SIGNS.get(sign, sign)))

    def _class(self) -> Test:
        """Read what stands between brackets."""
        is_other = self._take("^")
        tests: list[Test] = []
        while self._next() != "]" or not tests:
            low = self._member(tests)
            if low is None:
                continue
            high = low
            if self._next() == "-" and self._source[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                high = self._member(tests) or low
            tests.append(_range(low, high))
        self._at += 1
        return lambda char: any(test(char) for test in tests) is not is_other

    def _member(self, tests: list[Test]) -> str | None:
        """Read one sign of a class; a kind of signs is noted, and is none."""
        sign = self._next()
        self._at += 1
        if not sign:
            raise PatternError("a [ is not closed")
        if sign != "\\":
            return sign
        sign = self._next()
        self._at += 1
        if sign in _KINDS:
            tests.append(_KINDS[sign])
            return None
        return _SIGNS.get(sign, sign) or None

    def _taking(self, test: Test) -> tuple[int, int]:
        end = self._add(_Node())
        return self._add(_Node(test=test), end), end

    def _looking(self, sign: str) -> tuple[int, int]:
        end = self._add(_Node())
        return self._add(_Node(look=_LOOKS[sign]), end), end


def _one(sign: str) -> Test:
    wanted = sign.lower()
    return lambda char: char == wanted


def _range(low: str, high: str) -> Test:
    return lambda char: low <= char <= high or low <= char.upper() <= high


class Pattern:
    """A regular expression that looks for itself in texts, with so much work for them all."""

    def __init__(self, source: str, work: int) -> None:
        """Read a pattern.

        Raises:
            PatternError: It cannot be used.
        """
        if len(source) > MAX_PATTERN:
            raise PatternError(f"it is longer than {MAX_PATTERN} characters")
        self._graph = _Graph(source)
        self._begin, self._end = self._graph.whole()
        self._literals = literals(source)
        self._work = work
        self._places: dict[tuple[frozenset[int], bool | None], int] = {}
        self._states: list[tuple[frozenset[int], bool | None]] = []
        self._steps: list[dict[str, int]] = []

    @property
    def is_spent(self) -> bool:
        """Whether there was more to look at than there was work for."""
        return self._work < 0

    def within(self, texts: Iterable[tuple[Key, str]]) -> dict[Key, None]:
        """Return the keys of the texts that have what is looked for, until the work is spent."""
        found: dict[Key, None] = {}
        for key, text in texts:
            if self.is_in(text):
                found[key] = None
            if self.is_spent:
                break
        return found

    def is_in(self, text: str) -> bool:
        """Whether a text has what is looked for; no, once the work is spent."""
        self._work -= TEXT + len(text) // 16
        lower = text.lower()
        if self._work < 0 or not all(each in lower for each in self._literals):
            return False
        self._work -= len(lower)
        if len(self._steps) > MAX_KNOWN:
            self._places, self._states, self._steps = {}, [], []
        state = self._state(frozenset((self._begin,)), None)
        steps = self._steps
        for char in lower:
            after = steps[state].get(char)
            if after is None:
                after = self._step(state, char)
                if self._work < 0:
                    return False
            if after == FOUND:
                return True
            state = after
        held, before = self._states[state]
        return self._end in self._reached(held, (before, None))

    def _state(self, held: frozenset[int], before: bool | None) -> int:
        """Return the number of a state: the places reached, and whether a letter was last."""
        place = self._places.get((held, before))
        if place is None:
            place = self._places[held, before] = len(self._states)
            self._states.append((held, before))
            self._steps.append({})
        return place

    def _step(self, state: int, char: str) -> int:
        """Go one character on, for the first time in this state."""
        held, before = self._states[state]
        is_letter = _is_letter(char)
        reached = self._reached(held, (before, is_letter))
        if self._end in reached:
            after = FOUND
        else:
            nodes, leads = self._graph.nodes, self._graph.leads
            taken = [at for at in reached if (test := nodes[at].test) is not None and test(char)]
            onward = frozenset((self._begin, *(lead for at in taken for lead in leads[at])))
            after = self._state(onward, is_letter)
        self._steps[state][char] = after
        return after

    def _reached(self, held: Iterable[int], around: _Around) -> set[int]:
        """Return every node that some lead to without taking a character."""
        nodes, leads = self._graph.nodes, self._graph.leads
        reached, waiting = set[int](), list(held)
        while waiting:
            at = waiting.pop()
            node = nodes[at]
            if at in reached or (node.look is not None and not node.look(around)):
                continue
            reached.add(at)
            if node.test is None:
                waiting += leads[at]
        self._work -= NODE * len(reached)
        return reached


FOUND = -1
TEXT = 12
"""Characters that are walked along in the time that one text takes, whatever is in it."""
NODE = 24
"""Characters that are walked along in the time that one node takes."""

_ESCAPED, _CLASS = re.compile(r"\\."), re.compile(r"\[[^\]]*\]")
_GROUP = re.compile(r"\([^()]*\)")
_OPTIONAL = re.compile(r".(?:[*?]|\{[^}]*\})")
_RUN = re.compile(r"[a-z0-9_ ]{2,}")


def literals(source: str) -> tuple[str, ...]:
    """Return texts that whatever matches must have, in lower case; often none."""
    bare = _ESCAPED.sub("\0", source.lower())
    if "[]" in bare or "[^]" in bare:
        return ()
    bare, groups = _CLASS.sub("\0", bare), 1
    while groups:
        bare, groups = _GROUP.subn("\0", bare)
    return () if "|" in bare else tuple(_RUN.findall(_OPTIONAL.sub("\0", bare)))
