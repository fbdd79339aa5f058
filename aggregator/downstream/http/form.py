"""The form of messages to one address: what is the same in each is written and checked once."""

import re
from collections.abc import Iterable, Mapping

import h11
import httpx2

LENGTH = frozenset(("content-length",))


def _name(raw: bytes) -> str:
    return raw.decode("latin-1").lower()


class Form:
    """What messages to one address have in common, written down once."""

    def __init__(self, like: httpx2.Request, varying: frozenset[str] = LENGTH) -> None:
        raw = [line for line in like.headers.raw if _name(line[0]) not in varying]
        self._names = frozenset(_name(name) for name, _ in raw)
        target = like.url.raw_path
        # What is the same each time is looked at once, and stands for all in the state of HTTP.
        headers = [*raw, (b"content-length", b"0")]
        try:
            self.event = h11.Request(method="POST", target=target, headers=headers)
        except h11.LocalProtocolError as error:
            raise httpx2.LocalProtocolError(str(error)) from error
        lines = b"".join(b"%b: %b\r\n" % line for line in raw)
        self._head = b"POST %b HTTP/1.1\r\n%b" % (target, lines)
        self._last: Mapping[str, str] = {}
        """What the last message had besides; most often the next one has the same."""
        self._last_lines = b""

    def fits(self, headers: Iterable[str]) -> bool:
        """Whether none of these headers is another than what is said each time."""
        return self._names.isdisjoint(map(str.lower, headers))

    def written(self, headers: Mapping[str, str], content: bytes) -> bytes:
        """Return a message in one piece, as it goes over the wire.

        Raises:
            LocalProtocolError: A header is none, or would end before its time.
        """
        if headers != self._last:
            self._last_lines = _checked(headers)
            self._last = dict(headers)
        lines = (self._head, self._last_lines, len(content), content)
        return b"%b%bcontent-length: %d\r\n\r\n%b" % lines


def _checked(headers: Mapping[str, str]) -> bytes:
    """Return headers as they go over the wire.

    Raises:
        LocalProtocolError: One is none, or would end before its time.
    """
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if _LINES.fullmatch(lines) is None or lines.count("\r\n") != len(headers):
        raise httpx2.LocalProtocolError("a header cannot be sent as it is")
    return lines.encode("ascii")


_LINES = re.compile(r"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t -~]*\r\n)*", re.ASCII)
