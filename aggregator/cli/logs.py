"""What is said on stderr while serving: little, each line about one server, never a secret."""

import json
import logging
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import TextIO

from aggregator.config import Config, ServerConfig
from aggregator.secrecy import HIDDEN, is_secret, secret_arguments, without_secrets

LEVELS = (logging.ERROR, logging.INFO, logging.DEBUG)
"""What is logged without `-v`, with it, and with `-vv`."""


def set_up_logging(config: Config, verbosity: int, form: str, stream: TextIO) -> None:
    """Send our log lines to a stream, quietly unless asked for more."""
    handler = logging.StreamHandler(stream)
    secrets = frozenset(_secrets(config.servers.values()))
    as_json = form == "json"
    handler.setFormatter(Lines(secrets, config.servers if as_json else None))
    # Of what libraries say, only what ends everything is of interest to a person.
    logging.basicConfig(level=logging.CRITICAL, handlers=[handler], force=True)
    logging.getLogger("aggregator").setLevel(LEVELS[min(verbosity, len(LEVELS) - 1)])


class Lines(logging.Formatter):
    """Writes a record as one line of text, or of JSON if it is told the servers' names."""

    def __init__(self, secrets: Collection[str], servers: Collection[str] | None = None) -> None:
        super().__init__("%(message)s")
        # Longer ones first: one secret may begin with another.
        self._secrets = sorted(secrets, key=len, reverse=True)
        self._servers = servers

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without what must not be read."""
        line = self._discreet(super().format(record))
        return line if self._servers is None else self._json(record, line, self._servers)

    def _json(self, record: logging.LogRecord, line: str, servers: Collection[str]) -> str:
        server, _, rest = line.partition(": ")
        about = {"server": server} if server in servers else {}
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {"time": moment, "level": record.levelname.lower(), **about}
        return json.dumps({**fields, "message": rest if about else line}, ensure_ascii=False)

    def _discreet(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return without_secrets(text)


def _secrets(servers: Iterable[ServerConfig]) -> Iterable[str]:
    """Yield what each server is given in confidence."""
    for server in servers:
        for name, value in (*server.env.items(), *server.headers.items()):
            if is_secret(name, value):
                yield from {value, value.rpartition(" ")[2]}
        yield from (value for _, value in secret_arguments(server.args))
