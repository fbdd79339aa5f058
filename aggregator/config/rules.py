"""Which tools a glob in the file means, however its author and the server write names."""

import re
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import NamedTuple

from aggregator.names import ServerName, Spellings, spellings
from aggregator.names.forms import BOUNDARY, CLIENT_MARK, flattened, folded, worded

EVERYTHING = ("*",)
"""The globs of which everything is one."""

_WILD = re.compile(r"(\[[^\]]*\]|[*?]+)")
_HASHED = re.compile(r"[^*?\[]+_[0-9a-f]{6}")
"""A name with a hash; what is wild could be the hash of any other tool."""


class Whose(NamedTuple):
    """The server whose tools a rule is about."""

    name: ServerName
    prefix: str


class Rule(NamedTuple):
    """Some globs, ready to be held against names."""

    own: re.Pattern[str]
    """For names as their server writes them, and in the characters every client takes."""
    folded: re.Pattern[str]
    """For names without case and signs, as calls forgive them."""
    whole: re.Pattern[str] | None
    """For names as clients see them."""
    hashed: frozenset[str]
    """Names with a hash behind them, without case and signs."""
    is_generous: bool
    """Whether names are taken for their words too, which calls do not forgive."""
    leads: tuple[str, ...]
    """What names may begin with by themselves that a call takes for the name of their server."""

    def means(self, spelled: Spellings) -> bool:
        """Whether a tool is one that the globs are about."""
        if self.own.match(spelled.own) or self.own.match(spelled.plain):
            return True
        forms = spelled.worded if self.is_generous else spelled.folded
        if any(map(self.folded.match, (*forms, *self._behind_leads(forms)))):
            return True
        whole = self.whole
        if whole is not None and any(map(whole.match, (spelled.whole, spelled.hashed))):
            return True
        return bool(self.hashed) and folded(spelled.bare_hashed) in self.hashed

    def _behind_leads(self, forms: Iterable[str]) -> Iterator[str]:
        """Yield what is left of names that say themselves whose they are."""
        for form in forms:
            if form.startswith(self.leads):
                yield from (form.removeprefix(lead) for lead in self.leads if form.startswith(lead))


@lru_cache(maxsize=4096)
def rule(globs: tuple[str, ...], whose: Whose, *, is_generous: bool = False) -> Rule:
    """Return what globs mean under a server.

    What forbids is generous: `delete_*` is also `deleteNote`, and the server's name may stand
    before it with any sign, or before the tool: `notes_delete_note` of `notes` can be called
    `notes__delete_note`. What permits is no more forgiving than calls are.
    """
    held = [rest for glob in globs for rest in (glob, *_behind_prefix(glob, whose))]
    loose, hashed, leads = held, frozenset[str](), set[str]()
    if is_generous:
        leads = _leads(whose)
        loose = [*held, *(rest for glob in globs for rest in _behind_name(glob, whose))]
        loose += [worded(each) for each in loose]
        hashed = frozenset(each for each in map(_folded, loose) if _HASHED.fullmatch(each))
    # A glob is held against whole names only if it has the sign that is in all of them:
    # `files_*` would be all tools of `files`.
    whole = [glob for glob in globs if "__" in glob or not whose.prefix]
    return Rule(
        own=_joined(held),
        folded=_joined(map(_folded, loose)),
        whole=_joined(whole, re.IGNORECASE) if whole else None,
        hashed=hashed,
        is_generous=is_generous,
        leads=tuple(leads),
    )


def admits(
    allow: tuple[str, ...], deny: tuple[str, ...], whose: Whose, names: Collection[str]
) -> bool:
    """Return whether rules leave something of a server, by each of its own names."""
    if allow == EVERYTHING and not deny:
        return True
    written = [spellings(name, whose.prefix) for name in names]
    if deny and any(map(rule(deny, whose, is_generous=True).means, written)):
        return False
    return any(map(rule(allow, whose).means, written))


def covers(globs: Iterable[str], whose: Whose) -> bool:
    """Return whether some globs mean all that a server has, whatever that is."""
    return any(_is_wild(rest) for glob in globs for rest in (glob, *_addressed(glob, whose)))


def concerns(globs: Iterable[str], whose: Whose) -> bool:
    """Return whether some globs may mean something of a server: none that names another does."""
    return any("__" not in glob or bool([*_addressed(glob, whose)]) for glob in globs)


def _is_wild(glob: str) -> bool:
    return bool(glob) and not glob.strip("*")


def _addressed(glob: str, whose: Whose) -> Iterator[str]:
    """Yield what is left of a glob behind the name of a server, which may be wild itself."""
    yield from _behind_prefix(glob, whose)
    head, sign, rest = glob.partition("__")
    leads = (lead.casefold() for lead in whose if lead)
    if sign and any(fnmatchcase(lead, head.casefold()) for lead in leads):
        yield rest


def _behind_prefix(glob: str, whose: Whose) -> Iterator[str]:
    """Yield what is left of a glob behind the name of its server, as clients show names."""
    for begin in (0, *(boundary.start() for boundary in BOUNDARY.finditer(glob))):
        head, sign, rest = glob[begin:].partition("__")
        if sign and rest and head and head.casefold() in map(str.casefold, whose):
            yield rest


def _behind_name(glob: str, whose: Whose) -> Iterator[str]:
    """Yield the same for any sign, unless nothing but wildcards is left."""
    plain = _folded(glob)
    marked = BOUNDARY.finditer(plain) if plain.startswith(CLIENT_MARK) else ()
    leads = _leads(whose)
    for text in (plain, *(plain[boundary.start() :] for boundary in marked)):
        for lead in leads:
            rest = text.removeprefix(lead)
            if rest != text and folded(_WILD.sub("", rest)):
                yield rest


def _leads(whose: Whose) -> set[str]:
    """Return what a server may be named by before a tool, without case and signs."""
    return {f"{folded(lead)}_" for lead in whose if folded(lead)}


def _folded(glob: str) -> str:
    """Return a glob without case and signs, but for those that are wild."""
    parts = _WILD.split(glob)
    parts[::2] = map(flattened, parts[::2])
    return "".join(parts).casefold().strip("_")


def _joined(globs: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    # Without any, nothing matches; the empty pattern would match everything.
    return re.compile("|".join(map(translate, dict.fromkeys(globs))) or r"(?!)", flags)
