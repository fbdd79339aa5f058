"""Every number of the ranking that was chosen by measuring, each with its reason.

The reason is one of four, and `docs/search.md` tells how it is measured:

    Recall.  The right tool is found more often (`benchmarks/retrieval.py`).
    Attack.  Who writes tools for the ranking gains less by it (`benchmarks/attacks.py`).
    Speed.   No query, and no tool, takes longer than it is worth (`benchmarks/search.py`).
    Sense.   Nobody has measured a difference; without it an answer would look odd.

What a query may be is known before the index is loaded, and its bounds are here, too: named
tuples are made in a third of the time that data classes take.
"""

from enum import StrEnum
from typing import NamedTuple

MAX_QUERY = 4096
"""Characters of a query that are read; the rest is left out. Speed."""
MAX_TERMS = 400
"""Words of a query that are ranked by. Speed."""

MAX_CONCEPTS = 96
"""Different words of a query that are looked up, the rare ones of a longer one. Speed."""

MAX_NAME = 256
"""Characters of a name or title that are indexed. Attack, speed."""
MAX_DESCRIPTION = 2048
"""Characters of a description that are indexed: enough to say what a tool does. Attack, speed."""
MAX_DETAIL = 256
"""Characters of one parameter's description that are indexed. Attack, speed."""
MAX_PARAMETERS = 64
"""Parameters of one tool that are indexed, nested ones included. Attack, speed."""
MAX_DEPTH = 5
"""Levels of nesting below which parameters are not looked for. Attack, speed."""
MAX_CHOICES = 24
"""Enum values of one parameter, or kinds it may be of, that are indexed. Attack, speed."""
MAX_CHOICE = 64
"""Characters of one enum value that are indexed. Attack, speed."""
MAX_GIST = 600
"""Characters of a description that are read for its meaning: what follows tells how, and no
longer what. Recall, speed."""

WORDS_OF_PAIRS = 0.25
"""Words that one pair of characters of a Chinese text counts as at least: characters overlap in
pairs, and every other word is known in English and counted there. Attack."""

MAX_CLAUSES = 6
"""Sentences of a request that are read for their meaning each by itself. Recall, speed."""
SHORTEST_CLAUSE = 3
"""Words below which a sentence says too little by itself: "Thanks a lot!" Recall."""
DRAWN_OUT = 0.5
"""How far the nearest tool of each sentence is brought to the nearest of all: 0 leaves it where it
is, and with 1 every sentence has a nearest one that is as near. Recall."""

COMMON_PIECE = 0.03
"""The share of all tools that have a piece of a word at which it counts half in the vector of a
request: "the", a full stop and what every tool is about say little of what is asked for. Recall."""
UNTOLD_TOOLS = 100
"""Tools without any piece that are counted in: of two tools, each has half of the pieces, and yet
these are not common. Sense."""
AFTERWARDS = 0.3
"""What a piece counts in the vector of a tool that stands behind the first sentence: that one says
what the tool does, and what follows mostly how. Recall."""

MAX_GUESSES = 8
"""Unknown words of one query that are looked up by likeness; the rest match nothing. Speed."""
MAX_CONTAINING = 8
"""Words that one part of a word may stand for. Recall."""
MAX_REQUIRED = 64
"""The same where the part is required: a filter leaves out what it does not know. Recall."""
LONG_REQUEST = 6
"""Words from which a query is a request in sentences rather than keywords. Recall."""
LONG_WINDED = 32
"""Words from which a request says in words of its own what tables would add: these are left out.
Recall."""
OPENING = 5
"""Different words at the beginning of a request in which a question begins. Sense."""
SEVERAL_NEEDS = 16
"""Words the index knows from which a request is likely to ask for several tools. Recall."""
NEGLIGIBLE = 0.1
"""The part of a word's worth below which an alternative is left out. Speed."""
SPOKEN = 2
"""A phrase in quotes demands something if it has one of so many words: in a longer request quotes
are around values. Recall."""

