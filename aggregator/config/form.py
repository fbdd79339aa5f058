"""The keys of `servers.yaml`, what each may hold, and what each is for."""

from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
)

from aggregator.clients import SurfaceChoice
from aggregator.config import kinds, settings, values
from aggregator.config.audit_form import AuditForm
from aggregator.config.base_form import BaseForm, Kinds, Seldom, Words
from aggregator.config.clients_form import NamedClient
from aggregator.config.http_form import Door, HttpForm
from aggregator.config.login_form import AlsoABoolean, OAuthForm, parse_login
from aggregator.config.mode import ToolSearchMode
from aggregator.config.names_form import NamesForm, told_apart
from aggregator.config.notation import (
    AllOrSome,
    Duration,
    Headers,
    Hint,
    IdleTime,
    Kind,
    Memory,
    Mode,
    Renamed,
    ResultTokens,
    Size,
    ToolGlobs,
    Variables,
)
from aggregator.config.profile_form import NamedProfile, ProfileName
from aggregator.config.settings import DriftChoice
from aggregator.config.tokens_form import AlsoAText, TokensForm, parse_tokens, usable_tokens
from aggregator.config.values import EraChoice, StartChoice

ONLY_FOR_PROGRAMS = ("args", "env", "envFile", "inheritEnv", "cwd", "limits", "detach")
"""Keys that mean nothing beside `url`."""
ONLY_FOR_ADDRESSES = ("headers", "caFile", "clientCert", "clientKey", "proxy", "oauth")
"""Keys that mean nothing beside `command`."""
SECTIONS = ("servers", "mcpServers")
"""Keys that servers stand under."""


class ToolsForm(BaseForm):
    """Which tools of a server may be seen and called, and corrections to them."""

    allow: ToolGlobs = Field(("*",), description="Names or globs of the tools to offer.")
    deny: ToolGlobs = Field(
        (), description="Names or globs of tools never to offer; wins over allow."
    )
    rename: Renamed = Field({}, description="Another name for a tool.")
    describe: dict[str, str] = Field({}, description="Another description of a tool.")
    read_only: ToolGlobs = Field(
        (), description="Names or globs of tools that are read-only, whatever the server says."
    )


class LimitsForm(BaseForm):
    """Upper limits for the process of a server."""

    memory: Memory | None = Field(None, description="Address space, such as `4GiB`.")
    processes: int | None = Field(
        None, ge=1, le=10_000_000, description="Processes and threads of your user."
    )
    files: int | None = Field(None, ge=16, le=10_000_000, description="Open files.")


class ServerForm(BaseForm):
    """One server."""

    command: Words = Field((), description="The program, or a list of it and its arguments.")
    args: Words = Field((), description="Arguments of the program.")
    env: Variables = Field({}, description="Environment variables for the program.")
    env_file: str | None = Field(
        None, description="A file of NAME=value lines, given to the program and usable in ${NAME}."
    )
    inherit_env: AllOrSome | None = Field(
        None, description="Variables passed on to the program, instead of `inheritEnv` at the top."
    )
    cwd: str | None = Field(
        None,
        description="The directory to start the program in; that of this file by default.",
    )
    limits: Annotated[LimitsForm, Seldom(LimitsForm)] = Field(
        LimitsForm.model_construct(),
        description="Upper limits for the program: `memory`, `processes`, `files`.",
    )
    detach: bool = Field(
        False,
        description="Whether processes that leave the program's group (daemons) may outlive it.",
    )
    url: str | None = Field(None, description="The address of a server that is reached over HTTP.")
    type: Kind | None = Field(None, description="The transport; follows from `command` or `url`.")
    era: EraChoice = Field(
        "auto", description="The protocol era to speak with it; `auto` finds out."
    )
    headers: Headers = Field({}, description="HTTP headers to send with each request.")
    ca_file: str | None = Field(
        None, description="Certificates to trust for this server, instead of the system's."
    )
    verify: bool = Field(True, description="Whether to check the server's certificate.")
    client_cert: str | None = Field(
        None, description="The client certificate to present to the server."
    )
    client_key: str | None = Field(
        None, description="The key of `clientCert`, if it is in a separate file."
    )
    proxy: str | None = Field(
        None, description="The proxy to use; proxies from the environment are ignored."
    )
    oauth: Annotated[
        Annotated[OAuthForm, Seldom(OAuthForm)] | None, BeforeValidator(parse_login), AlsoABoolean()
    ] = Field(
        None,
        description="How to log in, if the server does not say so itself; false to never log in.",
    )
    shared: bool = Field(
        False,
        description="Whether other people may use it in your name if it has your login.",
    )
    description: str = Field(
        "", description="One line that tells the model what the server is for."
    )
    always_load: AllOrSome = Field(
        False, description="Tools shown without a search: true, or names or globs."
    )
    tools: Annotated[ToolsForm, Seldom(ToolsForm)] = Field(
        ToolsForm.model_construct(),
        description="Which tools are offered (`allow`, `deny`), and corrections to them "
        "(`rename`, `describe`, `readOnly`).",
    )
    search_hints: dict[str, Hint] = Field(
        {}, description="Extra words by which searches find a tool."
    )
    enabled: bool = Field(True, description="Whether the server is started.")
    prefix: str | None = Field(
        None,
        description="The prefix of its tool names, instead of the server's name; may be empty.",
    )
    start: StartChoice | None = Field(
        None,
        description="When it starts, instead of `start` at the top.",
    )
    idle_timeout: IdleTime | None = Field(
        None,
        description="How long it keeps running after its last use; 15m by default if it is lazy.",
    )
    per_client: bool | None = Field(
        None,
        description="Whether each client gets its own process; by default, only for servers "
        "known to hold one client's state, such as browsers.",
    )
    connect_timeout: Duration = Field(
        values.CONNECT_TIMEOUT, description="How long it may take to start."
    )
    call_timeout: Duration = Field(
        values.CALL_TIMEOUT, description="How long a call may go without an answer or progress."
    )
    max_call_time: Duration = Field(
        values.MAX_CALL_TIME, description="How long a call may take in total."
    )
    max_message_bytes: Size = Field(
        values.MAX_MESSAGE_BYTES, description="The largest message accepted from the server."
    )
    max_in_flight: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="Calls sent to it at a time; 32 by default, 100 if it is reached over HTTP.",
    )
    max_queued: int = Field(
        values.MAX_QUEUED, ge=0, le=100_000, description="How many more calls may wait."
    )
    trust_annotations: bool = Field(
        True, description="Whether to believe the server about which of its tools are read-only."
    )
    honour_always_load: bool = Field(
        True,
        description="Whether to honour the server's own always-load marks, up to 10 "
        "tools and 2,000 tokens.",
    )
    pin: bool = Field(
        True, description="Whether its tools are compared with those in `servers.lock`."
    )
    drift: DriftChoice | None = Field(
        None,
        description="What to do with tools that differ from `servers.lock`, instead of "
        "`drift` at the top.",
    )


