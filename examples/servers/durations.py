"""Lengths of time, read from what people write and written as they read them."""

import re
from collections.abc import Iterable

NUMBER = r"(\d+(?:\.\d+)?)"
CLOCK = re.compile(r"(\d+):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")
ISO = re.compile(
    rf"P(?:{NUMBER}W)?(?:{NUMBER}D)?(?:T(?:{NUMBER}H)?(?:{NUMBER}M)?(?:{NUMBER}S)?)?",
    re.IGNORECASE,
)
PART = re.compile(rf"(?:,|and\s)?\s*{NUMBER}\s*([a-z]*)\s*")

SIZES = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
"""Seconds in each unit, the largest first."""

UNITS = {
    **dict.fromkeys(("w", "wk", "week", "weeks"), SIZES["week"]),
    **dict.fromkeys(("d", "day", "days"), SIZES["day"]),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), SIZES["hour"]),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), SIZES["minute"]),
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), SIZES["second"]),
}


def parse(text: str) -> float:
    """Return the seconds of a duration such as `1h 30m`, `01:30:00` or `PT1H30M`.

    Raises:
        ValueError: It is not a duration.
    """
    written = text.strip()
    if clock := CLOCK.fullmatch(written):
        return _total(clock.groups(), (3_600, 60, 1))
    iso = ISO.fullmatch(written)
    if iso and any(iso.groups()):
        return _total(iso.groups(), SIZES.values())
    return _parse_words(written.casefold())


def words(seconds: float) -> str:
    """Return a duration as people say it: `1 hour 30 minutes`."""
    said: list[str] = []
    for unit, size in SIZES.items():
        count, seconds = divmod(seconds, size) if size > 1 else (round(seconds, 3), 0)
        if count:
            said.append(f"{count:g} {unit}{'' if count == 1 else 's'}")
    return " ".join(said) or "0 seconds"


def clock(seconds: float) -> str:
    """Return a duration as on a stopwatch: `1:30:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def iso(seconds: float) -> str:
    """Return a duration as in ISO 8601: `PT1H30M`."""
    hours, rest = divmod(seconds, 3_600)
    minutes, rest = divmod(rest, 60)
    parts = [(hours, "H"), (minutes, "M"), (round(rest, 3), "S")]
    return "PT" + ("".join(f"{count:.15g}{unit}" for count, unit in parts if count) or "0S")


def _total(counts: Iterable[str | None], sizes: Iterable[int]) -> float:
    return sum(float(count or 0) * size for count, size in zip(counts, sizes, strict=True))


def _parse_words(text: str) -> float:
    # One part after the other: a single pattern for all of them could be made to run for ever.
    total, position = 0.0, 0
    while position < len(text) or not text:
        part = PART.match(text, position)
        if part is None or part[2] not in UNITS:
            raise ValueError(f"`{text}` is not a duration")
        total += float(part[1]) * UNITS[part[2]]
        position = part.end()
    return total
