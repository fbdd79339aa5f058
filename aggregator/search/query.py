"""What a search text asks for, as a value."""

import re
from dataclasses import dataclass, field

from aggregator.search.weights import MAX_QUERY, MAX_TERMS

MAX_SELECTED = 64
"""Names one `select:` may ask for."""


@dataclass(frozen=True, slots=True)
class Select:
    """Exactly these tools, by name."""

    names: tuple[str, ...]
    text: str = field(default="", compare=False)
    """The query as written."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What there is: the servers rather than tools."""

    text: str = field(default="", compare=False)
    """The query as written."""


@dataclass(frozen=True, slots=True)
class Keywords:
    """Words to rank tools by, and filters that come first."""

    text: str
    """The query as written, bounded."""
    terms: tuple[str, ...] = ()
    """Every word to rank by, required words and words of phrases among them."""
    required: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    """Server filters as written; a tool of any of them passes."""


Query = Select | Overview | Keywords

_PIECE = re.compile(r'\+?"([^"]*)"|(\S+)')
_WORD = re.compile(r"\w")
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
        else:
            bare = word.lstrip("+") if plus else word
            required += [bare] * (plus and _WORD.search(bare) is not None)
            terms += [bare] * (_WORD.search(bare) is not None)
    return Keywords(
        text=text,
        terms=tuple(terms[:MAX_TERMS]),
        required=tuple(dict.fromkeys(required[:MAX_TERMS])),
        phrases=tuple(dict.fromkeys(phrases)),
        servers=tuple(dict.fromkeys(servers)),
    )


def _server_filter(word: str) -> str | None:
    """Return the server a word restricts the search to, if that is what the word does."""
    if "__" not in word and word[:7].lower() != "server:":
        return None
    for form in _SERVER_FORMS:
        if found := form.fullmatch(word):
            return found[1].rstrip(",;")
    return None
