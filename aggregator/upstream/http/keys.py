"""Tokens with names: several at a time, each for one person or program, some with a profile.

Of each only a digest is kept, in a file that only its owner can read. They are random and long, so
that a digest is enough to know one by, and of no use to whoever reads it.
"""

import hmac
import json
import logging
import os
import secrets
import stat
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from aggregator.basics.files import alone, in_words, look_at, replace_file
from aggregator.basics.json import as_object, items
from aggregator.upstream.http.binding import BindingError
from aggregator.upstream.identity import Identity

logger = logging.getLogger(__name__)

TOKEN_BYTES = 32
MARK = "agg_"
"""What tokens begin with, so that whoever finds one knows what it opens."""
MAX_FILE_BYTES = 1 << 20
MAX_TOKENS = 1000
"""Tokens for one configuration: each request is held against all of them."""


class Token(NamedTuple):
    """What is kept of one token."""

    name: str
    """Whom it was made for."""
    digest: str
    profile: str | None = None
    """What whoever has it sees; nothing stands for everything."""
    made: float = 0.0
    expires: float | None = None
    """When it opens nothing any more, on the clock of `time.time`."""

    def opens_at(self, moment: float) -> bool:
        """Whether it opens something at a moment."""
        return self.expires is None or moment < self.expires

    @property
    def identity(self) -> Identity:
        """Who has it."""
        return Identity(self.name, self.digest, self.digest, self.profile)


class Ring:
    """The file of all tokens of a person, as far as they are for one configuration."""

    def __init__(self, path: Path, config: str) -> None:
        self.path = path
        self.config = config
        """The file that they are for."""

    def tokens(self) -> tuple[Token, ...]:
        """Return the tokens there are.

        Raises:
            BindingError: The file cannot be read, or is not a secret.
        """
        return self._of(self._read())

    def add(self, name: str, profile: str | None, expires: float | None) -> str:
        """Make a token, and return what nobody can be told again.

        Raises:
            BindingError: There is one of this name, there are too many, or it cannot be kept.
        """
        token = MARK + secrets.token_urlsafe(TOKEN_BYTES)
        made = Token(name, digest_of(token), profile, time.time(), expires)
        with self._changing() as held:
            known = self._of(held)
            if any(each.name == name for each in known):
                raise BindingError(
                    f"there is a token `{name}` already",
                    f"`aggregator token revoke {name}` ends it; or choose another name",
                )
            if len(known) >= MAX_TOKENS:
                raise BindingError(f"there are {MAX_TOKENS:,} tokens already", "Revoke some first")
            held[self.config] = [each._asdict() for each in (*known, made)]
        return token

    def revoke(self, name: str) -> bool:
        """Forget a token; say whether there was one of this name.

        Raises:
            BindingError: The file cannot be read or written.
        """
        with self._changing() as held:
            known = self._of(held)
            left = [each._asdict() for each in known if each.name != name]
            held[self.config] = left
        return len(left) < len(known)

    @contextmanager
    def _changing(self) -> Generator[dict[str, Any]]:
        """Write whatever has become of the file after the block, with nobody else in between.

        Raises:
            BindingError: It cannot be written there.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with alone(self.path):
                held = self._read()
                yield held
                content = json.dumps({key: each for key, each in held.items() if each}, indent=1)
                replace_file(self.path, f"{content}\n".encode())
        except OSError as error:
            raise BindingError(
                f"tokens cannot be kept in `{self.path.parent}`: {in_words(error)}",
                "Set XDG_STATE_HOME to a directory that can be written to",
            ) from error

    def _read(self) -> dict[str, Any]:
        try:
            status = self.path.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
                raise BindingError(f"`{self.path}` is no file of tokens", "Move it away")
            if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
                hint = f"`chmod 600 {self.path}`, if nobody else has written there"
                raise BindingError(f"`{self.path}` can be read by others", hint)
            return {**as_object(json.loads(self.path.read_bytes()))}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise BindingError(f"`{self.path}` cannot be read: {in_words(error)}") from error
        except ValueError as error:
            raise BindingError(f"`{self.path}` is no file of tokens", "Move it away") from error

    def _of(self, held: dict[str, Any]) -> tuple[Token, ...]:
        return tuple(map(_token, items(held.get(self.config))))


def _token(value: object) -> Token:
    """Read what was written of a token; of one that is written otherwise, nothing is opened.

    Raises:
        BindingError: It is no token.
    """
    read = as_object(value)
    name, digest, profile = (read.get(key) for key in ("name", "digest", "profile"))
    made, expires = read.get("made"), read.get("expires")
    is_said = isinstance(profile, str | None) and isinstance(expires, int | float | None)
    if is_said and isinstance(name, str) and isinstance(digest, str):
        return Token(name, digest, profile, made if isinstance(made, float) else 0.0, expires)
    raise BindingError("the file of tokens has something in it that is none", "Move it away")


class Keys:
    """What opens the door besides its own token, as the file has it now."""

    def __init__(self, ring: Ring | None, *, clock: Callable[[], float] = time.time) -> None:
        self._ring = ring
        self._clock = clock
        self._tokens: tuple[Token, ...] = ()
        self._refused = set[str]()
        self.is_sound = True
        """Whether the file could be read: what is missing in it is missing, then."""
        self._stamp: tuple[int, ...] = ()
        self.look()

    def look(self) -> None:
        """Read the file again if it is another; what cannot be read opens nothing."""
        if self._ring is None:
            return
        stamp = look_at(self._ring.path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._tokens = self._ring.tokens()
            self.is_sound = True
        except BindingError as error:
            self._tokens, self.is_sound = (), False
            logger.error("%s: no token but the door's own is accepted", error)  # noqa: TRY400 - said whole

    @property
    def place(self) -> tuple[str, str] | None:
        """Where they are kept and for which configuration, for whoever is to open in our place."""
        return self._ring and (str(self._ring.path), self._ring.config)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Those that the file has, whether or not they open something."""
        return self._tokens

    @property
    def valid(self) -> frozenset[str]:
        """The digests of those that open something now."""
        now = self._clock()
        opening = frozenset(each.digest for each in self._tokens if each.opens_at(now))
        return opening - self._refused if self._refused else opening

    def refuse(self, digests: Iterable[str]) -> None:
        """Let nobody in by these tokens, whatever the file says: they were revoked elsewhere."""
        self._refused |= {each.digest for each in self._tokens} & {*digests}

    def known(self, presented: str) -> Token | None:
        """Return the token that was shown, if it opens something now.

        It is held against each of them, so that the time it takes says nothing of any.
        """
        if not self._tokens or not presented:
            return None
        digest, found = digest_of(presented), None
        for each in self._tokens:
            if hmac.compare_digest(each.digest.encode(), digest.encode()):
                found = each
        if found is None or found.digest in self._refused:
            return None
        return found if found.opens_at(self._clock()) else None


def digest_of(token: str) -> str:
    """Return what is kept of a token."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()
