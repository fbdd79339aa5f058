"""The keys of `servers.yaml`, what each may hold, and what each is for."""

from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from aggregator.config import values
from aggregator.config.quantities import seconds, size_in_bytes
from aggregator.config.values import ServerType, SurfaceChoice, ToolSearchMode

ONLY_FOR_PROGRAMS = ("args", "env", "envFile", "cwd")
"""Keys that mean nothing beside `url`."""
ONLY_FOR_ADDRESSES = ("headers", "caFile", "clientCert", "clientKey", "proxy")
"""Keys that mean nothing beside `command`."""

_LONGEST = 24 * 3600.0
_LARGEST = 1 << 30


def _problem(expected: str) -> PydanticCustomError:
    """Return an error whose text is ours alone: pydantic's own may quote what was written."""
    return PydanticCustomError("unexpected", "{expected}", {"expected": expected})


def _duration(value: object) -> object:
    try:
        found = seconds(str(value))
    except ValueError:
        raise _problem("must be a duration such as `30s`, `500ms` or `2m`") from None
    if not 0 < found <= _LONGEST:
        raise _problem("must be more than nothing and at most 24 hours")
    return found


def _size(value: object) -> object:
    try:
        found = size_in_bytes(str(value))
    except ValueError:
        raise _problem("must be a size such as `16MiB` or a number of bytes") from None
    if not 1024 <= found <= _LARGEST:  # noqa: PLR2004 the unit is the number
        raise _problem("must be at least 1 KiB and at most 1 GiB")
    return found


def _mode(value: object) -> object:
    try:
        return value if isinstance(value, ToolSearchMode) else ToolSearchMode.parse(str(value))
    except ValueError:
        raise _problem(
            "must be `true`, `false`, `auto` or `auto:N` with a percentage N up to 100"
        ) from None


def _words(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _joined(value: object) -> object:
    words = _texts(value)
    return value if words is None else " ".join(words)


def _all_or_some(value: object) -> object:
    """Read `true` and `false` as such, anything else as one or more globs."""
    if isinstance(value, str):
        return _SWITCH.get(value.lower(), (value,))
    globs = _texts(value)
    if globs is None:
        raise _problem("must be `true`, or a list of tool names or globs")
    return globs


def _texts(value: object) -> tuple[str, ...] | None:
    """Return a list of texts as such; nothing for any other value."""
    try:
        return _TEXTS.validate_python(value)
    except ValidationError:
        return None


def _variables(value: dict[str, str]) -> dict[str, str]:
    if any(not name or "=" in name for name in value):
        raise _problem("has a name that no environment variable can have")
    return value


def _type(value: object) -> object:
    known = {"streamable-http": "http", "streamable_http": "http", "streamablehttp": "http"}
    return known.get(value.lower(), value) if isinstance(value, str) else value


_SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TEXTS = TypeAdapter(tuple[str, ...])
_TEXT_OR_LIST: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
}

Duration = Annotated[
    float, BeforeValidator(_duration), WithJsonSchema({"type": ["string", "number"]})
]
Size = Annotated[int, BeforeValidator(_size), WithJsonSchema({"type": ["string", "integer"]})]
Words = Annotated[tuple[str, ...], BeforeValidator(_words), WithJsonSchema(_TEXT_OR_LIST)]
Mode = Annotated[
    ToolSearchMode, BeforeValidator(_mode), WithJsonSchema({"type": ["string", "boolean"]})
]
Kind = Annotated[ServerType, BeforeValidator(_type)]
Variables = Annotated[dict[str, str], AfterValidator(_variables)]
Hint = Annotated[str, BeforeValidator(_joined), WithJsonSchema(_TEXT_OR_LIST)]
AllOrSome = Annotated[
    bool | tuple[str, ...],
    BeforeValidator(_all_or_some),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, *_TEXT_OR_LIST["anyOf"]]}),
]


class _Form(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True
    )


class ToolsForm(_Form):
    """Which tools of a server may be seen and called."""

    allow: Words = Field(("*",), description="Names or globs of the tools to offer.")
    deny: Words = Field((), description="Names or globs of tools never to offer; wins over allow.")


