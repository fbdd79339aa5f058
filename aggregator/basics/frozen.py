"""Values whose fields are set once, as `dataclasses` makes them, for a fifth of the time.

It compiles six functions for each frozen class, one by one, and a start waits for all of them.
Here one is compiled, which takes the fields, when there is a value to be made; the others are the
same for every class.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar, dataclass_transform, overload

T = TypeVar("T")

Fields = Sequence["dataclasses.Field[Any]"]


class Value(Protocol):
    """What has fields."""

    __dataclass_fields__: ClassVar[dict[str, "dataclasses.Field[Any]"]]


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: type[T], /) -> type[T]: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(*, slots: bool = ..., kw_only: bool = ...) -> Callable[[type[T]], type[T]]: ...


def frozen(
    cls: type[T] | None = None, /, *, slots: bool = True, kw_only: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class as `dataclass(frozen=True, slots=True)` does; it inherits from no other such.

    Without slots there is room for what is found out later, as by `cached_property`.
    """
    # It is to find the fields, and to write nothing for them.
    find = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)

    def made(cls: type[T]) -> type[T]:
        return _complete(find(cls), slots=slots)

    return made if cls is None else made(cls)


def _complete(cls: type[Any], *, slots: bool) -> type[Any]:
    fields = dataclasses.fields(cls)
    own = vars(cls)
    methods: dict[str, Any] = {"__init__": _Later(cls)}
    if "__repr__" not in own:
        methods["__repr__"] = _shown
    if "__eq__" not in own:
        methods |= _compared([each.name for each in fields if each.compare])
    methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if slots:
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


class _Later:
    """Stands for the function that takes the fields of a class until somebody looks for it."""

    def __init__(self, cls: type[Any]) -> None:
        self._cls = cls

    def __get__(self, value: object, owner: type[Any]) -> Callable[..., None]:
        taking = _taking(self._cls, dataclasses.fields(self._cls))
        setattr(self._cls, "__init__", taking)  # noqa: B010 - it is no attribute for a type checker
        return taking.__get__(value, owner)


def _taking(cls: type[Any], fields: Fields) -> Callable[..., None]:
    """Return the function that takes all fields, in the order and with the defaults they have."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    lines: list[str] = []
    taken: list[str] = []
    for each in fields:
        name = value = each.name
        if each.kw_only and "*" not in taken:
            taken.append("*")
        if each.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = each.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}"
            taken.append(f"{name}=_missing")
        elif each.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = each.default
            taken.append(f"{name}=_default_{name}")
        else:
            taken.append(name)
        lines.append(f"    _set(self, {name!r}, {value})\n")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()\n")
    body = "".join(lines) or "    pass\n"
    exec(f"def __init__(self, {', '.join(taken)}):\n{body}", known)  # noqa: S102 - names of fields
    return known["__init__"]


def _compared(names: Sequence[str]) -> Mapping[str, Any]:
    """Return what compares values of one class by these fields."""
    key: Callable[[object], object] = attrgetter(*names) if names else type

    def equal(self: object, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: object) -> int:
        return hash(key(self))

    return {"__eq__": equal, "__hash__": hashed}


@recursive_repr()
def _shown(self: Value) -> str:
    names = [each.name for each in dataclasses.fields(self) if each.repr]
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
    return f"{type(self).__qualname__}({shown})"


def _refuse_to_set(_self: object, name: str, _value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Value) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Value, state: Sequence[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
