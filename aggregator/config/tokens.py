"""By whom it is counted what definitions cost a model."""

from dataclasses import field
from hashlib import sha256
from typing import Literal

from aggregator.basics.frozen import frozen

PACKAGES = ("tiktoken", "tokenizers")
"""The packages whose tokenizers are known."""
ENDINGS = {"count_tokens": "messages", "input_tokens": "responses"}
"""What the address of a vendor's counter ends with, and whose requests it takes."""

Package = Literal["tiktoken", "tokenizers"]


@frozen
class Tokenizer:
    """A tokenizer on this machine."""

    package: Package
    name: str
    """An encoding of the one package, a file for the other."""

    @property
    def mark(self) -> str:
        """What tells it from others that count otherwise."""
        return _mark(self.package, self.name)


@frozen
class TokenCounter:
    """A vendor's counter, reached over HTTP."""

    url: str
    model: str
    key: str = field(default="", repr=False)

    @property
    def mark(self) -> str:
        """What tells it from others that count otherwise."""
        return _mark(self.url, self.model)


def _mark(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:12]
