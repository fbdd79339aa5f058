"""A frozen value is what `dataclasses` would make of its class."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, replace
from functools import cached_property
from typing import Any

import pytest

from aggregator.basics.frozen import frozen


class Plain:
    """Where something is."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list[str])
    secret: str = field(default="", repr=False)
    source: str = field(default="", compare=False)


Point: Any = frozen(type("Point", (Plain,), dict(vars(Plain))))
Model: Any = dataclasses.dataclass(frozen=True, slots=True)(
    type("Point", (Plain,), dict(vars(Plain)))
)
"""What the standard library makes of the same."""


@frozen
class Pair:
    """Two numbers."""

    left: int
    right: int = 2


@frozen(slots=False)
class Sum:
    """A number that is added to once."""

    number: int

    @cached_property
    def more(self) -> int:
        return self.number + 1


@frozen(kw_only=True)
class Named:
    """A number that is named where it is given."""

    default: int = 1
    number: int


@frozen
class Checked:
    """A number above none."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(self.number)


@frozen
class Nothing:
    """It has no fields."""


@frozen
class Terse:
    """What says itself how it is shown and compared."""

    number: int

    def __repr__(self) -> str:
        return "terse"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Terse)

    def __hash__(self) -> int:
        return 7


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((1,), {}), ((1, 2, ["a"], "s", "o"), {}), ((), {"x": 1, "tags": ["b"], "source": "here"})],
)
def test_takes_and_shows_what_a_dataclass_does(args: Any, kwargs: Any) -> None:
    ours, theirs = Point(*args, **kwargs), Model(*args, **kwargs)

    assert repr(ours) == repr(theirs)
    assert dataclasses.astuple(ours) == dataclasses.astuple(theirs)
    assert Point.__match_args__ == Model.__match_args__
    assert list(inspect.signature(Point).parameters) == list(inspect.signature(Model).parameters)


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1,), {"z": 3}), ((1,) * 6, {})])
def test_refuses_what_a_dataclass_refuses(args: Any, kwargs: Any) -> None:
    for cls in (Point, Model):
        with pytest.raises(TypeError, match="__init__"):
            cls(*args, **kwargs)


def test_each_has_its_own_of_what_is_made_for_it() -> None:
    assert Point(1).tags is not Point(1).tags


def test_is_compared_by_its_fields_and_class() -> None:
    assert Point(1, source="here") == Point(1, source="there")
    assert Point(1) != Point(2)
    assert Pair(1, 2) != (1, 2)
    assert Pair(1) != Sum(1)
    assert hash(Pair(1)) == hash(Pair(1, 2))
    assert {Sum(1), Sum(1), Sum(2)} == {Sum(2), Sum(1)}
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())


def test_what_cannot_be_hashed_makes_a_value_that_cannot() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1))


@pytest.mark.parametrize("value", [Pair(1), Sum(1)])
def test_cannot_be_changed(value: Any) -> None:
    for name in ("left", "number", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 3)
        with pytest.raises(FrozenInstanceError):
            delattr(value, name)


def test_has_room_for_nothing_else() -> None:
    assert not hasattr(Pair(1), "__dict__")


def test_without_slots_remembers_what_was_found_out() -> None:
    value = Sum(1)

    assert value.more == 2
    assert vars(value) == {"number": 1, "more": 2}


def test_may_ask_for_names() -> None:
    assert Named(number=2) == Named(default=1, number=2)
    with pytest.raises(TypeError):
        Named(2)  # pyright: ignore[reportCallIssue]


def test_looks_at_what_it_was_given() -> None:
    with pytest.raises(ValueError, match="0"):
        Checked(0)
    with pytest.raises(ValueError, match="0"):
        replace(Checked(1), number=0)


def test_keeps_what_the_class_says_itself() -> None:
    assert repr(Terse(1)) == "terse"
    assert Terse(1) == Terse(2)
    assert hash(Terse(1)) == 7


@pytest.mark.parametrize("value", [Pair(1), Sum(1), Nothing()])
def test_is_copied_whole(value: Any) -> None:
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - it is our own
    assert replace(value) == value


def test_shows_itself_once_where_it_holds_itself() -> None:
    held: list[Any] = []
    held.append(Point(1, tags=held))

    assert "..." in repr(held[0])


def test_what_takes_the_fields_is_known_before_there_is_a_value() -> None:
    made: Any = frozen(type("Fresh", (Plain,), dict(vars(Plain))))

    assert list(inspect.signature(made).parameters) == ["x", "y", "tags", "secret", "source"]
    assert made(3).x == 3


def test_a_class_whose_first_value_is_of_another_that_inherits_from_it_takes_its_own() -> None:
    made: Any = frozen(type("Fresh", (Plain,), dict(vars(Plain))))
    inheriting: Any = type("Inheriting", (made,), {"__slots__": ()})

    assert inheriting(1, 2).y == made(0, 2).y == 2
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        made()
