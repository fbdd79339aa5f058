"""What a search text asks for, as a value."""

import re
from dataclasses import field
from typing import Literal, NamedTuple

from aggregator.basics.frozen import frozen
from aggregator.config.kinds import EVERY_KIND, FoundKind
from aggregator.search.weights import MAX_QUERY, MAX_TERMS

MAX_SELECTED = 64
"""Names one `select:` may ask for."""


@frozen
class Select:
    """Exactly these tools, by name."""

    names: tuple[str, ...]
    text: str = field(default="", compare=False)
    """The query as written."""


@frozen
class Overview:
    """What there is: the servers rather than tools."""

    text: str = field(default="", compare=False)
    """The query as written."""


Mark = Literal["readonly", "destructive"]
"""An annotation that narrows a search."""


class Keywords(NamedTuple):
    """Words to rank tools by, and filters that come first."""

    text: str
    """The query as written, bounded."""
    terms: tuple[str, ...] = ()
    """Every word to rank by, required words and words of phrases among them."""
    required: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    """Server filters as written; a tool of any of them passes."""
    marks: tuple[tuple[Mark, bool], ...] = ()
    """What tools must be annotated with, or must not be."""
    kinds: tuple[FoundKind, ...] = ()
    """The kinds of what is asked for; none means those that are found without asking."""


@frozen
class Expression:
    """The tools in whose names or descriptions a regular expression is found."""

    source: str
    text: str = field(default="", compare=False)
    """The query as written."""


Query = Select | Overview | Keywords | Expression

_PIECE = re.compile(r'\+?"([^"]*)"|(\S+)')
_EXPRESSION = re.compile(r"/(.+)/[a-z]{0,6}")
_WORD = re.compile(r"\w")
_MARK = re.compile(r"(readonly|destructive):(.*)", re.IGNORECASE)
_ANSWERS = {"": True, "true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SERVER_FORMS = (
    re.compile(r"server:(\S+)", re.IGNORECASE),
    re.compile(r"mcp__((?:(?!__)\S)+?)(?:__)?\*?", re.IGNORECASE),
    re.compile(r"((?:(?!__)\S)+)__\*?"),
)


def parse_query(text: str) -> Query:
    """Read a search text; every text means something."""
    wanted = _printable(text[:MAX_QUERY])
    if wanted.lower() in ("", "*", "server:"):
        return Overview(text)
    if wanted[:7].lower() == "select:":
        return Select(_names(_printable(text)[7:]), text)
    if expression := _EXPRESSION.fullmatch(wanted):
        return Expression(expression[1], wanted)
    return _keywords(wanted)


def _printable(text: str) -> str:
    """Replace what cannot be seen by blanks."""
    if text.isprintable():
        return text.strip()
    return "".join(each if each.isprintable() else " " for each in text).strip()


def _names(text: str) -> tuple[str, ...]:
    """Split a list of names at commas, keeping the order they were asked in."""
    names = (each.strip().strip("`'\"") for each in text[: MAX_SELECTED * 128].split(","))
    return tuple(dict.fromkeys(each for each in names if each))[:MAX_SELECTED]


def _keywords(text: str) -> Keywords:
    """Sort the pieces of a query into words, phrases and filters."""
    terms: list[str] = []
    required: list[str] = []
    phrases: list[str] = []
    servers: list[str] = []
    marks = dict[Mark, bool]()
    kinds: list[FoundKind] = []
    for piece in _PIECE.finditer(text):
        phrase, word = piece.groups()
        plus = piece[0].startswith("+")
        if phrase is not None:
            inside = phrase.split()
            phrases += [phrase.strip()] * (len(inside) > 1)
            required += inside * (plus or 0)
            terms += inside
        elif server := _server_filter(word):
            servers.append(server)
        elif asked := _kinds(word):
            kinds += asked
        else:
            bare = _marked(word.lstrip("+") if plus else word, marks)
            required += [bare] * (plus and _WORD.search(bare) is not None)
            terms += [bare] * (_WORD.search(bare) is not None)
    return Keywords(
        text=text,
        terms=tuple(terms[:MAX_TERMS]),
        required=tuple(dict.fromkeys(required[:MAX_TERMS])),
        phrases=tuple(dict.fromkeys(phrases)),
        servers=tuple(dict.fromkeys(servers)),
        marks=tuple(marks.items()),
        kinds=tuple(dict.fromkeys(kinds)),
    )


def _marked(word: str, marks: dict[Mark, bool]) -> str:
    """Note the annotation that a word asks for, and return what else it says."""
    if (form := _MARK.fullmatch(word)) is None:
        return word
    answer = _ANSWERS.get(form[2].lower())
    marks["readonly" if form[1].lower() == "readonly" else "destructive"] = answer is not False
    return form[2] if answer is None else ""


def _kinds(word: str) -> list[FoundKind]:
    """Return the kinds of things that a word asks for, if that is what the word does."""
    if word[:5].lower() != "kind:":
        return []
    asked = {each.removesuffix("s") for each in re.split(r"[,|]", word[5:].lower())}
    return [kind for kind in EVERY_KIND if kind in asked]


def _server_filter(word: str) -> str | None:
    """Return the server a word restricts the search to, if that is what the word does."""
    if "__" not in word and word[:7].lower() != "server:":
        return None
    for form in _SERVER_FORMS:
        if found := form.fullmatch(word):
            return found[1].rstrip(",;")
    return None
