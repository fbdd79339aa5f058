"""Log lines: quiet, about one server each, without a secret."""

import json
import logging
from io import StringIO
from pathlib import Path

import pytest

from aggregator.cli.logs import (
    LINES_PER_MINUTE,
    TRACEBACKS_PER_MINUTE,
    set_up_logging,
    tell_of_loss,
)
from aggregator.config import parse_config

CONFIG = parse_config(
    "servers:\n"
    "  jira: {command: x, env: {API_TOKEN: s3cr3t-value, LEVEL: information}}\n"
    "  web: {url: 'https://example.com/', headers: {Authorization: Bearer abcdefgh12}}\n",
    Path("servers.yaml"),
    {},
)
JIRA = {"server": "jira"}
logger = logging.getLogger("aggregator.test")


def logged(verbosity: int, form: str = "text") -> list[str]:
    stream = StringIO()
    set_up_logging(CONFIG, verbosity, form, stream)
    logger.debug("asked; waiting", extra=JIRA)
    logger.info("LEVEL is information; starting", extra=JIRA)
    logger.warning("s3cr3t-value was refused; retrying in 4 s", extra=JIRA)
    logger.error("abcdefgh12 at https://me:pw@example.com/; giving up", extra={"server": "web"})
    logging.getLogger("library").error("of no interest")
    return stream.getvalue().splitlines()


def test_without_being_asked_only_errors_are_said() -> None:
    assert logged(0) == ["web: *** at https://***@example.com/; giving up"]


def test_warnings_are_said_unasked_where_somebody_reads_them() -> None:
    stream = StringIO()
    set_up_logging(CONFIG, 0, "text", stream, logging.WARNING)

    logger.info("starting", extra=JIRA)
    logger.warning("refused; retrying in 4 s", extra=JIRA)

    assert stream.getvalue() == "jira: refused; retrying in 4 s\n"


def test_each_v_says_more_and_lines_begin_with_the_server() -> None:
    assert logged(1)[0] == "jira: LEVEL is information; starting"
    assert logged(2)[0] == "jira: asked; waiting"
    assert len(logged(9)) == 4


def test_no_secret_of_a_server_is_ever_said() -> None:
    assert "jira: *** was refused; retrying in 4 s" in logged(2)


def test_secrets_of_servers_that_come_later_are_not_said_either() -> None:
    stream = StringIO()
    lines = set_up_logging(CONFIG, 1, "json", stream)
    later = "servers: {web2: {command: x, env: {API_TOKEN: an0ther-s3cret}}}"

    lines.expect(parse_config(later, Path("servers.yaml"), {}))
    logger.info("an0ther-s3cret and s3cr3t-value; starting", extra={"server": "web2"})

    said = json.loads(stream.getvalue())
    assert (said["server"], said["message"]) == ("web2", "*** and ***; starting")


def test_json_lines_name_the_server_by_itself() -> None:
    lines = [json.loads(line) for line in logged(1, "json")]

    assert [line.pop("time")[-6:] for line in lines] == ["+00:00"] * 3
    assert lines[1] == {
        "level": "warning",
        "server": "jira",
        "message": "*** was refused; retrying in 4 s",
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_server_wrote_is_its_own_whatever_it_looks_like(form: str) -> None:
    stream = StringIO()
    set_up_logging(CONFIG, 1, form, stream)

    about = {**JIRA, "stream": "stderr"}
    logger.info("%s", "web: s3cr3t-value is not what it was", extra=about)

    words = "web: *** is not what it was"
    if form == "text":
        assert stream.getvalue() == f"jira: stderr: {words}\n"
    else:
        assert json.loads(stream.getvalue()).items() >= {**about, "message": words}.items()


def test_a_line_about_no_server_names_none() -> None:
    stream = StringIO()
    set_up_logging(CONFIG, 1, "json", stream)

    logger.info("jira: applied")

    said = json.loads(stream.getvalue())
    assert ("server" in said, said["message"]) == (False, "jira: applied")


def test_no_line_is_forged_and_no_escape_is_written() -> None:
    stream = StringIO()
    set_up_logging(CONFIG, 1, "text", stream)
    forged = "gone\r\nweb: all is well\u2028web: fine\x1b[2J\u202e\U000e0041\x85web: fine"

    logger.warning("%s; retrying", forged, extra=JIRA)
    error = ValueError(forged)
    logger.error("internal error", exc_info=error, extra=JIRA)

    first, *others = stream.getvalue().split("\n")
    assert first == "jira: gone web: all is well web: fineweb: fine; retrying"
    assert others[0] == "jira: internal error"
    assert all(line.startswith("  ") for line in others[1:-1])
    assert "  web: all is well" in others
    assert not {"\r", "\x1b", "\u202e", "\u2028", "\x85", "\U000e0041"} & set(stream.getvalue())


def test_a_secret_cannot_be_said_in_parts() -> None:
    stream = StringIO()
    set_up_logging(CONFIG, 1, "text", stream)

    logger.warning("%s", "s3cr\u200b3t-value and s3cr\x1b[0m3t-value", extra=JIRA)

    assert stream.getvalue() == "jira: *** and ***\n"


def test_lines_that_were_lost_are_a_line_like_any_other() -> None:
    stream = StringIO()
    set_up_logging(CONFIG, 0, "json", stream)
    tell_of_loss(7)

    said = json.loads(stream.getvalue())
    assert said["message"] == "7 lines were dropped here, as nobody read them"


def test_a_server_has_only_so_many_lines_and_tracebacks_in_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("aggregator.cli.logs.monotonic", lambda: now[0])
    stream = StringIO()
    set_up_logging(CONFIG, 0, "text", stream)
    for _ in range(LINES_PER_MINUTE + 7):
        logger.error("odd", exc_info=KeyError("x"), extra=JIRA)
    logger.error("fine", extra={"server": "web"})
    now[0] = 61.0
    logger.error("odd again", extra=JIRA)

    said = stream.getvalue()
    assert said.count("KeyError") == TRACEBACKS_PER_MINUTE
    assert said.count("jira: odd\n") == LINES_PER_MINUTE
    assert said.endswith("web: fine\njira: odd again (7 lines before this one were left out)\n")
