"""What is said on stderr while serving: little, each line about one server, never a secret."""

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TextIO

from aggregator.config import Config, ServerConfig
from aggregator.secrecy import HIDDEN, is_secret, secret_arguments, without_secrets

LEVELS = (logging.INFO, logging.DEBUG)
"""What is logged with `-v`, and with `-vv`."""
FACTS = ("server", "stream")
"""What a record may say beside its message: which server it is about, and where that wrote it."""


def set_up_logging(
    config: Config, verbosity: int, form: str, stream: TextIO, least: int = logging.ERROR
) -> "Lines":
    """Send our log lines to a stream; return what writes them.

    `least` is what is logged also where nobody asks for more.
    """
    handler = logging.StreamHandler(stream)
    lines = Lines(as_json=form == "json")
    lines.expect(config)
    handler.setFormatter(lines)
    # Of what libraries say, only what ends everything is of interest to a person.
    logging.basicConfig(level=logging.CRITICAL, handlers=[handler], force=True)
    logging.getLogger("aggregator").setLevel((least, *LEVELS)[min(verbosity, len(LEVELS))])
    return lines


class Lines(logging.Formatter):
    """Writes a record as one line of text, or of JSON."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__("%(message)s")
        self._as_json = as_json
        self._secrets: list[str] = []

    def expect(self, config: Config) -> None:
        """Learn the secrets of servers before they have a chance to say them."""
        secrets = {*self._secrets, *_secrets(config.servers.values())}
        # Longer ones first: one secret may begin with another.
        self._secrets = sorted(secrets, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without what must not be read."""
        facts = {name: vars(record)[name] for name in FACTS if name in vars(record)}
        line = super().format(record)
        if self._as_json:
            return self._json(record, facts, self._discreet(line))
        words = "stderr: " if facts.get("stream") == "stderr" else ""
        about = f"{facts['server']}: " if "server" in facts else ""
        return self._discreet(f"{about}{words}{line}")

    def _json(self, record: logging.LogRecord, facts: Mapping[str, str], line: str) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {"time": moment, "level": record.levelname.lower(), **facts}
        return json.dumps({**fields, "message": line}, ensure_ascii=False)

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
