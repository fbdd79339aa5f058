"""Talk to an aggregator that serves over HTTP already."""

import json
from collections.abc import Iterable, Iterator
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.peer import PATIENCE, PROTOCOL, Json, Peer
from aggregator.memory import state_path

TOKEN_VARIABLE = "AGGREGATOR_TOKEN"  # noqa: S105 - its name
DATA = b"data:"


class Remote(Peer):
    """An aggregator behind an address."""

    def __init__(self, url: str, environment: Environment) -> None:
        super().__init__()
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandError(
                "`--url` must begin with http:// or https://", status=ExitStatus.USAGE
            )
        self._url = url
        self._place = f"{parts.scheme}://{parts.hostname}:{parts.port or ''}".rstrip(":")
        self._token = _token(environment, local=parts.hostname in ("127.0.0.1", "localhost", "::1"))
        # A token is for the one it is meant for, and no proxy in between.
        self._opener = build_opener(ProxyHandler({}))

    def _exchange(self, request: Json) -> Iterator[Json]:
        params = request["params"]
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            "Mcp-Method": request["method"],
        }
        if name := params.get("name") or params.get("uri"):
            headers["Mcp-Name"] = name
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        sent = Request(self._url, json.dumps(request).encode(), headers)  # noqa: S310 - checked
        try:
            with self._opener.open(sent, timeout=PATIENCE) as answer:
                yield from _messages(answer, answer.headers.get_content_type())
        except HTTPError as error:
            raise self._refused(error) from None
        except (OSError, HTTPException, ValueError) as error:
            raise CommandError(
                f"`{self._place}` did not answer: {_reason(error)}",
                "`aggregator serve --http PORT` says its address when it starts",
            ) from None

    def _refused(self, error: HTTPError) -> CommandError:
        with error:
            token = f"Set `{TOKEN_VARIABLE}` to its token"
            hints = {401: token, 403: token, 404: f"An aggregator serves at `{self._place}/mcp`"}
            said = f"`{self._place}` refused: {error.code} {error.reason}"
            return CommandError(said, hints.get(error.code))


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    return cause.strerror.lower() if isinstance(cause, OSError) and cause.strerror else str(cause)


def _messages(lines: Iterable[bytes], kind: str) -> Iterator[Json]:
    """Yield the messages of an answer, whether it is one or a stream of events."""
    if kind != "text/event-stream":
        yield json.loads(b"".join(lines))
        return
    for line in lines:
        if line.startswith(DATA) and line[len(DATA) :].strip():
            yield json.loads(line[len(DATA) :])


def _token(environment: Environment, *, local: bool) -> str | None:
    """Return the token to show: the one that is set, or our own for a server of our own."""
    if given := environment.variables.get(TOKEN_VARIABLE):
        return given
    state = state_path(environment.variables, environment.platform)
    if not local or state is None:
        return None
    try:
        return state.with_name("http-token").read_text(encoding="utf-8").strip()
    except OSError:
        return None
