"""An MCP server that converts units, times, durations and numbers, without a network."""

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import durations
import measures
from mcp.server.mcpserver.exceptions import ToolError
from measures import Kind, UnitError
from pydantic import Field
from serving import READS, ExampleServer, plural, serve

MAX_ZONES = 50
"""The most time zones in one answer."""

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Zone = Annotated[str, Field(description="A time zone such as `Europe/Paris`, or `UTC`")]
Value = Annotated[float, Field(description="The number", allow_inf_nan=False)]
Day = Annotated[date, Field(description="A date such as 2026-03-31")]
Base = Annotated[int, Field(description="A base from 2 to 36", ge=2, le=36)]

server = ExampleServer(
    "units",
    title="Units and time",
    instructions="Convert units of measure, time zones, dates, durations, percentages and bases.",
)


@dataclass(frozen=True)
class Conversion:
    """A converted value."""

    value: float
    unit: str
    text: str


@dataclass(frozen=True)
class UnitInfo:
    """A unit and its other names."""

    symbol: str
    kind: Kind
    names: list[str]


@dataclass(frozen=True)
class UnitList:
    """Units that can be converted."""

    units: list[UnitInfo]


@dataclass(frozen=True)
class Moment:
    """A moment in one time zone."""

    local: str
    zone: str
    utc_offset: str
    weekday: str
    utc: str


@dataclass(frozen=True)
class Zones:
    """Names of time zones; `more` when some were left out."""

    zones: list[str]
    more: bool


@dataclass(frozen=True)
class Span:
    """The time between two dates."""

    days: int
    weekdays: int
    weeks: float
    text: str


@dataclass(frozen=True)
class DayInfo:
    """What a calendar says of a date."""

    date: str
    weekday: str
    iso_week: str
    day_of_year: int
    days_in_month: int
    leap_year: bool


@dataclass(frozen=True)
class Duration:
    """A length of time, written in several ways."""

    seconds: float
    text: str
    clock: str
    iso: str


@server.offer("Convert units", READS, hint="metric imperial miles kilometers pounds celsius")
def convert_unit(
    value: Value,
    source: Annotated[str, Field(description="The unit it is in, such as `km` or `pounds`")],
    target: Annotated[str, Field(description="The unit to convert it to")],
) -> Conversion:
    """Convert a measure into another unit: length, mass, volume, temperature, data and more."""
    try:
        result = measures.convert(value, source, target)
    except UnitError as error:
        raise ToolError(str(error)) from error
    old, new = measures.find(source).symbol, measures.find(target).symbol
    return Conversion(result, new, f"{value:.10g} {old} = {result:.10g} {new}")


@server.offer("List units", READS, hint="which units supported measures")
def list_units(
    kind: Annotated[Kind | None, Field(description="Only units of this kind")] = None,
) -> UnitList:
    """List the units that `convert_unit` knows, with their other names."""
    return UnitList(
        [
            UnitInfo(unit.symbol, unit.kind, list(unit.names))
            for unit in measures.UNITS
            if kind in {None, unit.kind}
        ]
    )


@server.offer("Current time", READS, hint="now clock today date what time is it")
def current_time(zone: Zone = "UTC") -> Moment:
    """Tell the time and date now in a time zone."""
    return _moment(datetime.now(_zone(zone)), zone)


@server.offer("Convert time zones", READS, hint="timezone meeting local time abroad")
def convert_time(
    time: Annotated[datetime, Field(description="A date and time such as 2026-03-31T09:00")],
    source: Annotated[str, Field(description="The zone it is in, if it does not say")],
    target: Annotated[str, Field(description="The zone to convert it to")],
) -> Moment:
    """Convert a time from one time zone to another; daylight saving is taken into account."""
    if time.tzinfo is None:
        time = time.replace(tzinfo=_zone(source))
    try:
        return _moment(time.astimezone(_zone(target)), target)
    except OverflowError as error:
        raise ToolError("That time is too far away for the calendar") from error


@server.offer("Find time zones", READS, hint="timezone list city iana")
def find_time_zones(
    query: Annotated[str, Field(description="Part of a name, such as a city")] = "",
) -> Zones:
    """List the names of time zones that contain a word."""
    wanted = query.strip().replace(" ", "_").casefold()
    found = sorted(zone for zone in available_timezones() if wanted in zone.casefold())
    return Zones(found[:MAX_ZONES], more=len(found) > MAX_ZONES)


@server.offer("Days between dates", READS, hint="date difference how long until age working days")
def days_between(start: Day, end: Day) -> Span:
    """Count the days, weekdays and weeks from one date to another; negative if it lies before."""
    days = (end - start).days
    first, last = sorted([start, end])
    weekdays = _weekdays_before(last) - _weekdays_before(first)
    sign = -1 if days < 0 else 1
    weeks, rest = divmod(abs(days), 7)
    text = f"{plural(weeks, 'week')} and {plural(rest, 'day')}"
    return Span(days, sign * weekdays, round(days / 7, 2), text)


