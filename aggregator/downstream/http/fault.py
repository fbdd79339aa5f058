"""How an HTTP request can fail, in words, and whether the server may have acted on it."""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx2

from aggregator.basics.frozen import frozen
from aggregator.downstream.failure import first_line
from aggregator.downstream.http.reading import TooMuchError
from aggregator.downstream.transport import Undelivered, UndeliveredError

LONGEST_REST = 300.0
"""Seconds a server may ask to be left alone and be believed."""

MAX_NAMED = 5
"""Headers that are named in one sentence."""

FAILURES = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, EOFError)
"""What the HTTP client raises for the sake of the world."""

_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
    httpx2.InvalidURL,
)
"""Failures before the first byte of a request has left."""

_PORTS = {"http": 80, "https": 443}


@frozen
class Meaning:
    """How a status reads to whoever has to act on it."""

    words: str
    may_have_run: bool = False
    is_barred: bool = False


_MEANINGS = {
    HTTPStatus.NOT_FOUND: Meaning("there is nothing at its `url` (404)"),
    HTTPStatus.METHOD_NOT_ALLOWED: Meaning(
        "its `url` does not take messages (405); an old SSE server needs `type: sse`"
    ),
    HTTPStatus.TOO_MANY_REQUESTS: Meaning("it gets too many requests (429)"),
    HTTPStatus.SERVICE_UNAVAILABLE: Meaning("it is unavailable for now (503)"),
}


class SessionExpiredError(Exception):
    """The server no longer knows the session; it has not acted on the request."""


class StrayError(UndeliveredError):
    """What came was the answer to another request; its own may follow, so that nothing else can."""


def broken(reason: str) -> UndeliveredError:
    """Return the fault of a request whose answer could not be had in full."""
    return UndeliveredError(Undelivered(reason))


def turned_away(reason: str) -> UndeliveredError:
    """Return the fault of a request that the server has not acted on."""
    return UndeliveredError(Undelivered(reason, may_have_run=False))


def of_error(
    error: BaseException, url: httpx2.URL, proxy: httpx2.URL | None = None
) -> UndeliveredError:
    """Put what the HTTP client raised into words, on the way to this address."""
    if isinstance(error, _UNSENT):
        who = "it" if proxy is None else "its proxy"
        if (why := _unconnected(error, proxy or url)) is not None:
            return _unreachable(f"{who} cannot be reached: {why}")
        return _unreachable(f"it cannot be reached: {first_line(error)}")
    if isinstance(error, httpx2.SSEError | TooMuchError):
        return broken(f"its answer could not be read: {first_line(error)}")
    return broken("the connection broke before the answer was complete")


def of_status(
    status: int, headers: Mapping[str, str], given: Sequence[str] = ()
) -> UndeliveredError:
    """Put a status that is not success into words; `given` are the headers of servers.yaml."""
    meaning = _meaning(status, headers, given)
    rest = retry_after(headers.get("retry-after"), datetime.now(UTC))
    asks = f"; it asks to wait {rest:g} s" if rest else ""
    return UndeliveredError(
        Undelivered(
            f"{meaning.words}{asks}",
            may_have_run=meaning.may_have_run,
            retry_after=rest,
            is_barred=meaning.is_barred,
        )
    )


def retry_after(value: str | None, now: datetime) -> float:
    """Return for how many seconds a server asks to be left alone: a number, or a date."""
    if value is None:
        return 0.0
    if re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        return min(float(value), LONGEST_REST)
    try:
        wait = (parsedate_to_datetime(value).astimezone(UTC) - now).total_seconds()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(round(wait), 0.0), LONGEST_REST)


def _meaning(status: int, headers: Mapping[str, str], given: Sequence[str]) -> Meaning:
    if status == HTTPStatus.FORBIDDEN and "insufficient_scope" in headers.get(
        "www-authenticate", ""
    ):
        # The credentials are good, only not for this one tool.
        return Meaning("auth required: its credentials do not extend to this tool (403)")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return Meaning(_unauthorized(status, given), is_barred=True)
    known = _MEANINGS.get(HTTPStatus(status)) if status in set(HTTPStatus) else None
    if known is not None:
        return known
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return Meaning(f"its `url` points to another place ({status}), which is not followed")
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return Meaning(f"it refused the request ({status})")
    return Meaning(f"it failed with status {status}", may_have_run=True)


def _unauthorized(status: int, given: Sequence[str]) -> str:
    """Tell credentials that are missing from those that are not accepted, without showing any."""
    if not given:
        return (
            f"auth required: it answered {status} and was given no credentials; "
            "name them in `headers` in servers.yaml"
        )
    named = ", ".join(f"`{name}`" for name in given[:MAX_NAMED])
    wrong = (
        "is wrong or has expired" if status == HTTPStatus.UNAUTHORIZED else "does not allow this"
    )
    return (
        f"auth required: it answered {status} although it was given {named}; "
        f"what `headers` in servers.yaml says there {wrong}"
    )


def _unconnected(error: BaseException, url: httpx2.URL) -> str | None:
    """Say why nobody could be connected to; of an address, only host and port are no secret."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    place = f"`{host}:{url.port or _PORTS.get(url.scheme, 80)}`"
    for cause in _causes(error):
        match cause:
            case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
                return f"no connection to {place} in time"
            case ConnectionRefusedError():
                return f"the connection to {place} was refused"
            case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "RECORD_LAYER_FAILURE") if (
                url.scheme == "https"
            ):
                return f"{place} does not speak TLS; the address may have to begin with http://"
            case socket.gaierror(errno=socket.EAI_AGAIN):
                return f"the host `{url.host}` cannot be looked up for now"
            case socket.gaierror():
                return f"the host `{url.host}` is not known"
            case _:
                pass
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it comes from; of several attempts, any may say it."""
    yield error
    attempts: Sequence[BaseException] = getattr(error, "exceptions", ())
    for cause in (*attempts, error.__cause__ or error.__context__):
        if cause is not None:
            yield from _causes(cause)


def _unreachable(reason: str) -> UndeliveredError:
    return UndeliveredError(Undelivered(reason, may_have_run=False, is_unreachable=True))
