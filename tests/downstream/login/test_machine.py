"""A login without a person: by a secret, or by a key."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from aggregator.config.oauth import OAuth
from aggregator.downstream.login.command import Command
from aggregator.downstream.login.credentials import Credentials, RenewalError
from aggregator.downstream.login.file import LoginFile
from aggregator.downstream.login.machine import MachineGrant
from aggregator.downstream.login.renewal import Ask, Reply

pytestmark = pytest.mark.anyio

URL = "https://mcp.example.com/mcp"
ISSUER = "https://auth.example.com"
NOW = 1_000_000.0


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def clock() -> float:
    return NOW + anyio.current_time()


class Office:
    """An authorisation server as far as a machine needs one."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []
        self.fetched: list[str] = []
        self.metadata: dict[str, Any] = {"issuer": ISSUER, "token_endpoint": f"{ISSUER}/token"}
        self.resource: dict[str, Any] = {"resource": URL, "authorization_servers": [ISSUER]}
        self.reply = Reply(200, b'{"access_token": "machine-token", "expires_in": 60}')

    async def fetch(self, url: str) -> Reply:
        self.fetched.append(url)
        if url == "https://mcp.example.com/.well-known/oauth-protected-resource/mcp":
            return Reply(200, json.dumps(self.resource).encode())
        if url == f"{ISSUER}/.well-known/oauth-authorization-server":
            return Reply(200, json.dumps(self.metadata).encode())
        return Reply(404, b"")

    async def send(self, ask: Ask) -> Reply:
        self.asks.append(ask)
        return self.reply


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def make(office: Office, tmp_path: Path) -> Callable[..., Credentials]:
    def made(**options: Any) -> Credentials:
        oauth = OAuth(grant="client_credentials", client_id="machine", **options)
        grant = MachineGrant(URL, oauth, office.send, office.fetch, clock)
        file = LoginFile(tmp_path / "logins" / "one.json")
        return Credentials(file, grant, Command("web", Path("/s.yaml")), clock=clock)

    return made


async def test_a_secret_gives_a_token_which_is_had_anew_when_it_ends(
    office: Office, make: Callable[..., Credentials]
) -> None:
    credentials = make(client_secret="the-secret", scopes=("a", "b"))  # noqa: S106 - of nobody

    assert await credentials.token() == "machine-token"
    assert await credentials.token() == "machine-token"
    assert len(office.asks) == 1
    await anyio.sleep(60)
    assert await credentials.token() == "machine-token"

    assert len(office.asks) == 2
    ask = office.asks[0]
    assert ask.headers["authorization"].startswith("Basic ")
    assert "client_secret" not in ask.form
    assert (ask.form["scope"], ask.form["resource"]) == ("a b", URL)


async def test_the_secret_is_not_kept_with_the_login(
    make: Callable[..., Credentials], tmp_path: Path
) -> None:
    await make(client_secret="the-secret").token()  # noqa: S106 - of nobody

    assert "the-secret" not in (tmp_path / "logins" / "one.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["RS256", "ES256"])
async def test_a_key_signs_for_this_authorisation_server_alone(
    office: Office, make: Callable[..., Credentials], tmp_path: Path, kind: str
) -> None:
    key = (
        rsa.generate_private_key(public_exponent=65537, key_size=2048)
        if kind == "RS256"
        else ec.generate_private_key(ec.SECP256R1())
    )
    path = tmp_path / "key.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )

    assert await make(private_key=path).token() == "machine-token"

    head, claims, _signature = office.asks[0].form["client_assertion"].split(".")
    assert decoded(head)["alg"] == kind
    assert decoded(claims)["aud"] == ISSUER
    assert decoded(claims)["exp"] == NOW + 300


def decoded(part: str) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


async def test_a_key_that_is_none_is_told(make: Callable[..., Credentials], tmp_path: Path) -> None:
    with pytest.raises(RenewalError, match="`privateKey` cannot be read: no such file"):
        await make(private_key=tmp_path / "none.pem").token()
    (tmp_path / "key.pem").write_text("no key", encoding="utf-8")
    await anyio.sleep(10)
    with pytest.raises(RenewalError, match="`privateKey` is no key"):
        await make(private_key=tmp_path / "key.pem").token()


async def test_a_clock_that_is_wrong_is_told_where_it_may_be_why(
    office: Office, make: Callable[..., Credentials], tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    path = tmp_path / "key.pem"
    form = serialization.PrivateFormat.PKCS8
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    )
    # A million seconds after the beginning of 1970 it was this time.
    date = "Mon, 12 Jan 1970 13:36:40 GMT"
    office.reply = Reply(401, b'{"error": "invalid_client"}', date)

    with pytest.raises(RenewalError, match="the clock of this machine is 600 s ahead of its own"):
        await make(private_key=path).token()


@pytest.mark.parametrize(
    ("resource", "metadata", "says"),
    [
        ({"resource": "https://evil.example/mcp"}, {}, "logins are for `https://evil.example"),
        ({"authorization_servers": ["https://evil.example"]}, {}, "and not the `issuer` you name"),
        ({}, {"issuer": "https://evil.example"}, "says that it is `https://evil.example`"),
        ({}, {"token_endpoint": None}, "does not say where it gives tokens"),
    ],
)
async def test_what_lies_is_not_believed(
    office: Office,
    make: Callable[..., Credentials],
    resource: dict[str, Any],
    metadata: dict[str, Any],
    says: str,
) -> None:
    office.resource |= resource
    office.metadata |= metadata

    with pytest.raises(RenewalError) as raised:
        await make(client_secret="the-secret", issuer=ISSUER).token()  # noqa: S106 - of nobody

    assert says in str(raised.value)
    assert office.asks == []


async def test_a_machine_is_not_told_to_log_in(make: Callable[..., Credentials]) -> None:
    credentials = make(client_secret="the-secret")  # noqa: S106 - of nobody

    refused = credentials.explain(401, {})
    more = credentials.explain(
        403, {"www-authenticate": 'Bearer error="insufficient_scope", scope="admin"'}
    )

    assert refused is not None
    assert (refused.is_barred, refused.remedy) == (True, None)
    assert more is not None
    assert more.reason.endswith('add them ("admin") to `scopes` under its `oauth`')
    assert credentials.explain(500, {}) is None
