"""The whole login once with what is not ours: a certified authorisation server, a real browser."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from starlette.types import Receive, Scope, Send

from tests.downstream.login.authority import Authority, World
from tests.downstream.login.chromium import browsing, find_chromium
from tests.downstream.login.logins import logins_in, server_at
from tests.downstream.login.provider import installed, provider
from tests.downstream.login.test_inside import ABLE, aggregator_for, called, text
from tests.loopback.door import NO_CERTIFICATES
from tests.loopback.web import answer, manager_of, web
from tests.patience import PATIENCE
from tests.peers import Peer
from tests.raw import raw_client

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def browser() -> str:
    """Return the browser of this machine."""
    return find_chromium() or pytest.skip("there is no chromium here")


@pytest.fixture
def package(browser: str) -> Path:
    """Return where the authorisation server is; it is of no use without a browser."""
    return installed()


class Resource:
    """A server that believes one authorisation server, by its signature alone."""

    def __init__(self) -> None:
        self.url = ""
        self.issuer = ""
        self.shown: list[str] = []
        self._manager = manager_of(Peer("go", "write"))

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None, None]:
        async with self._manager.run(), web(self) as origin:
            self.url = f"{origin}/mcp"
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/.well-known/oauth-protected-resource"):
            told = {"resource": self.url, "authorization_servers": [self.issuer]}
            await answer(send, 200, {**told, "scopes_supported": ["use"]})
            return
        header = dict(scope["headers"]).get(b"authorization", b"").decode()
        if not await self._believes(header.removeprefix("Bearer ")):
            await answer(send, 401, b"", www_authenticate='Bearer scope="use"')
            return
        await self._manager.handle_request(scope, receive, send)

    async def _believes(self, token: str) -> bool:
        if not token:
            return False
        async with httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES) as client:
            keys: dict[str, Any] = (await client.get(f"{self.issuer}/jwks")).json()
        number = jwt.get_unverified_header(token)["kid"]
        key = next(each for each in jwt.PyJWKSet.from_dict(keys).keys if each.key_id == number)
        claims: dict[str, Any] = jwt.decode(
            token, key, ["RS256"], audience=self.url, issuer=self.issuer
        )
        self.shown.append(token)
        return claims["scope"] == "use"


async def test_a_person_logs_in_with_a_real_browser(
    tmp_path: Path, package: Path, browser: str
) -> None:
    resource = Resource()
    async with (
        resource.served(),
        provider(package, resource.url) as issuer,
        browsing(browser, tmp_path / "profile") as tab,
    ):
        resource.issuer = issuer
        there = World(Authority(), Peer(), resource.url)
        async with (
            aggregator_for(there, tmp_path) as upstream,
            raw_client(upstream, "modern", ABLE) as client,
        ):

            async def person(page: str) -> None:
                await tab.open(page)
                await tab.submit_until("You are logged in")

            with anyio.fail_after(2 * PATIENCE):
                result = await called(client, person)
                assert text(result).startswith("web: logged in. It has 2 tools now"), tab.seen
            assert "Log in to web?" in tab.seen[0]
            assert f"by {issuer.removeprefix('http://')}." in tab.seen[0].replace("\n", " ")

            file = logins_in(tmp_path).file(server_at(resource.url))
            login = file.read()
            assert login is not None
            assert login.issuer == issuer
            assert login.refresh_token is not None
            file.write(login._replace(expires_at=1.0))
            go = await client.request("tools/call", {"name": "web__go", "arguments": {}})
            assert text(go) == "go: {}"
            renewed = file.read()
            assert renewed is not None
            assert renewed.refresh_token != login.refresh_token
            assert resource.shown[-1] == renewed.access_token != login.access_token