class SettingsForm(BaseForm):
    """Settings for all servers and clients."""

    env: Variables = Field({}, description="Environment variables for every program.")
    env_file: str | None = Field(
        None, description="A file of NAME=value lines, used as if they were in the environment."
    )
    inherit_env: AllOrSome = Field(
        (),
        description="Variables passed on to programs besides the usual ones: names or globs, true "
        "for all, false for only the essential ones.",
    )
    tool_search: Mode = Field(
        ToolSearchMode(), description="Whether tools are deferred: true, false, auto or auto:N."
    )
    context_window: int = Field(
        settings.CONTEXT_WINDOW,
        ge=1_000,
        le=100_000_000,
        description="The context window, in tokens, that `auto` measures against.",
    )
    tokens: Annotated[
        Annotated[TokensForm, Seldom(TokensForm)] | None,
        BeforeValidator(parse_tokens),
        AfterValidator(usable_tokens),
        AlsoAText(),
    ] = Field(
        None,
        description="How to count the tokens of definitions: `tiktoken:ENCODING`, "
        "`tokenizers:FILE`, or a vendor's API (`url`, `model`, `key`).",
    )
    surface: SurfaceChoice = Field("auto", description="How found tools reach a client.")
    max_results: int = Field(
        settings.DEFAULT_RESULTS,
        ge=1,
        le=settings.MAX_RESULTS,
        description="Tools a search returns by default: the first five with definitions, the "
        "others on one line each.",
    )
    max_result_chars: int = Field(
        settings.MAX_RESULT_CHARS,
        ge=1_000,
        le=1_000_000,
        description="The maximum length of the answer to a search, in characters.",
    )
    max_result_tokens: ResultTokens | None = Field(
        None,
        description="The most tokens a result may have; a larger one is shortened and kept for "
        "reading. By default, what is known of the client; false for no limit.",
    )
    max_loaded: int = Field(
        settings.MAX_LOADED,
        ge=1,
        le=10_000,
        description="How many tools searches may add to a client's list.",
    )
    relist_wait: Duration = Field(
        settings.RELIST_WAIT, description="How long a search waits for the client to list again."
    )
    start: StartChoice = Field(
        "auto",
        description="When servers start: at once (`eager`), when needed (`lazy`), or when needed "
        "once their tools are known (`auto`).",
    )
    idle_timeout: IdleTime | None = Field(
        None,
        description="How long servers run after their last use; 15m by default for lazy ones.",
    )
    state: bool = Field(
        True, description="Whether what was learned about servers is kept between runs."
    )
    stats: bool = Field(
        True, description="Whether calls and searches are counted for `aggregator stats`."
    )
    audit: Annotated[AuditForm, Seldom(AuditForm)] | None = Field(
        None,
        description="Where each call is recorded: `file`, `arguments`, `required`, `maxBytes`.",
    )
    watch: bool = Field(
        True, description="Whether changes to this file apply while the aggregator runs."
    )
    semantic: bool = Field(
        True,
        description="Whether searches also go by meaning, if the extra is installed.",
    )
    drift: DriftChoice = Field(
        "warn",
        description="What to do with tools that differ from `servers.lock`: `warn` offers them "
        "and warns, `block` hides them until you approve them.",
    )
    skills: Words = Field(
        (), description="Directories that are skills (with a `SKILL.md`) or contain skills."
    )
    find: Kinds = Field(
        kinds.FOUND,
        description="What searches find if they do not ask for a kind: `tool`, `prompt`, `skill`, "
        "`resource`.",
    )
    clients: dict[str, NamedClient] = Field(
        {},
        description="The surface of each client, by its name for `install` or its own name; "
        "or its `surface` and `maxResultTokens`.",
    )
    names: Annotated[NamesForm, Seldom(NamesForm), AfterValidator(told_apart)] = Field(
        NamesForm.model_construct(),
        description="Other names for the aggregator's own tools: `search`, `call`, `callReadOnly`.",
    )
    profiles: dict[ProfileName, NamedProfile] = Field(
        {}, description="Profiles by name: what different kinds of clients see."
    )
    http: Door = Field(
        HttpForm.model_construct(),
        description="Who may connect over HTTP (`issuer`, `audience`, `access`), and how "
        "many calls they may make.",
    )


def keys(form: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys of a form as they are written."""
    return tuple(field.alias or name for name, field in form.model_fields.items())


def top_keys() -> tuple[str, ...]:
    """Return the keys that stand at the top of a file."""
    return (*keys(SettingsForm), *SECTIONS)
