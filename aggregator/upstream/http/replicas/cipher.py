"""Seals that every process with the same keys can make and break, and nobody else can read.

For each purpose a key of its own is derived, so that what was sealed for one thing is worth
nothing for another. The first of several keys seals; all of them open, so that one can take the
place of another without anybody losing a session.
"""

import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from aggregator.upstream.seal import ForeignStateError

VERSION = b"\x01"
"""What everything sealed begins with: another form is another number."""
KEY_BYTES = 32
NONCE_BYTES = 12


class Keys(Protocol):
    """Where the keys are."""

    @property
    def known(self) -> Sequence[bytes]:
        """The keys: the first to seal with, and all to open with."""
        ...


class SharedCipher:
    """Closes with keys that other processes have too."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def close(self, purpose: str, body: bytes, /) -> bytes:
        """Return a body as only whoever has the keys can make or read it."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = _cipher(self._keys.known[0], purpose).encrypt(nonce, body, VERSION)
        return VERSION + nonce + sealed

    def open(self, purpose: str, closed: bytes, /) -> bytes:
        """Return what was closed for a purpose.

        Raises:
            ForeignStateError: It was closed by somebody else, or for something else.
        """
        version, rest = closed[: len(VERSION)], closed[len(VERSION) :]
        nonce, sealed = rest[:NONCE_BYTES], rest[NONCE_BYTES:]
        if version != VERSION or len(nonce) < NONCE_BYTES:
            raise ForeignStateError
        for key in self._keys.known:
            try:
                return _cipher(key, purpose).decrypt(nonce, sealed, VERSION)
            except InvalidTag:
                continue
        raise ForeignStateError


@lru_cache(maxsize=64)
def _cipher(key: bytes, purpose: str) -> AESGCM:
    info = f"mcp-tool-aggregator {purpose}".encode()
    return AESGCM(HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(key))
