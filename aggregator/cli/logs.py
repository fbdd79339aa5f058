"""What is said on stderr while serving: little, each line about one server, never a secret."""

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from time import monotonic
from typing import TextIO

from aggregator.basics.glyphs import on_its_lines, on_one_line
from aggregator.basics.rate import Rate
from aggregator.cli.stderr_writer import LOSS
from aggregator.config import Config
from aggregator.secrecy import HIDDEN, forms, without_secrets

logger = logging.getLogger(__name__)

LEVELS = (logging.INFO, logging.DEBUG)
"""What is logged with `-v`, and with `-vv`."""
LINES_PER_MINUTE = 60
"""Lines about one server that are written in a minute; of more, only their number is."""
TRACEBACKS_PER_MINUTE = 3
"""How many of these say where in our code it was."""
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
    handler.addFilter(Allotment())
    # Of what libraries say, only what ends everything is of interest to a person.
    logging.basicConfig(level=logging.CRITICAL, handlers=[handler], force=True)
    logging.getLogger("aggregator").setLevel((least, *LEVELS)[min(verbosity, len(LEVELS))])
    return lines


def tell_of_loss(lines: int) -> None:
    """Say that so many lines could not be written."""
    logger.error(LOSS, lines)


class Allotment(logging.Filter):
    """Lets each server have only so much said of it: one that fails for ever would fill a disk."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = defaultdict[str, Rate](lambda: Rate(LINES_PER_MINUTE, within=60.0))
        self._tracebacks = defaultdict[str, Rate](lambda: Rate(TRACEBACKS_PER_MINUTE, within=60.0))

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record is written; one that follows others that were not says so."""
        about = str(vars(record).get("server", record.name))
        now = monotonic()
        rate = self._lines[about]
        left_out = rate.refused
        if not rate.admits(now):
            return False
        if left_out:
            record.msg = f"{record.msg} ({left_out} lines before this one were left out)"
        if record.exc_info and not self._tracebacks[about].admits(now):
            record.exc_info = record.exc_text = None
        return True


class Lines(logging.Formatter):
    """Writes a record as one line of text, or of JSON."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__("%(message)s")
        self._as_json = as_json
        self._secrets: list[str] = []

    def expect(self, config: Config) -> None:
        """Learn the secrets of servers before they have a chance to say them."""
        secrets = {*self._secrets, *_secrets(config)}
        # Longer ones first: one secret may begin with another.
        self._secrets = sorted(secrets, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without what must not be read, and without what only looks like one."""
        facts = {name: vars(record)[name] for name in FACTS if name in vars(record)}
        whole = super().format(record)
        # What follows the message is a traceback; its own words may hold what looks like a line.
        traceback = on_its_lines(whole.removeprefix(record.message)).replace("\n", "\n  ")
        line = on_one_line(self._discreet(record.message)) + traceback
        if self._as_json:
            return self._json(record, facts, self._discreet(line))
        words = "stderr: " if facts.get("stream") == "stderr" else ""
        about = f"{facts['server']}: " if "server" in facts else ""
        return self._discreet(f"{about}{words}{line}")

    def _json(self, record: logging.LogRecord, facts: Mapping[str, str], line: str) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {"time": moment, "level": record.levelname.lower(), **facts}
        return json.dumps({**fields, "message": line}, ensure_ascii=True)

    def _discreet(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return without_secrets(text)


def _secrets(config: Config) -> Iterable[str]:
    """Yield what each server, or whoever counts tokens, is given in confidence."""
    for _, value in config.confidential():
        yield from forms(value)
    for server in config.servers.values():
        yield from filter(None, server.secrets.values())
