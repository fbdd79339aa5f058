from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import available_timezones

import pytest

from tests.examples.example_client import Connect

pytestmark = pytest.mark.anyio

needs_zones = pytest.mark.skipif(
    not available_timezones(), reason="this machine has no database of time zones"
)


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (1, "mi", "km", 1.609344),
        (100, "°C", "Fahrenheit", 212),
        (32, "F", "K", 273.15),
        (1, "square kilometres", "ha", 100),
        (8, "Mbit", "MB", 1),
        (1, "mb", "kB", 1000),
        (90, "deg", "turn", 0.25),
        (-40, "c", "f", -40),
    ],
)
async def test_units_are_converted(
    connect: Connect, value: float, source: str, target: str, result: float
):
    async with connect("units") as units:
        arguments: dict[str, Any] = {"value": value, "source": source, "target": target}
        converted = await units.call("convert_unit", **arguments)
        assert converted["value"] == pytest.approx(result)


async def test_units_that_do_not_fit_or_are_not_known_are_refused_readably(connect: Connect):
    async with connect("units") as units:
        refusal = await units.refusal("convert_unit", value=1, source="kg", target="m")
        assert "`kg` is a unit of mass and `m` one of length; units of mass are `kg`" in refusal
        refusal = await units.refusal("convert_unit", value=1, source="kilometr", target="m")
        assert "There is no unit `kilometr`; did you mean kilometre" in refusal
        refusal = await units.refusal("convert_unit", value=1, source="parsnips", target="m")
        assert "`list_units` shows them all" in refusal


async def test_units_are_listed_by_kind(connect: Connect):
    async with connect("units") as units:
        listed = (await units.call("list_units", kind="power"))["units"]
        assert [unit["symbol"] for unit in listed] == ["W", "kW", "hp"]
        assert len((await units.call("list_units"))["units"]) > 70
        assert "kind" in await units.refusal("list_units", kind="currency")


@needs_zones
async def test_the_time_now_is_told_in_a_zone(connect: Connect):
    async with connect("units") as units:
        now = await units.call("current_time", zone="Asia/Tokyo")
        assert (now["zone"], now["utc_offset"]) == ("Asia/Tokyo", "+0900")
        told = datetime.fromisoformat(now["utc"])
        assert abs(datetime.now(UTC) - told) < timedelta(minutes=1)
        for zone in ("Mars/Base", "../etc/passwd", "Europe", ""):
            assert "There is no time zone" in await units.refusal("current_time", zone=zone)


async def test_utc_is_known_everywhere(connect: Connect):
    async with connect("units") as units:
        assert (await units.call("current_time"))["utc_offset"] == "+0000"


@needs_zones
async def test_times_are_converted_between_zones(connect: Connect):
    async with connect("units") as units:
        arguments = {"time": "2026-07-01T09:00", "source": "Europe/Paris", "target": "UTC"}
        moment = await units.call("convert_time", **arguments)
        assert (moment["local"], moment["weekday"]) == ("2026-07-01 07:00:00", "Wednesday")
        arguments["time"] = "2026-07-01T09:00+09:00"
        assert (await units.call("convert_time", **arguments))["utc"] == "2026-07-01T00:00:00Z"
        arguments["time"] = "0001-01-01T00:00+09:00"
        assert "too far away" in await units.refusal("convert_time", **arguments)
        assert "time" in await units.refusal("convert_time", **{**arguments, "time": "noonish"})


@needs_zones
async def test_time_zones_are_found_by_city(connect: Connect):
    async with connect("units") as units:
        found = await units.call("find_time_zones", query="new york")
        assert "America/New_York" in found["zones"]
        everything = await units.call("find_time_zones")
        assert (len(everything["zones"]), everything["more"]) == (50, True)