SHORTEST_GUESS = 4
"""Letters below which a word is too short to guess what was meant. Recall."""
TWO_SLIPS = 8
"""Letters from which two slips are forgiven instead of one. Recall."""
LONGEST_LIKENED = 64
"""Characters of a name that does not exist by which others are found: no tool has a longer one.
Speed."""
LIKE = 65
"""The likeness, of 100, below which a name is no suggestion. Sense."""
LONGEST_NAME = 12
"""Words beyond which a query is a sentence, and no name is looked for in it. Speed."""
SHORTEST_SLIP = 3
"""Letters below which a word of a name is recognised with a slip only among others that are
right. Recall."""

SMALL_SERVER = 16
"""Tools of one server that count in full when the tools that have a word are counted: no server
makes a word worthless by repeating it. Attack."""

SHORTLIST = 48
"""Tools of which the score is worked out in full, half of them in any case. Speed."""
BUDGET = 1000
"""Postings that may bring in tools; commoner words then only add to those already in. Speed."""
SCARCE = 50
"""Tools that have a word below which its alternatives bring in tools, too. Recall."""
HOPELESS = 0.5
"""The part of the best first guess below which no bonus makes up for what is missing. Speed."""

MAX_HABITS = 2_000
"""Requests of which it is kept in mind what was called after them. Speed."""
MAX_COMPARED = 200
"""Of these, those that one request is held against, the latest. Speed."""
LIKE_REQUEST = 0.5
"""The share of the words of two requests together from which one is like the other. Sense."""
FAMILIAR_SESSIONS = 4
"""Sessions in which a tool was called after like requests from which it is sure to be meant; one
is none. Attack."""

ECHO_PAIRS = 3
"""Pairs of words, one after the other, from which a text may repeat the request itself. Attack."""
ECHO_SHARE = 0.7
"""The share of the pairs of a request from which a text repeats it. Attack."""
STUFFED_PAIRS = 5
"""Pairs of a request from which none is in the midst of a longer text by chance. Attack."""
LEEWAY = 8
"""Words at the beginning of a text that may stand before those of a request. Attack."""
RELATED = 0.1
"""The part of a request that the name and the first words of a tool have which is about it: such
a tool is not stuffed. Recall."""
WORDY = 100
"""Distinct words of a tool from which words side by side mean less. Attack."""

ALIKE_WORDS = 4
ALIKE_TAKEN = 0.85
ALIKE_SHARED = 0.33
"""How many words tools of two servers have in common that count as the same: at least so many,
and so much of those of the shorter one, and of those of both. Attack."""


class Field(StrEnum):
    """Where in a tool's definition a word stands."""

    NAME = "name"
    TITLE = "title"
    SERVER = "server"
    HINT = "hint"
    DESCRIPTION = "description"
    PARAMETER = "parameter"
    DETAIL = "detail"
    """Descriptions and enum values of parameters."""


class Measure(NamedTuple):
    """How much a word in one field counts, and how much the length of the field matters."""

    weight: float
    usual: float
    """The number of words at which length changes nothing; fixed, not the mean of the catalog,
    so that a server that joins changes nothing about the others."""
    slope: float
    """0: length does not matter; 1: in a field twice as long, a word counts half as much."""


class Blending(NamedTuple):
    """How meaning counts beside words."""

    words: float = 0.5
    """What the best by words counts beside likeness, which counts as it is: so much it is for a
    tool that is surely meant. Recall."""
    candidates: int = 48
    """Tools found by words that are ranked again; further down nothing is left to gain. Recall."""
    nearest: int = 32
    """Tools that may be found by their meaning alone. Recall."""
    distant: float = 0.25
    """The likeness below which a tool that has none of the words is no answer at all. Sense."""
    few: int = 5
    """The places of which the first of either ranking always has one. Recall."""


