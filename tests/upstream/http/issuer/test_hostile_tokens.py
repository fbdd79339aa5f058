"""Tokens that must open nothing, each shown at a real door that believes a real issuer."""

import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio import to_thread

from aggregator.upstream.http.issuer.keyset import MAX_KEYS
from aggregator.upstream.http.issuer.verifying import identity_by
from tests.loopback.door import Open, door
from tests.patience import PATIENCE
from tests.peers import Peer, connect_to
from tests.threads import refuse
from tests.upstream.http.issuer.issuing import (
    AUDIENCE,
    Authority,
    Signer,
    settings,
    signer,
    written,
)
from tests.upstream.http.test_keys import HELLO, client

pytestmark = pytest.mark.anyio

Hostile = Callable[[Authority], str]


@pytest.fixture
async def authority() -> AsyncGenerator[Authority, None]:
    every = [signer(each) for each in ("RS256", "ES256", "EdDSA")]
    async with Authority(signers=every).served() as serving:
        yield serving


async def shown(opened: Open, token: str, path: str = "") -> httpx2.Response:
    async with client(token) as http:
        return await http.post(f"{opened.url}{path}", json=HELLO)


def claims(authority: Authority, **changes: Any) -> dict[str, Any]:
    now = int(time.time())
    told = {"iss": authority.issuer, "aud": AUDIENCE, "sub": "anna", "exp": now + 600}
    return {**told, "scope": "tools.read", **changes}


def none(authority: Authority) -> str:
    return written({"alg": "none", "typ": "JWT"}, claims(authority), b"")[:-1] + "."


def none_signed(authority: Authority) -> str:
    return written({"alg": "nOnE", "kid": "rs256"}, claims(authority))


def symmetric(authority: Authority) -> str:
    """Sign with what everybody can read: the public key, in the form most libraries take it."""
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415 - here alone

    public = signer("RS256").private.public_key()
    pem = public.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    bare = written({"alg": "HS256", "kid": "rs256"}, claims(authority), b"").rstrip(".")
    signature = hmac.digest(pem, bare.encode(), hashlib.sha256)
    return f"{bare}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def by_another_key(authority: Authority) -> str:
    other = signer("RS256", "other")
    return authority.token(Signer("rs256", "RS256", other.private))


def other_kind_of_key(authority: Authority) -> str:
    """Have a key for one way of signing taken for another."""
    return authority.token(signer("RS256"), header={"kid": "es256"})


def with_own_key(authority: Authority) -> str:
    own = signer("RS256", "mine")
    return authority.token(own, header={"kid": "rs256", "jwk": own.published()})


def with_address_of_own(authority: Authority) -> str:
    own = signer("RS256", "mine")
    return authority.token(own, header={"jku": "https://evil.example/keys", "x5u": "https://e"})


def altered(authority: Authority) -> str:
    head, _, signature = authority.token().split(".")
    middle = written({}, claims(authority, scope="tools.all")).split(".")[1]
    return f"{head}.{middle}.{signature}"


def once(**changes: Any) -> Hostile:
    return lambda authority: authority.token(signer("RS256"), **changes)


def named(key: str) -> Hostile:
    return once(header={"kid": key})


