"""The units of measure, and how they convert into each other."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

Kind = Literal[
    "length",
    "mass",
    "volume",
    "area",
    "speed",
    "time",
    "temperature",
    "data",
    "energy",
    "power",
    "pressure",
    "angle",
]
KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


@dataclass(frozen=True)
class Unit:
    """A unit: how many base units it is, counted from which zero, and its other names."""

    kind: Kind
    symbol: str
    factor: float
    names: tuple[str, ...] = ()
    zero: float = 0.0


class UnitError(Exception):
    """A unit that is not known, or two that do not fit; the message says what would."""


def convert(value: float, source: str, target: str) -> float:
    """Convert a value from one unit to another.

    Raises:
        UnitError: A unit is not known, or they measure different things.
    """
    old, new = find(source), find(target)
    if old.kind != new.kind:
        raise UnitError(
            f"`{source}` is a unit of {old.kind} and `{target}` one of {new.kind}; "
            f"units of {old.kind} are {symbols(old.kind)}"
        )
    return (value * old.factor + old.zero - new.zero) / new.factor


def find(name: str) -> Unit:
    """Return the unit of a name or symbol, in any spelling.

    Raises:
        UnitError: It is not known.
    """
    wanted = name.strip()
    folded = wanted.casefold().replace(" ", "").replace("²", "2").replace("³", "3")
    unit = BY_SYMBOL.get(wanted) or BY_NAME.get(folded)
    if unit is None:
        close = get_close_matches(folded, BY_NAME, n=3)
        hint = f"; did you mean {', '.join(close)}?" if close else "; `list_units` shows them all"
        raise UnitError(f"There is no unit `{name}`{hint}")
    return unit


def symbols(kind: Kind) -> str:
    """Return the symbols of a kind of unit, for a sentence."""
    return ", ".join(f"`{unit.symbol}`" for unit in UNITS if unit.kind == kind)


def _parse(table: str) -> list[Unit]:
    """Read units from lines of kind, symbol, factor and other names."""
    units: list[Unit] = []
    for line in table.strip().splitlines():
        kind, symbol, factor, *names = line.split()
        units.append(Unit(KINDS[kind], symbol, float(factor), tuple(names)))
    return units


UNITS = [
    *_parse("""
        length m 1 meter meters metre metres
        length km 1000 kilometer kilometers kilometre kilometres
        length cm 0.01 centimeter centimeters centimetre centimetres
        length mm 0.001 millimeter millimeters millimetre millimetres
        length in 0.0254 inch inches
        length ft 0.3048 foot feet
        length yd 0.9144 yard yards
        length mi 1609.344 mile miles
        length nmi 1852 nauticalmile nauticalmiles
        length ly 9460730472580800 lightyear lightyears
        mass kg 1 kilogram kilograms kilo kilos
        mass g 0.001 gram grams
        mass mg 1e-6 milligram milligrams
        mass t 1000 tonne tonnes
        mass lb 0.45359237 lbs pound pounds
        mass oz 0.028349523125 ounce ounces
        mass st 6.35029318 stone stones
        volume l 1 liter liters litre litres
        volume ml 0.001 milliliter milliliters millilitre millilitres
        volume m3 1000 cubicmeter cubicmeters cubicmetre cubicmetres
        volume gal 3.785411784 gallon gallons
        volume qt 0.946352946 quart quarts
        volume pt 0.473176473 pint pints
        volume cup 0.2365882365 cups
        volume floz 0.0295735295625 fluidounce fluidounces
        volume tbsp 0.01478676478125 tablespoon tablespoons
        volume tsp 0.00492892159375 teaspoon teaspoons
        area m2 1 squaremeter squaremeters squaremetre squaremetres
        area km2 1e6 squarekilometer squarekilometers squarekilometre squarekilometres
        area ha 10000 hectare hectares
        area acre 4046.8564224 acres
        area ft2 0.09290304 squarefoot squarefeet sqft
        area mi2 2589988.110336 squaremile squaremiles
        speed m/s 1 mps meterspersecond metrespersecond
        speed km/h 0.2777777777777778 kmh kph kilometersperhour kilometresperhour
        speed mph 0.44704 milesperhour
        speed kn 0.5144444444444445 knot knots
        time s 1 sec second seconds
        time ms 0.001 millisecond milliseconds
        time min 60 minute minutes
        time h 3600 hr hour hours
        time d 86400 day days
        time wk 604800 week weeks
        temperature K 1 kelvin
        data B 1 byte bytes
        data kB 1e3 kilobyte kilobytes
        data MB 1e6 megabyte megabytes
        data GB 1e9 gigabyte gigabytes
        data TB 1e12 terabyte terabytes
        data KiB 1024 kibibyte kibibytes
        data MiB 1048576 mebibyte mebibytes
        data GiB 1073741824 gibibyte gibibytes
        data bit 0.125 bits
        data Mbit 125000 megabit megabits
        data Gbit 125000000 gigabit gigabits
        energy J 1 joule joules
        energy kJ 1000 kilojoule kilojoules
        energy kcal 4184 kilocalorie kilocalories
        energy Wh 3600 watthour watthours
        energy kWh 3.6e6 kilowatthour kilowatthours
        energy BTU 1055.05585262
        power W 1 watt watts
        power kW 1000 kilowatt kilowatts
        power hp 745.6998715822702 horsepower
        pressure Pa 1 pascal pascals
        pressure hPa 100 hectopascal hectopascals mbar millibar millibars
        pressure kPa 1000 kilopascal kilopascals
        pressure bar 100000 bars
        pressure atm 101325 atmosphere atmospheres
        pressure psi 6894.757293168
        pressure mmHg 133.322387415 torr
        angle deg 1 degree degrees °
        angle rad 57.29577951308232 radian radians
        angle turn 360 turns
    """),
    Unit("temperature", "C", 1.0, ("celsius", "°c", "degc"), 273.15),
    Unit("temperature", "F", 5 / 9, ("fahrenheit", "°f", "degf"), 459.67 * 5 / 9),
]
BY_SYMBOL = {unit.symbol: unit for unit in UNITS}
BY_NAME = {name.casefold(): unit for unit in reversed(UNITS) for name in (unit.symbol, *unit.names)}
