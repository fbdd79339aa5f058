"""What a YAML parser complains about, in the words of whoever wrote the file."""

import re
from typing import NamedTuple

import yaml

_WORDS = (
    (r"end of stream.*quoted scalar", "a quotation mark is never closed"),
    (r"stream end.*flow sequence", "a `[` is never closed"),
    (r"stream end.*flow mapping", "a `{` is never closed"),
    (r"node content, but found '<stream end>'", "it ends too early"),
    (r"node content, but found '(.)'", r"a value is missing before a `\1`"),
    (r"expected ',' or '(.)'", r"a `,` or `\1` is missing"),
    (r"character '(?:\\t|\t)'", "a tab is used for indentation"),
    (r"character '(.)' that cannot start", r"text that is not in quotes begins with `\1`"),
    (r"while scanning an alias|undefined alias", "text that is not in quotes begins with `*`"),
    (
        r"mapping values are not allowed",
        "there is a second colon, or the line is indented further than the one above",
    ),
    (r"expected <block end>", "this line is not indented as those above it"),
    (r"expected '<document start>'", "there is more after the end of what it says"),
    (r"could not find expected ':'", "a key has no colon behind it"),
)
"""What the parser says, with what it was doing, and what is wrong in the file then."""


class Complaint(NamedTuple):
    """What is wrong with a text that is no YAML, and where."""

    problem: str
    line: int
    context: str
    """The parser's own words, for whoever knows more to do about them."""


def complaint(error: yaml.MarkedYAMLError) -> Complaint:
    """Return what a parser means."""
    problem, context = error.problem or "", error.context or ""
    # What was never closed is found missing at the end, but to be mended where it began.
    unclosed = "end of stream" in problem or "stream end" in problem
    mark = (error.context_mark if unclosed else None) or error.problem_mark
    said = f"{problem}, {context}" if context else problem
    return Complaint(_in_words(said, problem), mark.line + 1 if mark else 1, said)


def _in_words(said: str, problem: str) -> str:
    for pattern, words in _WORDS:
        if found := re.search(pattern, said):
            return found.expand(words)
    return problem
