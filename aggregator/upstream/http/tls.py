"""Our certificate: read from files, and read again when they change, without a connection lost."""

import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from aggregator.basics.files import in_words, look_at
from aggregator.upstream.http.binding import BindingError

logger = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, ...], ...]


class Certificate:
    """What we show to clients, so that they know whom they speak to."""

    def __init__(self, chain: Path, key: Path | None = None) -> None:
        """Read it.

        Raises:
            BindingError: It cannot be used.
        """
        self.chain = chain
        self.key = key
        self.context = _context()
        """How connections are secured from here on; those there are go on as they began."""
        self._stamp = self._stamped()
        self._load(self.context)

    @property
    def place(self) -> list[str | None]:
        """Where it is read from, for whoever is to serve in our place."""
        return [str(self.chain), self.key and str(self.key)]

    def look(self) -> None:
        """Read the files again if they have changed; what cannot be used changes nothing."""
        stamp = self._stamped()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            # One of two files may be the old one still: tried apart, not on what is in use.
            self._load(_context())
            self._load(self.context)
        except BindingError as error:
            logger.warning("the certificate stays the one before: %s", error)
        else:
            logger.info("the certificate was read again from `%s`", self.chain)

    def _load(self, context: ssl.SSLContext) -> None:
        for path in filter(None, (self.chain, self.key)):
            _check_readable(path)
        try:
            context.load_cert_chain(self.chain, self.key, _refusing(self.key or self.chain))
        except ssl.SSLError as error:
            raise _unusable(self.chain, self.key, error) from None

    def _stamped(self) -> _Stamp:
        return tuple(look_at(path) for path in (self.chain, self.key) if path is not None)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _refusing(path: Path) -> Callable[[], NoReturn]:
    """Return what is asked for a password: nobody is there who could type one."""

    def refuse() -> NoReturn:
        raise BindingError(
            f"the key in `{path}` is encrypted, and nobody is here to type its password",
            f"Write it without: `openssl pkey -in {path} -out plain.key`, readable by you alone",
        )

    return refuse


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        hint = "`--tls-cert` and `--tls-key` name files in PEM form"
        raise BindingError(f"`{path}` cannot be read: {in_words(error)}", hint) from error


def _unusable(chain: Path, key: Path | None, error: ssl.SSLError) -> BindingError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return BindingError(
            f"the certificate in `{chain}` and the key in `{key or chain}` do not belong together",
            "The first certificate in the file must be the server's own",
        )
    if key is None:
        return BindingError(
            f"`{chain}` does not hold a certificate and its key in PEM form",
            "Name the key with `--tls-key`",
        )
    return BindingError(
        f"`{chain}` is no certificate in PEM form, or `{key}` no key of one",
        "They begin with `-----BEGIN CERTIFICATE-----` and `-----BEGIN PRIVATE KEY-----`",
    )
