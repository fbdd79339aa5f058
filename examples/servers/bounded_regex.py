"""Regular expressions that cannot run for ever.

A bad pattern keeps `re` busy for years, in a way that no thread can stop: so each one runs in a
process of its own, which is ended when its time is up. Run as a program, this file is that process.
"""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

MAX_MATCHES = 500
"""The most matches one answer holds."""

Flag = Literal["ignore_case", "multiline", "dot_all"]
FLAGS: dict[Flag, re.RegexFlag] = {
    "ignore_case": re.IGNORECASE,
    "multiline": re.MULTILINE,
    "dot_all": re.DOTALL,
}


@dataclass(frozen=True)
class Match:
    """One match, with its place in the text."""

    text: str
    start: int
    end: int
    groups: list[str | None]


@dataclass(frozen=True)
class Matches:
    """What a pattern found; `total` counts also what was left out."""

    matches: list[Match]
    total: int


@dataclass(frozen=True)
class Replaced:
    """A text after its replacements."""

    text: str
    count: int


@dataclass(frozen=True)
class Job:
    """What to look for, where, and what to put there, if anything."""

    pattern: str
    text: str
    flags: Sequence[Flag] = ()
    replacement: str | None = None

    def run(self) -> Matches | Replaced:
        """Find, or find and replace.

        Raises:
            ValueError: The pattern or the replacement is malformed.
        """
        try:
            pattern = re.compile(self.pattern, sum(FLAGS[flag] for flag in self.flags))
            if self.replacement is None:
                return _matches(pattern, self.text)
            return Replaced(*pattern.subn(self.replacement, self.text))
        except (re.error, IndexError, RecursionError) as error:
            raise ValueError(str(error)) from error


def _matches(pattern: re.Pattern[str], text: str) -> Matches:
    found: list[Match] = []
    total = 0
    for match in pattern.finditer(text):
        total += 1
        if total <= MAX_MATCHES:
            found.append(Match(match[0], match.start(), match.end(), list(match.groups())))
    return Matches(found, total)


def _main() -> None:
    job: dict[str, Any] = json.load(sys.stdin)
    try:
        json.dump(asdict(Job(**job).run()), sys.stdout)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main()
