"""The keys that an issuer signs with, as it publishes them, and what is signed by one of them.

Only this room knows the library that looks at signatures, which takes its time to load: it is
first called in a thread, with keys that have just come.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from aggregator.basics.json import as_object, is_array, is_plain_object, items
from aggregator.upstream.http.issuer.reading import LEEWAY, Claim

MAX_KEYS = 100
"""Keys that an issuer may publish; few have more than three."""
RSA_BITS = (2048, 8192)
MAX_EXPONENT = 1 << 32
"""With a larger one, a look at a signature takes as long as whoever chose it likes."""

_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("kty", "n", "e"),
    "EC": ("kty", "crv", "x", "y"),
    "OKP": ("kty", "crv", "x"),
}
"""What there is of a public key; the rest would be nobody's business."""
_SIGNS: Mapping[tuple[str, object], tuple[str, ...]] = {
    ("RSA", None): ("RS256", "PS256"),
    ("EC", "P-256"): ("ES256",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
"""How a key of each kind, and on each curve, signs."""


class KeysError(Exception):
    """There are no keys to be had, in words that fit behind a colon."""


class Key(NamedTuple):
    """One that is published."""

    name: str | None
    algorithm: str
    value: Any
    """As the library has it."""


class KeySet:
    """All that an issuer signs with now."""

    def __init__(self, keys: tuple[Key, ...]) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, claim: Claim) -> Key | None:
        """Return the key that a token is said to be signed with; without a name, the only one."""
        fitting = [key for key in self._keys if key.algorithm == claim.algorithm]
        if claim.key is None:
            return fitting[0] if len(fitting) == 1 else None
        return next((key for key in fitting if key.name == claim.key), None)


def verified(token: str, key: Key, issuer: str, audiences: tuple[str, ...]) -> dict[str, Any]:
    """Return what a token says, if it is signed with a key and all else is in order.

    Raises:
        ValueError: It is not.
    """
    import jwt  # noqa: PLC0415 - see above

    try:
        return jwt.decode(
            token,
            key.value,
            algorithms=[key.algorithm],
            audience=list(audiences),
            issuer=issuer,
            leeway=LEEWAY,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
    except (jwt.PyJWTError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(str(type(error).__name__)) from error


def read_keys(document: bytes) -> KeySet:
    """Return the keys in a document; what cannot be used of them is left out.

    Raises:
        KeysError: It is none, or has too many, or none that can be used.
    """
    try:
        data: object = json.loads(document)
    except (ValueError, RecursionError):
        data = None
    if not is_plain_object(data) or not is_array(data.get("keys")):
        raise KeysError("what it publishes as its keys is no set of keys")
    written = items(data["keys"])
    if len(written) > MAX_KEYS:
        raise KeysError(f"it publishes {len(written):,} keys, and {MAX_KEYS} are read at the most")
    keys = tuple(key for each in written for key in _read(as_object(each)))
    if not keys:
        raise KeysError("it publishes no key that tokens for us could be signed with")
    return KeySet(keys)


def _read(written: Mapping[str, Any]) -> tuple[Key, ...]:
    """Return a key once for each way that it signs."""
    kind, name, curve = (written.get(each) for each in ("kty", "kid", "crv"))
    if not (isinstance(kind, str) and isinstance(name, str | None)):
        return ()
    ways = _SIGNS.get((kind, curve), ()) if isinstance(curve, str | None) else ()
    ways = tuple(each for each in ways if written.get("alg") in (None, each))
    if not ways or not _is_for_signing(written):
        return ()
    value = _loaded(kind, {each: written.get(each) for each in _MEMBERS[kind]})
    return () if value is None else tuple(Key(name, each, value) for each in ways)


def _is_for_signing(written: Mapping[str, Any]) -> bool:
    operations = written.get("key_ops")
    is_said = operations is None or "verify" in items(operations)
    return is_said and written.get("use") in (None, "sig")


def _loaded(kind: str, members: Mapping[str, object]) -> object:
    """Return a key as the library has it, or nothing if it is none."""
    import jwt  # noqa: PLC0415 - see above
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey  # noqa: PLC0415
    from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm  # noqa: PLC0415

    kinds = {"RSA": RSAAlgorithm, "EC": ECAlgorithm, "OKP": OKPAlgorithm}
    if not all(isinstance(each, str) and len(each) <= RSA_BITS[1] for each in members.values()):
        return None
    try:
        value = kinds[kind].from_jwk(json.dumps(members))
    except (jwt.PyJWTError, UnsupportedAlgorithm, ValueError, TypeError):
        return None
    if isinstance(value, RSAPublicKey):
        is_sound = RSA_BITS[0] <= value.key_size <= RSA_BITS[1]
        return value if is_sound and value.public_numbers().e <= MAX_EXPONENT else None
    return value
