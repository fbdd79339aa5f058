"""What a gateway before us says of a client, believed only if it comes from one that was named.

Anybody can send these headers. A gateway appends the address that it was asked from, so the last
one that is not a gateway's own is the client's; what stands before it the client may have written.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from aggregator.upstream.caller import PEER
from aggregator.upstream.http.binding import BindingError

ASKED_FOR = "aggregator.asked-for"
"""Where in the scope of a request the host stands that a gateway says it was sent to."""
MAX_HOPS = 32
"""Addresses of one request that are looked at."""
MAX_HOP = 100
"""Characters of an address, with its port and some room."""

Network = IPv4Network | IPv6Network
Headers = list[tuple[bytes, bytes]]

_PAIR = re.compile(
    r'([a-z]{1,16})[ \t]{0,4}=[ \t]{0,4}(?:"([^"]{0,300})"|([^\s;,"]{1,300}))',
    re.IGNORECASE | re.ASCII,
)
"""Each piece of it has a bound: whoever sends what fits nowhere is not to be looked at for long."""
_HOST = re.compile(r"[A-Za-z0-9.:\[\]_-]{1,300}", re.ASCII)


class Said(NamedTuple):
    """What is said of a request by those who passed it on."""

    hops: tuple[str, ...] = ()
    """The addresses it came from, the client's own first."""
    scheme: str = ""
    host: str = ""


def parse_proxies(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read the addresses of gateways, several in a text with commas between.

    Raises:
        BindingError: One is neither an address nor a network.
    """
    found: list[Network] = []
    for text in (each.strip() for written in texts for each in written.split(",")):
        try:
            found.append(ip_network(text))
        except ValueError as error:
            raise BindingError(
                f"`{text}` is neither an address nor a network: {error}",
                "Write where the gateway's requests come from, as `--behind-proxy 10.0.0.0/24`",
            ) from None
    return tuple(found)


class Behind:
    """An application as it is asked by the clients of gateways."""

    def __init__(self, app: ASGIApp, proxies: tuple[Network, ...]) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on as what it was when it came to the gateway."""
        peer = scope.get("client")
        if scope["type"] == "http" and peer and self._is_ours(peer[0]):
            scope = self._as_asked(scope, peer)
        await self._app(scope, receive, send)

    def _as_asked(self, scope: Scope, peer: tuple[str, int]) -> Scope:
        headers: Headers = scope["headers"]
        said, other = _in_common_form(headers), _in_standard_form(headers)
        client = self._client(said.hops)
        if said.hops and other.hops and client != self._client(other.hops):
            # The gateway writes one of the two, and the client has written the other.
            return {**scope, PEER: peer}
        said = said if said.hops else other
        asked: Scope = {**scope, PEER: peer}
        if (found := self._client(said.hops)) is not None:
            asked["client"] = found, 0
        if said.scheme in ("http", "https"):
            asked["scheme"] = said.scheme
        if said.host:
            # Not in place of `Host`: a gateway may pass on what its client has written there.
            asked[ASKED_FOR] = said.host
        return asked

    def _client(self, hops: tuple[str, ...]) -> str | None:
        """Return the last address that is not a gateway's; nothing if what it is cannot be read."""
        for hop in reversed(hops[-MAX_HOPS:]):
            address = _address(hop)
            if address is None or not self._is_ours(address):
                return address
        return None

    def _is_ours(self, text: str) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        plain = getattr(address, "ipv4_mapped", None) or address
        return any(plain in each for each in self._proxies if each.version == plain.version)


def _in_common_form(headers: Headers) -> Said:
    """Read `X-Forwarded-For` and its kind."""
    hops = tuple(each for text in _all(headers, b"x-forwarded-for") for each in text.split(","))
    scheme = _only(_all(headers, b"x-forwarded-proto")).lower()
    return Said(hops, scheme, _host(_only(_all(headers, b"x-forwarded-host"))))


def _in_standard_form(headers: Headers) -> Said:
    """Read `Forwarded`, as RFC 7239 has it; the last element is the gateway's next to us."""
    elements = [each for text in _all(headers, b"forwarded") for each in text.split(",")]
    read = [
        {key.lower(): quoted or plain for key, quoted, plain in _PAIR.findall(each)}
        for each in elements[-MAX_HOPS:]
    ]
    last = read[-1] if read else {}
    hops = tuple(each.get("for", "") for each in read)
    return Said(hops, last.get("proto", "").lower(), _host(last.get("host", "")))


def _address(hop: str) -> str | None:
    """Return an address without its port; nothing for what is none, such as `unknown`.

    Nor is a zone a part of it, in which anything may stand.
    """
    if len(hop) > MAX_HOP:
        return None
    text = hop.strip().strip('"').partition("%")[0]
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ip_address(text))
    except ValueError:
        return None


def _host(text: str) -> str:
    return text if _HOST.fullmatch(text) else ""


def _only(values: list[str]) -> str:
    """Return what the gateway next to us says, if that is one thing."""
    said = [each.strip() for text in values for each in text.split(",")]
    return said[-1] if said else ""


def _all(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]
