"""What was called after like requests: what a person does teaches what they mean.

A tool is lifted for a request that is like those after which it was called, and the more the
oftener that was so. One session is none: neither a slip nor one call that a server has talked
a model into counts for anything.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from aggregator.search.analysis import stop_free
from aggregator.search.weights import (
    FAMILIAR_SESSIONS,
    LIKE_REQUEST,
    MAX_COMPARED,
    MAX_HABITS,
)
from aggregator.search.words import stem, words


class Lesson(NamedTuple):
    """A query, and a tool that was called for it in one session, with success."""

    query: str
    tool: str
    session: str


class Habit(NamedTuple):
    """What was asked for, and in how many sessions each tool was called for it."""

    asked: frozenset[str]
    called: Mapping[str, int]


class Habits:
    """What there is to learn from a history; the same history teaches the same."""

    def __init__(self, lessons: Iterable[Lesson] = ()) -> None:
        sessions = defaultdict[frozenset[str], dict[tuple[str, str], None]](dict)
        for lesson in lessons:
            asked = sessions.pop(key := asked_words(words(lesson.query)), {})
            # What was asked last stands last, and stays longest.
            sessions[key] = asked | {(lesson.tool, lesson.session): None}
        kept = list(sessions.items())[-MAX_HABITS:]
        self._habits = [Habit(key, Counter(tool for tool, _ in each)) for key, each in kept]
        self._having = defaultdict[str, list[int]](list)
        for number, habit in enumerate(self._habits):
            for word in habit.asked:
                self._having[word].append(number)

    def strengths(self, asked: frozenset[str], /) -> dict[str, float]:
        """Return how sure it is, up to 1, that each tool is meant by a request."""
        times: defaultdict[str, float] = defaultdict(float)
        for likeness, habit in self._like(asked):
            for tool, number in habit.called.items():
                times[tool] += likeness * number
        every = sum(times.values())
        # The first session says nothing yet; what others were called for as well is shared.
        return {
            tool: min(1.0, (number - 1) / (FAMILIAR_SESSIONS - 1)) * number / every
            for tool, number in times.items()
            if number > 1
        }

    def _like(self, asked: frozenset[str]) -> Iterator[tuple[float, Habit]]:
        """Yield the habits whose requests have most of the words of this one, and few others."""
        having = self._having
        rarest = sorted(asked, key=lambda word: (len(having.get(word, ())), word))
        # What is like it has half of its words, and so one of the rarer half.
        rare = rarest[: len(asked) // 2 + 1]
        numbers = {number for word in rare for number in having.get(word, ())[-MAX_COMPARED:]}
        for number in sorted(numbers)[-MAX_COMPARED:]:
            habit = self._habits[number]
            likeness = len(asked & habit.asked) / len(asked | habit.asked)
            if likeness >= LIKE_REQUEST:
                yield likeness, habit


def asked_words(said: Iterable[str]) -> frozenset[str]:
    """Return the stems of the words by which requests are compared."""
    return frozenset(map(stem, stop_free(said)))