@server.offer("Add to a date", READS, hint="date plus minus days weeks months from now")
def add_to_date(
    start: Day,
    *,
    years: Annotated[int, Field(description="Years to add", ge=-9999, le=9999)] = 0,
    months: Annotated[int, Field(description="Months to add", ge=-9999, le=9999)] = 0,
    weeks: Annotated[int, Field(description="Weeks to add", ge=-99999, le=99999)] = 0,
    days: Annotated[int, Field(description="Days to add", ge=-999999, le=999999)] = 0,
) -> DayInfo:
    """Add years, months, weeks and days to a date, or subtract them with negative numbers.

    A day that the month does not have becomes its last: 31 January and a month is 28 February.
    """
    count = start.year * 12 + start.month - 1 + years * 12 + months
    year, month = divmod(count, 12)
    try:
        last = calendar.monthrange(year, month + 1)[1]
        moved = date(year, month + 1, min(start.day, last)) + timedelta(weeks=weeks, days=days)
    except (ValueError, OverflowError) as error:
        raise ToolError(
            "That date is outside the calendar, which has the years 1 to 9999"
        ) from error
    return describe_date(moved)


@server.offer("Describe a date", READS, hint="weekday which day calendar week leap year")
def describe_date(day: Day) -> DayInfo:
    """Tell the weekday, the ISO week, the day of the year and the length of the month of a date."""
    year, week, _ = day.isocalendar()
    return DayInfo(
        date=day.isoformat(),
        weekday=f"{day:%A}",
        iso_week=f"{year}-W{week:02}",
        day_of_year=day.timetuple().tm_yday,
        days_in_month=calendar.monthrange(day.year, day.month)[1],
        leap_year=calendar.isleap(day.year),
    )


@server.offer("Convert durations", READS, hint="seconds hours minutes iso8601 how long")
def convert_duration(
    duration: Annotated[
        str,
        Field(
            description="Such as `90`, `1h 30m`, `2 days`, `01:30:00` or `PT1H30M`", max_length=100
        ),
    ],
) -> Duration:
    """Read a duration in any common form and write it in seconds, words, clock and ISO 8601."""
    try:
        seconds = durations.parse(duration)
    except ValueError as error:
        raise ToolError(f"{error}; write it as `1h 30m`, `01:30:00` or `PT1H30M`") from error
    return Duration(
        seconds, durations.words(seconds), durations.clock(seconds), durations.iso(seconds)
    )


@server.offer("Percentages", READS, hint="percent discount increase ratio tip")
def percent(
    what: Annotated[
        Literal["share", "ratio", "change", "add", "subtract"],
        Field(
            description="`share`: a % of b; `ratio`: a in % of b; `change`: from a to b in %; "
            "`add`: a plus b %; `subtract`: a minus b %"
        ),
    ],
    a: Value,
    b: Value,
) -> float:
    """Calculate with percentages: a share, a ratio, a change, a surcharge or a discount."""
    whole = {"ratio": b, "change": a}.get(what, 1.0)
    if not whole:
        raise ToolError("There are no percentages of zero: choose another number")
    results = {
        "share": a * b / 100,
        "ratio": a * 100 / whole,
        "change": (b - a) * 100 / abs(whole),
        "add": a + a * b / 100,
        "subtract": a - a * b / 100,
    }
    return float(f"{results[what]:.12g}")


@server.offer("Convert number bases", READS, hint="hex hexadecimal binary octal decimal radix")
def convert_base(
    number: Annotated[
        str, Field(description="A whole number; `0x`, `0b` and `_` may stay", max_length=1000)
    ],
    source: Base = 10,
    target: Base = 16,
) -> str:
    """Write a whole number in another base, such as hexadecimal or binary."""
    try:
        value = int(number, source)
    except ValueError as error:
        raise ToolError(f"`{number}` is not a whole number in base {source}") from error
    digits = ""
    rest = abs(value)
    while rest or not digits:
        rest, digit = divmod(rest, target)
        digits = DIGITS[digit] + digits
    return "-" + digits if value < 0 else digits


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC  # known even where there is no database of time zones
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ToolError(
            f"There is no time zone `{name}`; `find_time_zones` finds the one of a city"
        ) from error


def _moment(time: datetime, zone: str) -> Moment:
    return Moment(
        local=f"{time:%Y-%m-%d %H:%M:%S}",
        zone=zone,
        utc_offset=f"{time:%z}",
        weekday=f"{time:%A}",
        utc=f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
    )


def _weekdays_before(day: date) -> int:
    """Count the days from Monday to Friday since the calendar began, which was on a Monday."""
    weeks, rest = divmod(day.toordinal() - 1, 7)
    return weeks * 5 + min(rest, 5)


if __name__ == "__main__":
    serve(server)
