"""An issuer of tokens on the loopback interface, which signs whatever it is told to."""

import base64
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import anyio
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from starlette.types import Receive, Scope, Send

from aggregator.config import Settings
from aggregator.config.http import SCOPE, AccessRule, CallLimits, Http, Issuer
from aggregator.config.profile import Profile
from tests.loopback.web import answer, web

AUDIENCE = "https://tools.example.com/mcp"
OAUTH, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"


@dataclass(frozen=True)
class Signer:
    """A key, and how it signs."""

    name: str
    algorithm: str
    private: Any

    def published(self, **changes: Any) -> dict[str, Any]:
        kinds = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}
        kind = kinds["RS256" if self.algorithm == "PS256" else self.algorithm]
        jwk: dict[str, Any] = kind.to_jwk(self.private.public_key(), as_dict=True)
        return {**jwk, "kid": self.name, "use": "sig", **changes}


@cache
def signer(algorithm: str = "ES256", name: str = "") -> Signer:
    """Return a key; the same for the same name."""
    private: Any
    match algorithm:
        case "RS256" | "PS256":
            private = rsa.generate_private_key(65537, 2048)
        case "EdDSA":
            private = ed25519.Ed25519PrivateKey.generate()
        case _:
            private = ec.generate_private_key(ec.SECP256R1())
    return Signer(name or algorithm.lower(), algorithm, private)


@dataclass
class Authority:
    """Signs tokens, publishes keys, and counts who asks for them."""

    origin: str = ""
    path: str = ""
    signers: list[Signer] = field(default_factory=lambda: [signer()])
    keys: bytes | None = None
    """What is published in the place of the keys, if it is something else."""
    described_at: str = OAUTH
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    """What its description says otherwise than is true."""
    status: int = 200
    hangs: bool = False
    fetched: int = 0
    """Times that somebody asked for its keys."""

    @property
    def issuer(self) -> str:
        return self.origin + self.path

    def token(self, key: Signer | None = None, /, **changes: Any) -> str:
        """Return a token; a claim that is nothing is left out, `header` adds to its header."""
        header = changes.pop("header", {})
        now, key = time.time(), key or self.signers[0]
        claims = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "anna",
            "client_id": "editor",
            "iat": int(now),
            "exp": int(now) + 600,
            "scope": "tools.read",
            **changes,
        }
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(kept, key.private, key.algorithm, {"kid": key.name, **header})

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        path = scope["path"]
        places = {OAUTH: f"{OAUTH}{self.path}", OPENID: f"{self.path}{OPENID}"}
        if path == places[self.described_at]:
            told = {"issuer": self.issuer, "jwks_uri": f"{self.origin}/keys", **self.changes}
            await answer(send, self.status, told)
        elif path == "/keys":
            self.fetched += 1
            if self.hangs:
                await anyio.sleep_forever()
            published = {"keys": [each.published() for each in self.signers]}
            await answer(send, self.status, self.keys or json.dumps(published).encode())
        else:
            await answer(send, 404)

    @asynccontextmanager
    async def served(self) -> AsyncGenerator["Authority", None]:
        """Answer for the length of the block."""
        async with web(self) as self.origin:
            yield self

    def trusted(self, *rules: AccessRule, **changes: Any) -> Http:
        """Return what a file says that believes it."""
        access = rules or (AccessRule(("tools.read",), "reading"), EVERYTHING)
        issuer = Issuer(self.issuer, (AUDIENCE,), AUDIENCE, access=access)
        views = {each.profile: Profile(each.profile) for each in access if each.is_wide}
        return Http(issuer, local_token=False, views=views)._replace(**changes)


EVERYTHING = AccessRule(("tools.all",), f"{SCOPE}tools.all", is_wide=True)
READING = Profile("reading", deny=("delete",))


def settings(http: Http, **changes: Any) -> Settings:
    """Return settings with a profile that hides something."""
    return Settings(surface="full", profiles={"reading": READING}, http=http, **changes)


def limited(http: Http, per_minute: int | None = None, in_flight: int | None = None) -> Http:
    """Return the same with limits for each identity."""
    return http._replace(limits=CallLimits(per_minute, in_flight))


def written(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"x") -> str:
    """Return a token that nobody has signed."""
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in parts)
