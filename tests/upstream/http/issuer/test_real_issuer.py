"""People who log in at an issuer that is not ours, with the SDK's own client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import jwt
import pytest
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
from tests.login.provider import installed, logged_in, provider
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.loopback.web import listening
from tests.patience import PATIENCE
from tests.peers import ERAS, MODES, Era, Peer, connect_to, ready
from tests.upstream.http.issuer.issuing import settings
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
            # What was given to one program opens nothing once it is altered.
            head, body, signature = pocket.tokens.access_token.split(".")
            async with client(f"{head}.{body}.{signature[::-1]}") as other:
                altered = await other.post(opened.url, json=HELLO)

    claims = jwt.decode(pocket.tokens.access_token, options={"verify_signature": False})
    assert (claims["iss"], claims["aud"], claims["sub"]) == (issuer, url, "anna")
    assert names == ["notes__read"]
    assert not called.is_error
    assert altered.status_code == 401
    (ended,) = [each for each in told if isinstance(each, CallEnded)]
    assert ended.origin.identity == "anna"
    assert ended.origin.issuer == issuer
