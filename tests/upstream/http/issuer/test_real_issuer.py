"""People who log in at an issuer that is not ours, with the SDK's own client."""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization as form
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from aggregator.config.http import SCOPE, AccessRule, Http, Issuer
from aggregator.config.profile import Profile
from aggregator.records.events import CallEnded, Event
from tests.downstream.login.provider import installed, logged_in, provider
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.loopback.web import listening
from tests.patience import PATIENCE
from tests.peers import ERAS, MODES, Era, Peer, connect_to, ready
from tests.upstream.http.issuer.issuing import settings, signer, written
from tests.upstream.http.test_keys import HELLO, client

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

BACK = "http://127.0.0.1:39118/callback"
WIDE = f"{SCOPE}tools.all"


class Pocket(TokenStorage):
    """Where a client keeps what it was given."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def person(name: str, opened: Open, era: Era, pocket: Pocket) -> AsyncGenerator[Client, None]:
    """Be a client that nobody has given a token: it finds out where to log in by itself."""
    shown: list[str] = []

    async def show(page: str) -> None:
        shown.append(page)

    async def come_back() -> AuthorizationCodeResult:
        came = await logged_in(shown[-1], BACK, name)
        return AuthorizationCodeResult(code=came["code"], state=came["state"], iss=came["iss"])

    auth = OAuthClientProvider(
        opened.url,
        OAuthClientMetadata(client_name="one", redirect_uris=[AnyUrl(BACK)]),
        pocket,
        redirect_handler=show,
        callback_handler=come_back,
    )
    async with (
        httpx2.AsyncClient(
            auth=auth, timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES
        ) as http,
        Client(streamable_http_client(opened.url, http_client=http), mode=MODES[era]) as one,
    ):
        yield one


async def forged(issuer: str, token: str) -> dict[str, str]:
    """Return what whoever has a token, and the keys that all can read, could make of it."""
    async with httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES) as http:
        about = (await http.get(f"{issuer}/.well-known/openid-configuration")).json()
        keys = (await http.get(about["jwks_uri"])).json()["keys"]
    head, body, signature = token.split(".")
    kind, claims = (json.loads(urlsafe_b64decode(f"{each}==")) for each in (head, body))
    (key,) = [each for each in keys if each["kid"] == kind["kid"]]
    public = jwt.PyJWK(key).key.public_bytes(
        form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
    )
    symmetric = written({**kind, "alg": "HS256"}, claims, b"").rstrip(".")
    signed = urlsafe_b64encode(hmac.digest(public, symmetric.encode(), "sha256"))
    genuine = urlsafe_b64decode(f"{signature}==")
    own = signer("RS256", "mine")
    changed = {"aud": "https://other.example.com/mcp", "iss": "https://evil.example"}
    changed |= {"exp": claims["exp"] - 7200, "nbf": claims["exp"], "scope": "tools.all"}
    return {
        "as it was": token,
        "altered": f"{head}.{body}.{signature[::-1]}",
        "not signed": written({**kind, "alg": "none"}, claims, b""),
        "signed with the public key": f"{symmetric}.{signed.rstrip(b'=').decode()}",
        "signed by another, with a key it brings along": jwt.encode(
            claims, own.private, "RS256", {**kind, "jwk": own.published()}
        ),
        "with a path for a key": written({**kind, "kid": "../../../dev/null"}, claims, genuine),
        **{
            f"with another {name}": written(kind, {**claims, name: value}, genuine)
            for name, value in changed.items()
        },
    }


@pytest.mark.parametrize("era", ERAS)
async def test_people_log_in_and_see_what_their_scopes_show(era: Era, tmp_path: Path) -> None:
    package, told = installed(), list[Event]()
    with listening() as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    async with provider(package, url, "tools.read tools.all") as issuer:
        access = AccessRule(("tools.read",), "reading"), AccessRule(("tools.all",), WIDE, True)
        believed = Issuer(issuer, (url,), url, access=access)
        http = Http(believed, local_token=False, views={WIDE: Profile(WIDE)})
        servers = {"notes": connect_to(Peer("read", "delete"))}
        async with door(servers, tmp_path, settings(http), port=port) as opened:
            await ready(opened.upstream)
            pocket = Pocket()
            with opened.upstream.fleet.stream.heard_by(told.append):
                async with person("anna", opened, era, pocket) as one:
                    names = [tool.name for tool in (await one.list_tools()).tools]
                    called = await one.call_tool("notes__read", {})
            assert pocket.tokens is not None
            refused = dict[str, int]()
            for kind, token in (await forged(issuer, pocket.tokens.access_token)).items():
                async with client(token) as other:
                    answer = await other.post(opened.url, json=HELLO)
                refused[kind] = answer.status_code

    claims = jwt.decode(pocket.tokens.access_token, options={"verify_signature": False})
    assert (claims["iss"], claims["aud"], claims["sub"]) == (issuer, url, "anna")
    assert names == ["notes__read"]
    assert not called.is_error
    assert {kind: code for kind, code in refused.items() if code != 401} == {"as it was": 200}
    (ended,) = [each for each in told if isinstance(each, CallEnded)]
    assert ended.origin.identity == "anna"
    assert ended.origin.issuer == issuer