class ServerForm(_Form):
    """One server."""

    command: Words = Field((), description="The program, or a list of it and its arguments.")
    args: Words = Field((), description="Arguments of the program.")
    env: Variables = Field({}, description="Environment variables of the program.")
    env_file: str | None = Field(
        None, description="A file of NAME=value lines, given to the program and usable in ${NAME}."
    )
    cwd: str | None = Field(
        None, description="Directory to start the program in; by default that of this file."
    )
    url: str | None = Field(None, description="Address of a server that is reached over HTTP.")
    type: Kind | None = Field(
        None, description="How to speak to the server; follows from `command` or `url`."
    )
    headers: dict[str, str] = Field({}, description="HTTP headers to send with each request.")
    ca_file: str | None = Field(
        None, description="Certificates to trust for this server, instead of the system's."
    )
    verify: bool = Field(True, description="Whether the server must prove who it is.")
    client_cert: str | None = Field(None, description="Certificate to show to the server.")
    client_key: str | None = Field(
        None, description="Key of the certificate, if it is in a file of its own."
    )
    proxy: str | None = Field(
        None, description="Proxy to go through; those of the environment are not used."
    )
    description: str = Field("", description="One line that tells the model what is behind it.")
    always_load: AllOrSome = Field(
        False, description="Tools shown without a search: true, or names or globs."
    )
    tools: ToolsForm = Field(ToolsForm.model_construct(), description="Which tools are offered.")
    search_hints: dict[str, Hint] = Field({}, description="Extra words to find a tool by.")
    enabled: bool = Field(True, description="Whether the server is started.")
    prefix: str | None = Field(
        None, description="What tool names begin with, instead of the server's name; may be empty."
    )
    connect_timeout: Duration = Field(
        values.CONNECT_TIMEOUT, description="How long it may take to start."
    )
    call_timeout: Duration = Field(
        values.CALL_TIMEOUT, description="How long a call may go without an answer or progress."
    )
    max_call_time: Duration = Field(
        values.MAX_CALL_TIME, description="How long a call may take in all."
    )
    max_message_bytes: Size = Field(
        values.MAX_MESSAGE_BYTES, description="The largest message accepted from the server."
    )
    max_in_flight: int = Field(
        values.MAX_IN_FLIGHT, ge=1, le=10_000, description="Calls it works on at a time."
    )
    max_queued: int = Field(
        values.MAX_QUEUED, ge=0, le=100_000, description="Calls that may wait for it."
    )
    trust_annotations: bool = Field(
        True, description="Whether to believe the server which of its tools only read."
    )
    honour_always_load: bool = Field(
        True, description="Whether to grant the server's own wishes for always-load tools."
    )


class SettingsForm(_Form):
    """What holds for all servers and clients."""

    env_file: str | None = Field(
        None, description="A file of NAME=value lines, usable in ${NAME} throughout this file."
    )
    tool_search: Mode = Field(
        ToolSearchMode(), description="Whether tools are deferred: true, false, auto or auto:N."
    )
    context_window: int = Field(
        values.CONTEXT_WINDOW,
        ge=1_000,
        le=100_000_000,
        description="Tokens that `auto` measures against.",
    )
    surface: SurfaceChoice = Field("auto", description="How found tools reach a client.")
    max_results: int = Field(
        values.DEFAULT_RESULTS,
        ge=1,
        le=values.MAX_RESULTS,
        description="Tools a search returns by default.",
    )
    max_result_chars: int = Field(
        values.MAX_RESULT_CHARS,
        ge=1_000,
        le=1_000_000,
        description="Characters the answer to a search may have.",
    )
    max_loaded: int = Field(
        values.MAX_LOADED,
        ge=1,
        le=10_000,
        description="Tools that searches may add to a client's list.",
    )
    relist_wait: Duration = Field(
        values.RELIST_WAIT, description="How long a search waits for the client to list again."
    )
    state: bool = Field(True, description="Whether what was learned is kept between runs.")
    watch: bool = Field(True, description="Whether changes of this file apply while running.")
    semantic: bool = Field(
        True,
        description="Whether searches go by meaning too, where the extra is installed.",
    )
    clients: dict[str, SurfaceChoice] = Field({}, description="The surface of a client, by name.")


class FileForm(SettingsForm):
    """The whole file: the servers behind the aggregator, and how it treats them and its clients."""

    # Only ever described, not filled in: each server is, with variables of its own.
    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=True)

    servers: dict[str, ServerForm] = Field(
        {}, description="The servers, by the names their tools are prefixed with."
    )
    mcp_servers: dict[str, dict[str, Any]] = Field(
        {}, description="Servers as they are written in the configurations of clients."
    )


def keys(form: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys of a form as they are written."""
    return tuple(field.alias or name for name, field in form.model_fields.items())
