"""Talk to an aggregator that serves over HTTP already."""

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from aggregator.basics.files import in_words
from aggregator.basics.json import as_object, is_plain_object
from aggregator.basics.tasks import ID
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.parser.options import TOKEN_VARIABLE
from aggregator.cli.peer import PATIENCE, PROTOCOL, AnswerError, Json, OnProgress, Peer
from aggregator.config.quantities import address_fault
from aggregator.memory import state_path
from aggregator.records.inspection import SERVERS_URI

DATA = b"data:"
UNSUPPORTED_VERSION = -32022
"""The code of whoever does not speak the version that is asked for."""
_HOST = re.compile(r"[\w.-]+(:\d+)?(/[\w./-]*)?\Z", re.ASCII)
"""What lacks only the beginning of an address; nothing in it can be a secret."""
MAX_ERROR = 1 << 20
"""Bytes of an error that are read."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Remote(Peer):
    """An aggregator behind an address."""

    def __init__(self, url: str, token: str | None) -> None:
        super().__init__()
        self._url = url
        self._place = _place(url)
        self._token = token
        # A token is for the one it is meant for, and no proxy in between.
        self._opener = build_opener(ProxyHandler({}))
        self._is_aggregator = False

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: OnProgress | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> Json:
        """Return the answer to a request.

        Raises:
            AnswerError: The answer is an error of an aggregator.
            CommandError: There is no answer, or there is no aggregator.
        """
        try:
            return super().request(method, params, on_progress, capabilities)
        except AnswerError:
            if self._is_aggregator:
                raise
            raise self._is_other() from None

    def read(self, uri: str) -> Json:
        """Read a document; who has the one about servers is an aggregator."""
        try:
            document = super().read(uri)
        except (ValueError, LookupError, TypeError):
            raise self._is_other() from None
        self._is_aggregator = self._is_aggregator or uri == SERVERS_URI
        return document

    def _exchange(self, request: Json) -> Iterator[Json]:
        params = request["params"]
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            "Mcp-Method": request["method"],
        }
        if name := params.get("name") or params.get("uri") or params.get(ID):
            headers["Mcp-Name"] = name
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        sent = Request(self._url, json.dumps(request).encode(), headers)  # noqa: S310 - checked
        try:
            with self._opener.open(sent, timeout=PATIENCE) as answer:
                yield from _messages(answer, answer.headers.get_content_type())
        except HTTPError as error:
            yield self._answered(error, request["id"])
        except (OSError, HTTPException, ValueError) as error:
            raise CommandError(
                f"`{self._place}` did not answer: {_reason(error)}",
                "It speaks HTTP without encryption: write `http://`"
                if "wrong_version_number" in _reason(error)
                else "`aggregator serve --http PORT` prints its address when it starts",
                ExitStatus.UNREACHED,
            ) from None

    def _answered(self, refusal: HTTPError, number: object) -> Json:
        """Return the answer that a refusal is: `404` is also said of what a tool lacks.

        Raises:
            CommandError: It is none.
        """
        answer = _error_in(refusal)
        if answer is None:
            raise self._refused(refusal) from None
        if answer.get("id") == number:
            return answer
        if as_object(answer["error"]).get("code") == UNSUPPORTED_VERSION:
            raise self._is_older() from None
        if refusal.code == HTTPStatus.BAD_REQUEST:
            # Nothing was wrong with it, except for servers that want to shake hands first.
            raise self._is_other() from None
        raise self._refused(refusal) from None

    def _is_older(self) -> CommandError:
        return CommandError(
            f"`{self._place}` serves the handshake era alone, in which commands do not ask",
            "An aggregator does so with `surface: promote` or `hybrid`",
            ExitStatus.UNREACHED,
        )

    def _is_other(self) -> CommandError:
        return CommandError(
            f"`{self._place}` is an MCP server, but not an aggregator",
            "`aggregator add NAME URL` puts it behind one, and `aggregator call` calls its tools",
            ExitStatus.UNREACHED,
        )

    def _refused(self, error: HTTPError) -> CommandError:
        with error:
            token = f"Set `{TOKEN_VARIABLE}` to its token, or name its file with `--token-file`"
            if self._token:
                token = f"It does not accept the token that was sent. {token}"
            astray = f"An aggregator serves at `{self._place}/mcp`"
            # At the address itself there is a page, which can only be looked at.
            hints = {401: token, 403: token, 404: astray, 405: astray}
            said = f"`{self._place}` refused: {error.code} {error.reason}"
            return CommandError(said, hints.get(error.code), ExitStatus.UNREACHED)


def _error_in(response: HTTPError) -> Json | None:
    """Return the JSON-RPC error that a refusal holds, if it holds one."""
    if response.headers.get_content_type() != "application/json":
        return None
    try:
        message: object = json.loads(response.read(MAX_ERROR))
    except (OSError, HTTPException, ValueError):
        return None
    return message if is_plain_object(message) and "error" in message else None


def _place(url: str) -> str:
    """Return where an address leads, without what is secret in it.

    Raises:
        CommandError: It leads nowhere.
    """
    if fault := address_fault(url):
        hint = f"Did you mean `{_likely(url)}`?" if _HOST.match(url) else None
        raise CommandError(f"`--url` {fault}", hint, ExitStatus.USAGE)
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or ''}".rstrip(":")


def _likely(url: str) -> str:
    """Return the address that is most likely meant by a host and a port, or a port alone."""
    host = f"127.0.0.1:{url}" if url.isdecimal() else url
    return f"http://{host}" if "/" in host else f"http://{host}/mcp"


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    return in_words(cause) if isinstance(cause, OSError) else str(cause)


def _messages(lines: Iterable[bytes], kind: str) -> Iterator[Json]:
    """Yield the messages of an answer, whether it is one or a stream of events."""
    if kind != "text/event-stream":
        yield _message(b"".join(lines))
        return
    for line in lines:
        if line.startswith(DATA) and line[len(DATA) :].strip():
            yield _message(line[len(DATA) :])


def _message(text: bytes) -> Json:
    """Return a message.

    Raises:
        ValueError: It is none.
    """
    with suppress(ValueError):
        message: object = json.loads(text)
        if is_plain_object(message):
            return message
    raise ValueError("what it sent is not a message of MCP")


def shown_token(options: argparse.Namespace, environment: Environment) -> str | None:
    """Return the token to show: the one that is given, or our own for a server of our own.

    Raises:
        CommandError: The file that is named holds none.
    """
    if options.token_file is not None:
        return _read_token(environment.directory / Path(options.token_file).expanduser())
    if given := environment.variables.get(TOKEN_VARIABLE):
        return given
    state = state_path(environment.variables, environment.platform)
    if urlsplit(_place(options.url)).hostname not in _LOOPBACK or state is None:
        return None
    try:
        return state.with_name("http-token").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None


def _read_token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = in_words(error) if isinstance(error, OSError) else "it is no text"
        raise CommandError(
            f"the token file `{path}` cannot be read: {reason}", status=ExitStatus.USAGE
        ) from None
    if not token or not token.isascii() or not token.isprintable():
        raise CommandError(f"the token file `{path}` holds no token", status=ExitStatus.USAGE)
    return token
