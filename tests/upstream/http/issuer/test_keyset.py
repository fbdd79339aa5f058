"""Which of the keys that an issuer publishes are used, and for what."""

import base64
import json
from typing import Any

import pytest

from aggregator.upstream.http.issuer.keyset import MAX_KEYS, KeysError, KeySet, read_keys
from aggregator.upstream.http.issuer.reading import Claim
from aggregator.upstream.http.issuer.source import places
from tests.upstream.http.issuer.issuing import signer


def keys_of(*published: Any) -> KeySet:
    return read_keys(json.dumps({"keys": published}).encode())


def number(value: int) -> str:
    content = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def test_a_key_signs_as_its_kind_does_and_no_other_way() -> None:
    every = keys_of(*(signer(each).published() for each in ("RS256", "ES256", "EdDSA")))

    found = {
        (name, algorithm)
        for name in ("rs256", "es256", "eddsa")
        for algorithm in ("RS256", "PS256", "ES256", "EdDSA", "HS256", "none", "ES384")
        if every.find(Claim(algorithm, name)) is not None
    }
    assert found == {
        ("rs256", "RS256"),
        ("rs256", "PS256"),
        ("es256", "ES256"),
        ("eddsa", "EdDSA"),
    }


def test_a_key_that_is_for_one_way_is_for_no_other() -> None:
    keys = keys_of(signer("RS256").published(alg="PS256"))

    assert keys.find(Claim("RS256", "rs256")) is None
    assert keys.find(Claim("PS256", "rs256")) is not None


def test_without_a_name_only_the_only_one_is_meant() -> None:
    one, other = signer("ES256", "one").published(), signer("ES256", "two").published()

    assert keys_of(one).find(Claim("ES256", None)) is not None
    assert keys_of(one, other).find(Claim("ES256", None)) is None
    assert keys_of(one, other).find(Claim("ES256", "")) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"alg": "RSA-OAEP"},
        {"kty": "oct", "k": "eA"},
        {"kty": 7},
        {"kid": 7},
        {"n": "?"},
        {"n": 7},
        {"n": number((1 << 1023) + 1)},
        {"n": number((1 << 20_000) + 1)},
        {"e": number((1 << 64) + 1)},
        {"crv": "P-521"},
        {"crv": ["P-256"]},
        {"crv": {}},
    ],
    ids=" ".join,
)
def test_a_key_that_cannot_be_used_is_left_out(changes: dict[str, Any]) -> None:
    odd = signer("RS256").published(**changes)

    assert len(keys_of(odd, signer().published())) == 1
    with pytest.raises(KeysError, match="no key that"):
        keys_of(odd)


def test_a_private_key_that_is_published_is_read_as_the_public_one() -> None:
    """Whoever publishes that has other worries, but we hold nothing that signs."""
    private = signer("RS256").private.private_numbers()
    written = signer("RS256").published(d=number(private.d), p=number(private.p))
    key = keys_of(written).find(Claim("RS256", "rs256"))

    assert key is not None
    assert not hasattr(key.value, "sign")


def test_so_many_keys_are_read_and_no_more() -> None:
    key = signer().published()

    assert len(keys_of(*([key] * MAX_KEYS))) == MAX_KEYS
    with pytest.raises(KeysError, match="101 keys"):
        keys_of(*([key] * (MAX_KEYS + 1)))


def test_an_issuer_describes_itself_where_both_standards_have_it() -> None:
    origin = "https://login.example.com"

    assert places(f"{origin}/realms/team") == (
        f"{origin}/.well-known/oauth-authorization-server/realms/team",
        f"{origin}/realms/team/.well-known/openid-configuration",
        f"{origin}/.well-known/openid-configuration/realms/team",
    )
    assert places(f"{origin}/") == places(origin)
    assert len(places(origin)) == 2