NOW = int(time.time())
REFUSED: dict[str, Hostile] = {
    "not signed": none,
    "not signed, in capitals": none_signed,
    "signed with the public key": symmetric,
    "signed by somebody else": by_another_key,
    "signed with a key of another kind": other_kind_of_key,
    "signed with a key it brings along": with_own_key,
    "signed with a key that it says where to get": with_address_of_own,
    "altered": altered,
    "for others": once(aud="https://other.example.com/mcp"),
    "for one below us": once(aud=f"{AUDIENCE}/reading"),
    "for nearly us": once(aud=f"{AUDIENCE}/"),
    "for nobody": once(aud=None),
    "for a number": once(aud=7),
    "of another issuer": once(iss="https://evil.example"),
    "of nearly the issuer": lambda it: it.token(iss=f"{it.issuer}/"),
    "of no issuer": once(iss=None),
    "expired": once(exp=NOW - 3600),
    "without an end": once(exp=None),
    "with an end that is none": once(exp="never"),
    "with an end beyond all numbers": once(exp=10**400),
    "not yet valid": once(nbf=NOW + 3600),
    "made tomorrow": once(iat=NOW + 86_400),
    "of nobody": once(sub=None),
    "of somebody without a name": once(sub=""),
    "of somebody whom nobody sees": once(sub=" \u200b\n"),
    "of a number": lambda it: written({"alg": "RS256", "kid": "rs256"}, claims(it, sub=7)),
    "with a path for a key": named("../../../../etc/passwd"),
    "with a query for a key": named("' OR 1=1 --"),
    "with a key of lines": named("rs256\r\nx-evil: 1"),
    "with a key that is long": named("k" * 5000),
    "with a key that is none": lambda it: written({"alg": "RS256", "kid": {}}, claims(it)),
    "of a key that is not there": named("gone"),
    "of several keys": lambda it: written({"alg": "RS256", "kid": ["rs256"]}, claims(it)),
    "with what must be understood": once(header={"crit": ["exp"]}),
    "of another kind": once(header={"typ": "logout+jwt"}),
    "of a kind that is none": once(header={"typ": 7}),
    "of several kinds": lambda it: written({"alg": "RS256", "typ": ["JWT"]}, claims(it)),
    "of kinds with names": lambda it: written({"alg": "RS256", "typ": {"JWT": 1}}, claims(it)),
    "signed otherwise": lambda it: written({"alg": "ES384", "kid": "es256"}, claims(it)),
    "signed by a list": lambda it: written({"alg": ["RS256"], "kid": "rs256"}, claims(it)),
    "nested": lambda _: written({"alg": "RS256"}, json.loads("[" * 900 + "]" * 900)),
    "a list": lambda _: written({"alg": "RS256"}, [1]),  # pyright: ignore[reportArgumentType]
    "no JSON": lambda _: "e30x.e30x.e30x",
    "encrypted": lambda _: ".".join(["e30"] * 5),
    "dots": lambda _: "..",
    "of forty thousand characters": once(padding="x" * 40_000),
    "ours": lambda _: "agg_" + "x" * 43,
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_what_is_no_token_of_the_issuer_opens_nothing(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    peer = Peer("read")
    believed = settings(authority.trusted())
    async with door({"notes": connect_to(peer)}, tmp_path, believed) as opened:
        good = await shown(opened, authority.token(signer("RS256")))
        answer = await shown(opened, REFUSED[kind](authority))
        of_all = await shown(opened, REFUSED[kind](authority), "/reading")

    assert good.status_code == 200
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    # What is for one address opens that one, and nothing else does.
    assert of_all.status_code == (200 if kind == "for one below us" else 401)
    assert "evil" not in answer.text


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_what_the_issuer_has_signed_opens(algorithm: str, tmp_path: Path) -> None:
    async with Authority(signers=[signer(algorithm)]).served() as authority:
        async with door({}, tmp_path, settings(authority.trusted())) as opened:
            answer = await shown(opened, authority.token())

    assert answer.status_code == 200


async def test_clocks_may_differ_by_a_minute_and_no_more(
    authority: Authority, tmp_path: Path
) -> None:
    now = int(time.time())
    async with door({}, tmp_path, settings(authority.trusted())) as opened:
        ends = [await shown(opened, authority.token(exp=now - late)) for late in (20, 120)]
        begins = [await shown(opened, authority.token(nbf=now + soon)) for soon in (20, 120)]

    assert [each.status_code for each in ends] == [200, 401]
    assert "expired" in ends[1].headers["www-authenticate"]
    assert [each.status_code for each in begins] == [200, 401]


async def test_a_token_of_a_million_characters_is_refused_unread(
    authority: Authority, tmp_path: Path, parser: None
) -> None:
    async with door({}, tmp_path, settings(authority.trusted())) as opened:
        try:
            answer = await shown(opened, "x" * 1_000_000)
        except httpx2.TransportError:
            # Who is not read to the end may find the connection closed.
            status = 431
        else:
            status = answer.status_code
        again = await shown(opened, authority.token())

    assert status in (400, 431)
    assert again.status_code == 200
    assert authority.fetched == 1


ODD: dict[str, Callable[[], bytes]] = {
    "ten thousand keys": lambda: _keys(10_000),
    "too many keys that are none": lambda: json.dumps({"keys": [{}] * (MAX_KEYS + 1)}).encode(),
    "none": lambda: b'{"keys": []}',
    "no keys": lambda: b"[]",
    "no JSON": lambda: b"<html>",
    "a secret": lambda: json.dumps({"keys": [{"kty": "oct", "k": "eA", "kid": "es256"}]}).encode(),
    "a key that is too short": lambda: json.dumps(
        {"keys": [{"kty": "RSA", "n": "w" * 170, "e": "AQAB", "kid": "es256"}]}
    ).encode(),
    "a curve that is none": lambda: json.dumps({"keys": [{"kty": "EC", "crv": []}]}).encode(),
    "nested": lambda: b"[" * 100_000,
}


def _keys(number: int) -> bytes:
    key = signer().published()
    return json.dumps({"keys": [{**key, "kid": f"k{each}"} for each in range(number)]}).encode()


@pytest.mark.parametrize("kind", ODD)
async def test_where_keys_are_none_nobody_is_let_in(kind: str, tmp_path: Path) -> None:
    async with Authority(keys=ODD[kind]()).served() as authority:
        async with door({}, tmp_path, settings(authority.trusted())) as opened:
            answers = [await shown(opened, authority.token()) for _ in range(3)]

    assert [each.status_code for each in answers] == [503] * 3
    assert all(int(each.headers["retry-after"]) > 0 for each in answers)
    assert authority.fetched == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://evil.example"},
        {"jwks_uri": None},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": 7},
    ],
)
async def test_an_issuer_that_describes_another_lets_nobody_in(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    async with Authority(changes=changes).served() as authority:
        async with door({}, tmp_path, settings(authority.trusted())) as opened:
            answer = await shown(opened, authority.token())

    assert answer.status_code == 503
    assert authority.fetched == 0


async def test_while_keys_hang_others_are_answered(tmp_path: Path) -> None:
    async with Authority(hangs=True).served() as authority:
        async with door({}, tmp_path, settings(authority.trusted())) as opened:
            found: list[int] = []
            meanwhile: list[int] = []

            async def wait() -> None:
                found.append((await shown(opened, authority.token())).status_code)

            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(wait)
                    async with client("nothing") as http:
                        while not authority.fetched:
                            await http.get(f"{opened.origin}/healthz")
                        answer = await http.get(f"{opened.origin}/healthz")
                        meanwhile += [answer.status_code, *found]

    assert meanwhile == [200]
    assert found == [503] * 20
    assert authority.fetched == 1


async def test_where_no_thread_can_be_started_for_keys_nobody_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Authority().served() as authority:
        async with door({}, tmp_path, settings(authority.trusted())) as opened:
            monkeypatch.setattr(to_thread, "run_sync", refuse)
            answer = await shown(opened, authority.token())
            monkeypatch.undo()
            async with client("nothing") as http:
                others = await http.get(f"{opened.origin}/healthz")

    assert answer.status_code == 503
    assert others.status_code == 200


@pytest.mark.parametrize("likeness", ["ada ", "a\u200bda", "ada\n", "\u202eada"])
def test_who_only_looks_like_somebody_has_another_name(likeness: str) -> None:
    """By the name a page shows to people what is theirs, and an audit tells who has called."""
    ada, other = (
        identity_by({"sub": each, "exp": 1}, "https://issuer.example") for each in ("ada", likeness)
    )
    assert ada.name == "ada"
    assert other.name.startswith("ada (")


def test_who_is_called_like_somebody_who_is_told_apart_has_another_name() -> None:
    def name(subject: str) -> str:
        return identity_by({"sub": subject, "exp": 1}, "https://issuer.example").name

    told_apart = name("a\u200bda")
    assert name(told_apart) != told_apart
    assert name("ada (team)") == "ada (team)"
