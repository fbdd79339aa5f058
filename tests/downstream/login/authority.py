"""A real authorisation server with a real MCP server behind it, both on the loopback interface.

The authorisation server is made of the SDK's own handlers. It takes refresh tokens away whole
families at a time when one is shown twice, and can be told to lie.
"""

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.loopback.web import answer, manager_of, of_era, web
from tests.peers import Era, Peer

REGISTERED = "known-client"
"""A client that was registered by hand."""
SECRET = "known-secret-of-the-client"  # noqa: S105 - of nobody

Lie = Callable[[Request, Send], Awaitable[bool]]
"""Answers a request in the place of the authorisation server, and says whether it did."""


@dataclass
class Grant:
    """What one login has given: all of it falls together."""

    client: str
    scopes: list[str]
    resource: str | None
    refresh: str = ""
    is_revoked: bool = False


@dataclass
class Authority(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Gives tokens, and counts."""

    lifetime: float = 3600
    clock: Callable[[], float] = time.time
    registers: bool = True
    rotates: bool = True
    gives_refresh: bool = True
    challenges: bool = True
    """Whether the server wants to know who asks for its tools."""
    demands: str = ""
    """The scope without which the server takes no call."""
    challenge_scope: str = ""
    knows_resource: bool = True
    origin: str = ""
    resource: str = ""
    lie: Lie | None = None
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    """What its metadata says otherwise than is true."""
    clients: dict[str, OAuthClientInformationFull] = field(
        default_factory=dict[str, OAuthClientInformationFull]
    )
    asked: list[AuthorizationParams] = field(default_factory=list[AuthorizationParams])
    """What was asked for at the place where a person logs in."""
    queries: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    forms: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """What was posted for tokens."""
    refreshed: int = 0
    reused: int = 0
    """Refresh tokens that were shown twice."""
    given: set[str] = field(default_factory=set[str])
    """Every code and token, for nobody to see."""
    codes: dict[str, AuthorizationCode] = field(default_factory=dict[str, AuthorizationCode])
    access: dict[str, tuple[Grant, float]] = field(default_factory=dict[str, tuple[Grant, float]])
    refresh: dict[str, Grant] = field(default_factory=dict[str, Grant])

    def __post_init__(self) -> None:
        self.clients[REGISTERED] = OAuthClientInformationFull(
            client_id=REGISTERED,
            client_secret=SECRET,
            redirect_uris=[AnyUrl("http://127.0.0.1:39118/callback")],
            token_endpoint_auth_method="client_secret_basic",  # noqa: S106 - the name of a method
            scope="read write admin offline_access",
        )

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info
        if client_info.client_secret:
            self.given.add(client_info.client_secret)

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        self.asked.append(params)
        code = self._made("code")
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self,
        client: OAuthClientInformationFull,  # noqa: ARG002 - as the protocol has it
        authorization_code: str,
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.grant(
            Grant(client.client_id, authorization_code.scopes, authorization_code.resource)
        )

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        grant = self.refresh.get(refresh_token)
        if grant is None or grant.client != client.client_id:
            return None
        if grant.refresh != refresh_token and self.rotates:
            self.reused += 1
            grant.is_revoked = True
        if grant.is_revoked:
            return None
        return RefreshToken(token=refresh_token, client_id=grant.client, scopes=grant.scopes)

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,  # noqa: ARG002 - as the protocol has it
        refresh_token: RefreshToken,
        scopes: list[str],  # noqa: ARG002 - as the protocol has it
    ) -> OAuthToken:
        grant = self.refresh[refresh_token.token]
        if grant.is_revoked:
            raise TokenError("invalid_grant")
        self.refreshed += 1
        return self.grant(grant)

    async def load_access_token(self, token: str) -> AccessToken | None:
        grant, until = self.access.get(token, (None, 0.0))
        if grant is None or grant.is_revoked or until <= self.clock():
            return None
        return AccessToken(token=token, client_id=grant.client, scopes=grant.scopes)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        grant = self.refresh.get(token.token) or self.access[token.token][0]
        grant.is_revoked = True

    def grant(self, grant: Grant) -> OAuthToken:
        """Give the next tokens of a grant."""
        access = self._made("access")
        self.access[access] = grant, self.clock() + self.lifetime
        if self.gives_refresh and (self.rotates or not grant.refresh):
            grant.refresh = self._made("refresh")
            self.refresh[grant.refresh] = grant
        return OAuthToken(
            access_token=access,
            expires_in=max(1, int(self.lifetime)),
            refresh_token=grant.refresh or None,
            scope=" ".join(grant.scopes) or None,
        )

    def forget_access(self) -> None:
        """Take all access tokens back, as a restart does."""
        self.access.clear()

    def revoke_all(self) -> None:
        """Take everything back."""
        for grant in self.refresh.values():
            grant.is_revoked = True

    def _made(self, kind: str) -> str:
        token = f"{kind}-{secrets.token_urlsafe(32)}"
        self.given.add(token)
        return token

    def routes(self) -> ASGIApp:
        scopes = ["read", "write", "admin", "offline_access"]
        return Starlette(
            routes=create_auth_routes(
                self,
                AnyHttpUrl(self.origin),
                client_registration_options=ClientRegistrationOptions(
                    enabled=self.registers, valid_scopes=scopes, default_scopes=["read", "write"]
                ),
                revocation_options=RevocationOptions(enabled=True),
            )
        )

    async def is_welcome(self, scope: Scope) -> tuple[int, str] | None:
        """Return how a request to the server is turned away; nothing if it is not."""
        header = dict(scope["headers"]).get(b"authorization", b"").decode()
        token = await self.load_access_token(header.removeprefix("Bearer "))
        wanted = f', scope="{self.challenge_scope}"' if self.challenge_scope else ""
        metadata = f"{self.resource_origin}/.well-known/oauth-protected-resource/mcp"
        place = f'resource_metadata="{metadata}"'
        if token is None and self.challenges:
            return 401, f"Bearer {place}{wanted}"
        return None

    @property
    def resource_origin(self) -> str:
        return self.resource.removesuffix("/mcp")


@dataclass
class World:
    """Both of them, and where the server is."""

    authority: Authority
    peer: Peer
    url: str


@asynccontextmanager
async def world(
    authority: Authority | None = None, peer: Peer | None = None, era: Era = "modern"
) -> AsyncGenerator[World, None]:
    """Have an authorisation server and a server that believes it alone."""
    authority = authority or Authority()
    peer = peer or Peer("go", "write")
    manager = manager_of(peer)
    served = of_era(manager.handle_request, era)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/.well-known/oauth-protected-resource"):
            await _describe(scope, authority, send)
            return
        if (away := await authority.is_welcome(scope)) is not None:
            await answer(send, away[0], b"", www_authenticate=away[1])
            return
        await _with_scopes(authority, served, scope, receive, send)

    async with (
        manager.run(),
        web(_lying(authority)) as origin,
        web(guarded) as resource,
    ):
        authority.origin, authority.resource = origin, f"{resource}/mcp"
        yield World(authority, peer, authority.resource)


async def _describe(scope: Scope, authority: Authority, send: Send) -> None:
    if not authority.knows_resource or not scope["path"].endswith("/mcp"):
        await answer(send, 404)
        return
    told = {"resource": authority.resource, "authorization_servers": [f"{authority.origin}/"]}
    await answer(send, 200, {**told, **authority.changes.get("resource", {})})


async def _with_scopes(
    authority: Authority, served: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Have a call need one more scope than what comes before it."""
    message = await receive()
    header = dict(scope["headers"]).get(b"authorization", b"").decode()
    grant, _until = authority.access.get(header.removeprefix("Bearer "), (None, 0.0))
    is_call = b'"tools/call"' in message.get("body", b"")
    if is_call and authority.demands and (not grant or authority.demands not in grant.scopes):
        wanted = f'Bearer error="insufficient_scope", scope="{authority.demands}"'
        await answer(send, 403, b"", www_authenticate=wanted)
        return
    pending = [message]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    await served(scope, again, send)


def _lying(authority: Authority) -> ASGIApp:
    """Serve the authorisation server, but for what it lies about."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(scope, receive)

        async def again() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        request = Request(scope, again)
        await _note(authority, request)
        if authority.lie is not None and await authority.lie(request, send):
            return
        if scope["path"].startswith("/.well-known/") and authority.changes.get("metadata"):
            await _metadata(authority, send)
            return
        await authority.routes()(scope, again, send)

    return app


async def _body(scope: Scope, receive: Receive) -> bytes:
    # The SDK's handler wants to be told a secret also by those who have none.
    body = b"client_secret=&" if scope["path"] == "/revoke" else b""
    while scope["method"] == "POST":
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return body


async def _note(authority: Authority, request: Request) -> None:
    if request.url.path == "/token":
        form = await Request(request.scope, request.receive).form()
        authority.forms.append({name: str(value) for name, value in form.items()})
    if request.url.path == "/authorize":
        authority.queries.append(dict(request.query_params))


async def _metadata(authority: Authority, send: Send) -> None:
    told: dict[str, Any] = {
        "issuer": f"{authority.origin}/",
        "authorization_endpoint": f"{authority.origin}/authorize",
        "token_endpoint": f"{authority.origin}/token",
        "registration_endpoint": f"{authority.origin}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    }
    changed = {**told, **authority.changes["metadata"]}
    await answer(send, 200, {name: each for name, each in changed.items() if each is not None})
