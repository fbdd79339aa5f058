"""What a server was given in confidence is not in what is said of it, however it says it."""

from dataclasses import replace
from time import thread_time
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import SERVER_INFO_META_KEY

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject
from aggregator.catalog import Pending, Ready, ServerState
from aggregator.config import ServerConfig
from aggregator.downstream.eras import Eras
from aggregator.downstream.failure import MAX_REASON
from aggregator.downstream.introduction import Ourselves
from aggregator.downstream.questions import refuse
from aggregator.downstream.server import Downstream
from aggregator.memory import NoMemory
from aggregator.names import ServerName
from aggregator.secrecy import Redaction
from tests.downstream.linking import US
from tests.peers import ERAS
from tests.raw import VERSIONS, Dispatch, Json, RawServer

pytestmark = pytest.mark.anyio

SECRETS = {
    "env-canary-1": "API_TOKEN",
    "inherited-canary-2": "OTHER_KEY",
    "header-canary-3": "Authorization",
    "keyring-canary-4": "keyring:A",
    "first-canary-5": "--token",
    "second-canary-6": "--token",
    "sent-canary-7": "Authorization",
    "query-canary-8": "sig",
    "login-canary-9": "login",
}
DB = ServerConfig(
    ServerName("db"),
    "db",
    env={"API_TOKEN": "env-canary-1", "PROJECT": "accounts"},
    inherited={"OTHER_KEY": "inherited-canary-2", "LANG": "en_US.UTF-8"},
    headers={"Authorization": "Bearer header-canary-3"},
    secrets={"keyring:A": "keyring-canary-4"},
    args=(
        "--token=first-canary-5",
        "--token=second-canary-6",
        "--header",
        "Authorization: Bearer sent-canary-7",
    ),
    url="https://me:login-canary-9@example.com/mcp?sig=query-canary-8",
)
SAID = ", ".join(SECRETS)
SHOWN = ", ".join(f"[{name}]" for name in SECRETS.values())


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Reports:
    """Remembers the last state of each kind."""

    def __init__(self) -> None:
        self.failed: Pending | None = None
        self.ready: Ready | None = None

    def reported(self, server: ServerName, state: ServerState) -> None:
        assert server == DB.name
        if isinstance(state, Pending) and state.reason:
            self.failed = state
        elif isinstance(state, Ready):
            self.ready = state

    def updated(self, server: ServerName, uri: str) -> None:
        raise AssertionError(server, uri)

    def logged(self, server: ServerName, params: JsonObject) -> None:
        raise AssertionError(server, params)

    asked = staticmethod(refuse)


async def reports_of(server: RawServer) -> Reports:
    """Have the server connected for a moment."""
    reports = Reports()
    ours = Ourselves(US, dict[str, Any])
    downstream = Downstream(
        replace(DB, era=server.era),
        server.connect,
        reports,
        ours=ours,
        eras=Eras(NoMemory()),
        jitter=lambda: 1.0,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(downstream.run)
        await anyio.sleep(0.1)
        group.cancel_scope.cancel()
    return reports


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_refuses_us_with_its_secrets_is_quoted_without_them(era: Era) -> None:
    async def refuse_with_secrets(_context: Dispatch, _params: Json) -> Json:
        raise MCPError(-32000, f"bad credentials {SAID}")

    handlers = {"initialize": refuse_with_secrets, "server__discover": refuse_with_secrets}
    reports = await reports_of(RawServer(era, **handlers))

    assert reports.failed is not None
    assert reports.failed.reason == f"bad credentials {SHOWN}"


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_presents_itself_with_its_secrets_is_shown_without(era: Era) -> None:
    info = {"name": "board env-canary-1", "version": "1 keyring-canary-4"}
    told: Json = {"capabilities": {"tools": {}}, "instructions": f"For accounts, with {SAID}"}

    async def introduce(_context: Dispatch, _params: Json) -> Json:
        if era == "handshake":
            return {"protocolVersion": VERSIONS[era], "serverInfo": info, **told}
        meta = {SERVER_INFO_META_KEY: info}
        return {"supportedVersions": [VERSIONS[era]], "_meta": meta, **told}

    server = RawServer(era, initialize=introduce, server__discover=introduce)
    server.tools = [{"name": "t", "description": "env-canary-1", "inputSchema": {"type": "object"}}]
    reports = await reports_of(server)

    assert reports.ready is not None
    assert reports.ready.version == "board [API_TOKEN] 1 [keyring:A]"
    # The name of a project is no secret, and the model may need to know it.
    assert reports.ready.instructions == reports.ready.about == f"For accounts, with {SHOWN}"
    # What it defines passes as it is.
    assert reports.ready.entries[0].description == "env-canary-1"


@pytest.mark.parametrize(
    "said",
    [
        'krSEC"quo\\te-888 é',
        r"krSEC\"quo\\te-888 \u00e9",
        r"krSEC\"quo\\te-888 é",
        repr('krSEC"quo\\te-888 é')[1:-1],
        "krSEC%22quo%5Cte-888%20%C3%A9",
        "krSEC%22quo%5Cte-888+%C3%A9",
    ],
)
def test_a_value_is_hidden_however_it_is_written(said: str) -> None:
    redact = Redaction([("KEY", 'krSEC"quo\\te-888 é')])

    assert redact(f"it is <{said}>") == "it is <[KEY]>"


def test_each_line_of_a_value_is_hidden() -> None:
    redact = Redaction([("PEM", "-----BEGIN\r\n  krSECline1\nshort\nkrSECline2/\n")])

    assert redact("  krSECline1") == "  [PEM]"
    assert redact("krSECline2/ is short") == "[PEM] is short"


@pytest.mark.parametrize("before", range(0, 9000, 250))
@pytest.mark.parametrize("secret", ["confided " * 800, f"ghp_{'0123456789' * 4}"])
def test_no_half_of_a_secret_is_left_where_a_long_text_is_cut(before: int, secret: str) -> None:
    beginning = Redaction([("KEY", secret.strip())]).beginning

    for hidden in ("", "ghp_0123456789" * 500):
        text = beginning(f"{hidden}{'a ' * before}{secret}{'b ' * 9000}", 200)
        assert len(text) <= 200
        assert "conf" not in text
        assert "ghp_" not in text


def test_of_a_long_text_no_more_is_looked_at_than_is_shown_of_it() -> None:
    began = thread_time()
    assert Redaction([]).beginning("//a:" * 4_000_000, 200) == "//a:" * 50
    assert thread_time() - began < 0.1


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("word", ["x", "x\n", " "])
async def test_a_server_that_refuses_us_at_length_is_quoted_in_short(word: str, era: Era) -> None:
    async def refuse_at_length(_context: Dispatch, _params: Json) -> Json:
        raise MCPError(-32000, word * 2_000_000)

    handlers = {"initialize": refuse_at_length, "server__discover": refuse_at_length}
    reports = await reports_of(RawServer(era, **handlers))

    assert reports.failed is not None
    assert reports.failed.reason in ("x" * MAX_REASON, "x", "MCPError")
