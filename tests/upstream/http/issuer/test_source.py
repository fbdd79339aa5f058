"""Where the keys of an issuer may be: nowhere that somebody else could answer for it."""

import pytest

from aggregator.upstream.http.issuer.keyset import KeysError
from aggregator.upstream.http.issuer.source import keys_in

REMOTE, LOCAL = "https://login.example/team", "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    ("issuer", "place"),
    [
        (REMOTE, "https://login.example/team/keys"),
        (REMOTE, "https://keys.example/keys"),
        (LOCAL, "http://127.0.0.1:9000/keys"),
        (LOCAL, "http://localhost:9001/keys"),
        (LOCAL, "https://keys.example/keys"),
    ],
)
def test_keys_are_encrypted_on_the_way_or_on_this_machine(issuer: str, place: str) -> None:
    assert keys_in({"jwks_uri": place}, issuer) == place


@pytest.mark.parametrize(
    ("issuer", "place", "why"),
    [
        (REMOTE, "http://login.example/team/keys", "is not encrypted"),
        (REMOTE, "http://127.0.0.1/keys", "is on this machine"),
        (REMOTE, "https://127.0.0.1/keys", "is on this machine"),
        (REMOTE, "https://login.example@evil.example/keys", "has a name before its host"),
        ("https://127.0.0.1:9000", "http://127.0.0.1:9001/keys", "is not encrypted"),
        (LOCAL, "http://keys.example/keys", "is not encrypted, and not on this machine"),
        (LOCAL, "http://10.0.0.1/keys", "is not encrypted, and not on this machine"),
        (REMOTE, "ftp://login.example/keys", "does not say where"),
    ],
)
def test_keys_that_others_could_forge_are_refused(issuer: str, place: str, why: str) -> None:
    with pytest.raises(KeysError, match=why):
        keys_in({"jwks_uri": place}, issuer)
