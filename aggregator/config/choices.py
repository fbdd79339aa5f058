"""What several keys of `servers.yaml` may hold: globs, a switch or globs, a mode of search."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError, WithJsonSchema

from aggregator.config.mode import ToolSearchMode
from aggregator.config.sheet import SWITCH, TEXT_OR_LIST, Words, problem


def _mode(value: object) -> object:
    try:
        return value if isinstance(value, ToolSearchMode) else ToolSearchMode.parse(str(value))
    except ValueError:
        raise problem(
            "must be `true`, `false`, `auto` or `auto:N` with a percentage N up to 100"
        ) from None


def _all_or_some(value: object) -> object:
    """Read `true` and `false` as such, anything else as one or more globs."""
    if isinstance(value, str):
        return SWITCH.get(value.lower(), (value,))
    globs = texts(value)
    if globs is None:
        raise problem("must be `true`, or a list of names or globs")
    return globs


def texts(value: object) -> tuple[str, ...] | None:
    """Return a list of texts as such; nothing for any other value."""
    try:
        return _TEXTS.validate_python(value)
    except ValidationError:
        return None


def _globs(value: tuple[str, ...]) -> tuple[str, ...]:
    for glob in value:
        if glob.startswith("!"):
            raise problem(
                f"has `{glob}`, and a `!` means nothing here: say so by `allow` and `deny`"
            )
    return value


_TEXTS = TypeAdapter(tuple[str, ...])
Globs = Annotated[Words, AfterValidator(_globs)]
Mode = Annotated[
    ToolSearchMode, BeforeValidator(_mode), WithJsonSchema({"type": ["string", "boolean"]})
]
AllOrSome = Annotated[
    bool | tuple[str, ...],
    BeforeValidator(_all_or_some),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, *TEXT_OR_LIST["anyOf"]]}),
]