async def test_days_between_dates_are_counted(connect: Connect):
    async with connect("units") as units:
        span = await units.call("days_between", start="2026-01-02", end="2026-01-13")
        assert span == {"days": 11, "weekdays": 7, "weeks": 1.57, "text": "1 week and 4 days"}
        back = await units.call("days_between", start="2026-01-13", end="2026-01-02")
        assert (back["days"], back["weekdays"]) == (-11, -7)
        assert "start" in await units.refusal("days_between", start="2026-02-30", end="2026-03-01")


async def test_time_is_added_to_dates(connect: Connect):
    async with connect("units") as units:
        month = await units.call("add_to_date", start="2026-01-31", months=1)
        assert month["date"] == "2026-02-28"
        back = await units.call("add_to_date", start="2024-02-29", years=-1, weeks=1, days=-1)
        assert back["date"] == "2023-03-06"
        refusal = await units.refusal("add_to_date", start="2026-01-31", years=9999)
        assert "outside the calendar" in refusal


async def test_a_date_is_described(connect: Connect):
    async with connect("units") as units:
        assert await units.call("describe_date", day="2024-12-30") == {
            "date": "2024-12-30",
            "weekday": "Monday",
            "iso_week": "2025-W01",
            "day_of_year": 365,
            "days_in_month": 31,
            "leap_year": True,
        }
        assert "day" in await units.refusal("describe_date", day="someday")


@pytest.mark.parametrize(
    ("duration", "seconds", "text", "iso"),
    [
        ("90", 90, "1 minute 30 seconds", "PT1M30S"),
        ("1h 30m", 5400, "1 hour 30 minutes", "PT1H30M"),
        ("2 days, 1 hour and 5 min", 176_700, "2 days 1 hour 5 minutes", "PT49H5M"),
        ("01:30:00.5", 5400.5, "1 hour 30 minutes 0.5 seconds", "PT1H30M0.5S"),
        ("1:30", 5400, "1 hour 30 minutes", "PT1H30M"),
        ("P1W2DT3H", 788_400, "1 week 2 days 3 hours", "PT219H"),
        ("0", 0, "0 seconds", "PT0S"),
    ],
)
async def test_durations_are_read_in_any_form(
    connect: Connect, duration: str, seconds: float, text: str, iso: str
):
    async with connect("units") as units:
        converted = await units.call("convert_duration", duration=duration)
        assert (converted["seconds"], converted["text"]) == (seconds, text)
        assert converted["iso"] == iso


@pytest.mark.parametrize(
    "duration", ["", "P", "soon", "1h later", "5 parsecs", "1:75", "1" * 90 + "!"]
)
async def test_what_is_no_duration_is_refused_readably(connect: Connect, duration: str):
    async with connect("units") as units:
        assert "is not a duration" in await units.refusal("convert_duration", duration=duration)


@pytest.mark.parametrize(
    ("what", "a", "b", "result"),
    [
        ("share", 20, 150, 30),
        ("ratio", 30, 150, 20),
        ("change", 80, 100, 25),
        ("change", -80, -100, -25),
        ("add", 50, 10, 55),
        ("subtract", 50, 10, 45),
    ],
)
async def test_percentages_are_calculated(
    connect: Connect, what: str, a: float, b: float, result: float
):
    async with connect("units") as units:
        assert await units.call("percent", what=what, a=a, b=b) == {"result": result}


async def test_there_are_no_percentages_of_zero(connect: Connect):
    async with connect("units") as units:
        assert "of zero" in await units.refusal("percent", what="change", a=0, b=5)
        assert "of zero" in await units.refusal("percent", what="ratio", a=5, b=0)


async def test_numbers_are_written_in_other_bases(connect: Connect):
    async with connect("units") as units:
        assert await units.call("convert_base", number="255") == "ff"
        assert await units.call("convert_base", number="-0b1010", source=2, target=10) == "-10"
        assert await units.call("convert_base", number="0", target=2) == "0"
        refusal = await units.refusal("convert_base", number="12x")
        assert "`12x` is not a whole number in base 10" in refusal