class Spreading(NamedTuple):
    """How much less counts what a server, or a text, has shown before."""

    places: int = 10
    """Places that are filled one by one; each costs more than the one before. Speed."""
    free: int = 1
    """Further tools of one server that are shown before the next ones count less. Recall."""
    crowding: float = 0.9
    """What each tool of one server after those counts, again for each. Recall."""
    top: int = 3
    """The places that are read with most trust. For these, what speaks against a tool outweighs
    all that its text has of the request. Attack."""
    answered: float = 0.7
    """What a tool counts, in a request for several, that has none of the words but those which
    others have brought already. Recall."""
    strange: float = 0.85
    """What a tool counts there whose server has shown none: needs of one request go together.
    Recall."""
    second: float = 1.0
    """What another tool of a server counts among those. Recall."""
    spares_home: bool = True
    """Whether who calls a server by its name is given that server's tools, however many. With
    meaning a server is found by more than its name. Recall."""
    echo: float = 0.3
    """What the others count of a server that has shown a tool which repeats the request: who
    writes tools for requests has one for each. Attack."""
    forewarned: bool = False
    """Whether they count less even before that tool is shown: by meaning another may come before
    it. Attack."""
    twin: float = 0.3
    """What each further tool counts that says the same of itself. Recall, attack."""
    close: float = 0.8
    """The part of what a tool is worth that its copy has at least, if it is one. Attack."""


class Weights(NamedTuple):
    """What a word, or words together, are worth: round numbers on a plateau."""

    name: Measure = Measure(5.0, 3.0, 0.4)
    """Names count most: there is little room in them to write for requests. Recall, attack."""
    title: Measure = Measure(2.0, 3.0, 0.4)
    """Recall."""
    server: Measure = Measure(3.0, 3.0, 0.2)
    """Recall."""
    hint: Measure = Measure(3.0, 6.0, 0.4)
    """Recall."""
    description: Measure = Measure(1.5, 20.0, 0.6)
    """Recall."""
    parameter: Measure = Measure(1.0, 4.0, 0.3)
    """Recall."""
    detail: Measure = Measure(0.5, 20.0, 0.6)
    """Recall."""
    repetition: float = 0.5
    """A word said n times in a field counts as n to this power: stuffing pays little. Recall,
    attack."""
    saturation: float = 3.0
    """The weight at which a word has half of its greatest effect. Recall, attack."""

    prior: float = 400.0
    """Tools of an average catalog that are counted in when the rarity of a word is measured: a
    small one says little of which words are common. Sense."""
    faint: float = 0.7
    """What a word counts that requests are only wrapped in. Recall."""
    asked: float = 0.3
    """What `get` counts in a question: who asks for the time does not want to convert it. Sense."""
    quoted: float = 0.5
    """What a word counts that a long request has in quotes alone: it is a value. Recall."""
    joined: float = 0.9
    """What `createissue` counts for `create` and for `issue`. Recall."""
    translated: float = 0.9
    """What an English word counts for a Chinese one. Recall."""
    humps: float = 0.5
    """What `git` and `hub` count when `GitHub` as a whole is known. Recall."""
    equivalent: float = 0.6
    """What a word of the same meaning counts; always less than the word itself. Recall."""
    topic: float = 0.4
    """What the topic of a word counts when no tool has the word. Recall."""
    familiar: float = 30.0
    """Tools that have a word at which its topic counts half as much. Recall."""
    repaired: float = 0.9
    """What the likeliest word counts for a misspelt one. Recall."""
    doubted: float = 0.3
    """The same in a long request: there, an unknown word is more likely a name than a slip.
    Recall."""
    contained: float = 0.5
    """What a word counts of which the query has a part. Recall."""

    coverage: float = 0.5
    """Added, times the score, for an answer to the whole query. Recall."""
    together: float = 0.3
    """Added, times what both words bring, for two that stand side by side in both texts. Recall."""
    named: float = 0.3
    """Added, times the worth of the words in the name, when they are all of the name. Recall."""
    hosted: float = 0.3
    """The same for the name of the server. Recall."""
    outdated: float = 0.4
    """Taken away, times the score, from a tool that says that it is deprecated. Sense."""

    learned: float = 0.3
    """Added at most, times the score, to a tool that was called after like requests. Sense."""

    blending: Blending = Blending()
    by_words: Spreading = Spreading()
    by_meaning: Spreading = Spreading(
        free=2, crowding=0.97, second=0.95, spares_home=False, forewarned=True, close=0.65
    )
    """Where meaning counts, too, scores are nearer to each other: less tips the balance."""

    def of(self, field: Field) -> Measure:
        """Return how one field is measured."""
        measure: Measure = getattr(self, field)
        return measure


WEIGHTS = Weights()
