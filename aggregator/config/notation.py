"""How values of `servers.yaml` may be written: durations, sizes, globs, names of several kinds."""

import re
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from aggregator.config import settings
from aggregator.config.base_form import SWITCH, TEXT_OR_LIST, Words, problem
from aggregator.config.mode import ToolSearchMode
from aggregator.config.quantities import seconds, size_in_bytes
from aggregator.config.values import ServerType
from aggregator.names import plain_name

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_LONGEST = 24 * 3600.0
_LARGEST = 1 << 30


def _duration(value: object) -> object:
    try:
        found = seconds(str(value))
    except ValueError:
        raise problem("must be a duration such as `30s`, `500ms` or `2m`") from None
    if not 0 < found <= _LONGEST:
        raise problem("must be more than nothing and at most 24 hours")
    return found


def _idle_time(value: object) -> object:
    if str(value).lower() in {"0", "false", "never", "off", "none"}:
        raise problem("must be a duration such as `15m`; `start: eager` keeps a server running")
    return _duration(value)


def _bytes(value: object) -> int:
    try:
        return size_in_bytes(str(value))
    except ValueError:
        raise problem("must be a size such as `16MiB` or a number of bytes") from None


def _memory(value: object) -> object:
    found = _bytes(value)
    if not 16 << 20 <= found <= 1 << 50:
        raise problem("must be at least 16 MiB and at most 1 PiB")
    return found


def _size(value: object) -> object:
    found = _bytes(value)
    if not 1024 <= found <= _LARGEST:  # noqa: PLR2004 the unit is the number
        raise problem("must be at least 1 KiB and at most 1 GiB")
    return found


def _result_tokens(value: object) -> object:
    """Read a limit, of which nothing is left where it is switched off."""
    written = str(value).lower()
    if SWITCH.get(written) is False or written == "0":
        return 0
    low, high = settings.LEAST_RESULT_TOKENS, settings.MOST_RESULT_TOKENS
    if not written.replace("_", "").isdecimal() or not low <= int(written) <= high:
        raise problem(f"must be a number of tokens from {low:,} to {high:,}, or `false`")
    return int(written)


def _mode(value: object) -> object:
    try:
        return value if isinstance(value, ToolSearchMode) else ToolSearchMode.parse(str(value))
    except ValueError:
        raise problem(
            "must be `true`, `false`, `auto` or `auto:N` with a percentage N up to 100"
        ) from None


def _joined(value: object) -> object:
    words = _texts(value)
    return value if words is None else " ".join(words)


def _all_or_some(value: object) -> object:
    """Read `true` and `false` as such, anything else as one or more globs."""
    if isinstance(value, str):
        switch = SWITCH.get(value.lower())
        return (_name(value, "`true`, or "),) if switch is None else switch
    globs = _texts(value)
    if globs is None:
        raise problem("must be `true`, or a list of names or globs")
    return globs


def _one_or_several(value: object) -> object:
    return _name(value) if isinstance(value, str) else value


def _name(value: str, other: str = "") -> str:
    """Refuse what no tool is called that stands alone; whatever one is called can be in a list."""
    if _NUMBER.fullmatch(value):
        raise problem(f"must be {other}a list of names or globs, and not a number")
    if any(map(str.isspace, value)):
        raise problem(f"must be {other}a list of names or globs, such as `[get_note, search_*]`")
    return value


def _texts(value: object) -> tuple[str, ...] | None:
    """Return a list of texts as such; nothing for any other value."""
    try:
        return _TEXTS.validate_python(value)
    except ValidationError:
        return None


def _variables(value: dict[str, str]) -> dict[str, str]:
    if any(not name or "=" in name for name in value):
        raise problem("has a name that no environment variable can have")
    return value


def _headers(value: dict[str, str]) -> dict[str, str]:
    if not all(map(_HEADER.fullmatch, value)):
        raise problem("has a name that no header can have")
    return value


def _globs(value: tuple[str, ...]) -> tuple[str, ...]:
    for glob in value:
        if glob.startswith("!"):
            raise problem(
                f"has `{glob}`, and a `!` means nothing here: say so by `allow` and `deny`"
            )
    return value


def _renamed(value: dict[str, str]) -> dict[str, str]:
    if not all(map(plain_name, value.values())):
        raise problem("has a name without a letter or digit")
    return value


def _type(value: object) -> object:
    known = {"streamable-http": "http", "streamable_http": "http", "streamablehttp": "http"}
    return known.get(value.lower(), value) if isinstance(value, str) else value


_TEXTS = TypeAdapter(tuple[str, ...])
Duration = Annotated[
    float, BeforeValidator(_duration), WithJsonSchema({"type": ["string", "number"]})
]
IdleTime = Annotated[
    float, BeforeValidator(_idle_time), WithJsonSchema({"type": ["string", "number"]})
]
Size = Annotated[int, BeforeValidator(_size), WithJsonSchema({"type": ["string", "integer"]})]
Memory = Annotated[int, BeforeValidator(_memory), WithJsonSchema({"type": ["string", "integer"]})]
ResultTokens = Annotated[
    int, BeforeValidator(_result_tokens), WithJsonSchema({"type": ["integer", "boolean"]})
]
Globs = Annotated[Words, AfterValidator(_globs)]
ToolGlobs = Annotated[Globs, BeforeValidator(_one_or_several)]
Mode = Annotated[
    ToolSearchMode, BeforeValidator(_mode), WithJsonSchema({"type": ["string", "boolean"]})
]
Kind = Annotated[ServerType, BeforeValidator(_type)]
Headers = Annotated[dict[str, str], AfterValidator(_headers)]
Variables = Annotated[dict[str, str], AfterValidator(_variables)]
Renamed = Annotated[dict[str, str], AfterValidator(_renamed)]
Hint = Annotated[str, BeforeValidator(_joined), WithJsonSchema(TEXT_OR_LIST)]
AllOrSome = Annotated[
    bool | tuple[str, ...],
    BeforeValidator(_all_or_some),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, *TEXT_OR_LIST["anyOf"]]}),
]
