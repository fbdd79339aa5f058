"""Durations, sizes and addresses as people write them."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address
from urllib.parse import SplitResult, urlsplit

_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)

_SPACE = re.compile(r"[\s\x00-\x1f\x7f]")
_AUTHORITY = re.compile(r"[^/]*//([^/?#]*)")
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+){3}")
_HTTP = ("http", "https")
PROXIES = (*_HTTP, "socks5", "socks5h")
"""What the address of a proxy may begin with."""
_STORES = frozenset(("redis", "rediss", "valkey", "valkeys"))
_SECONDS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_BYTES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}


def seconds(text: str) -> float:
    """Return the seconds in `30s`, `500ms`, `2m`, `1h`, `1d` or a plain number of seconds.

    Raises:
        ValueError: It is not a duration.
    """
    return _quantity(text, _SECONDS)


def size_in_bytes(text: str) -> int:
    """Return the bytes in `16MiB`, `64 KiB` or a plain number of bytes.

    Raises:
        ValueError: It is not a size.
    """
    return int(_quantity(text, _BYTES))


def is_http(text: str) -> bool:
    """Whether a text is an address that is reached over HTTP."""
    return address_fault(text) is None


def address_fault(text: str, schemes: Sequence[str] = _HTTP) -> str | None:
    """Say what keeps a text from being an address that can be reached, if anything does.

    It is not quoted, as there may be a secret in it.
    """
    *others, last = (f"{scheme}://" for scheme in schemes)
    if not text.lstrip().lower().startswith((*others, last)):
        return f"must begin with {' or '.join(filter(None, (', '.join(others), last)))}"
    if blank := _SPACE.search(text):
        return f"has a {'space' if blank[0].isspace() else 'control character'} in it"
    if (parts := parted(text)) is None:
        return _host_fault(text)
    if not parts.hostname:
        return "names no host"
    if fault := _name_fault(parts.hostname):
        return fault
    try:
        is_port = parts.port != 0
    except ValueError:
        is_port = False
    return None if is_port else "must have a number from 1 to 65535 as its port"


def header_fault(value: str) -> str | None:
    """Say what keeps a text from being the value of a header, if anything does."""
    if "\n" in value or "\r" in value:
        return "has a line break in it"
    if value != value.strip():
        return "begins or ends with a space"
    if strange := next((each for each in value if not each.isascii()), None):
        return f"has `{strange}` in it, which no header may have"
    return None if all(map(_is_sent, value)) else "has a control character in it"


def _is_sent(character: str) -> bool:
    return character.isprintable() or character == "\t"


def parted(text: str) -> SplitResult | None:
    """Return an address in its parts, if it has any: whoever checks it says what is wrong."""
    try:
        return urlsplit(text)
    except ValueError:
        return None


def _host_fault(text: str) -> str:
    """Say why an address cannot even be taken apart."""
    found = _AUTHORITY.match(text)
    host = found[1] if found else text
    if host.count("[") != host.count("]"):
        return "has a `[` or a `]` without the other"
    if "[" in host:
        return "has something else than an IPv6 address in `[ ]`"
    return "has a character in its host that no host may have"


def _name_fault(host: str) -> str | None:
    """Say why a host cannot be asked for by its name, or its number."""
    if _NUMBERS.fullmatch(host):
        return None if _is_ipv4(host) else "has four numbers as its host that are no IPv4 address"
    if host.isascii() or _is_international(host):
        return None
    return (
        "has a host that no host may be called; "
        "check how it is spelt, or write it in ASCII, as `xn--…`"
    )


def _is_ipv4(host: str) -> bool:
    try:
        IPv4Address(host)
    except ValueError:
        return False
    return True


def _is_international(host: str) -> bool:
    """Return whether a host has a form in ASCII, by which it is asked for."""
    import idna  # noqa: PLC0415 - hardly a file has such a host

    try:
        idna.encode(host)
    except idna.IDNAError:
        return False
    return True


def is_store(text: str) -> bool:
    """Whether a text is the address of a Redis or Valkey."""
    try:
        # A port that is none is found out where it is asked for.
        scheme, port = urlsplit(text).scheme, urlsplit(text).port
    except ValueError:
        return False
    return scheme in _STORES and port != 0 and not _SPACE.search(text)


def _quantity(text: str, units: dict[str, float] | dict[str, int]) -> float:
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2].lower() not in units:
        raise ValueError(text)
    # Rounded, so that 400ms is 0.4 and not a hair beside it.
    return round(float(match[1]) * units[match[2].lower()], 6)
