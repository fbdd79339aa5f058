"""What the forms of an English word have in common."""

from functools import lru_cache
from sys import intern

SHORT = 3
"""Letters of a word, or of what is left of one, that are never taken apart."""
_WHOLE = frozenset({"author", "comment", "note", "notion", "plane"})
"""Words that end like a form of `auth`, `com`, `not` and `plan`, and are none."""
_NO_PLURALS = frozenset({"news", "series", "species", "kubernetes", "always"})


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return what the forms of an English word have in common."""
    if len(word) <= SHORT or not word.isascii() or not word.isalpha():
        return intern(word)
    one = _singular(word)
    return intern(one if one in _WHOLE else _without_ending(_without_suffix(one)))


def _singular(word: str) -> str:
    """Take off the ending of a plural, or of a verb's third person."""
    if not word.endswith("s") or word.endswith(("ss", "us", "is")) or word in _NO_PLURALS:
        return word
    if word.endswith("ies") and len(word) > SHORT + 1:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1]


_SUFFIXES = (
    ("ization", "iz"), ("isation", "iz"), ("ational", "at"), ("ation", "at"), ("ition", "it"),
    ("ising", "iz"), ("ised", "iz"), ("ator", "at"), ("ating", "at"), ("ated", "at"),
    ("tional", "t"), ("tion", "t"), ("sion", "s"), ("ing", ""), ("ied", "y"), ("ed", ""),
    ("ment", ""), ("ness", ""), ("able", ""), ("ible", ""), ("ally", "al"), ("ly", ""),
    ("ers", ""), ("er", ""), ("or", ""),
)  # fmt: skip


def _without_suffix(word: str) -> str:
    """Take off the ending that makes a verb's form, or a noun of a verb."""
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) + len(instead) >= SHORT:
            rest = word[: len(word) - len(suffix)]
            return _undoubled(rest) if not instead else rest + instead
    return word


def _undoubled(word: str) -> str:
    """Undo the doubling of `running` and `stopped`, but not of `selling` or `passing`."""
    if len(word) > SHORT and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]
    return word


def _without_ending(word: str) -> str:
    """Make `creat` of both `create` and `creating`, and `categori` of `category`."""
    if len(word) > SHORT and word[-1] == "e":
        return word[:-1]
    return word[:-1] + "i" if len(word) > SHORT and word[-1] == "y" else word
