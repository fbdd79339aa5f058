"""Log lines: quiet, about one server each, without a secret."""

import json
import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from aggregator.cli.logs import set_up_logging
from aggregator.config import parse_config

CONFIG = parse_config(
    "servers:\n"
    "  jira: {command: x, env: {API_TOKEN: s3cr3t-value, LEVEL: information}}\n"
    "  web: {url: 'https://example.com/', headers: {Authorization: Bearer abcdefgh12}}\n",
    Path("servers.yaml"),
    {},
)
logger = logging.getLogger("aggregator.test")


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("aggregator")
    before = (root.handlers[:], root.level, ours.level)
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def logged(verbosity: int, form: str = "text") -> list[str]:
    stream = StringIO()
    set_up_logging(CONFIG, verbosity, form, stream)
    logger.debug("jira: asked; waiting")
    logger.info("jira: LEVEL is information; starting")
    logger.warning("jira: s3cr3t-value was refused; retrying in 4 s")
    logger.error("web: abcdefgh12 at https://me:pw@example.com/; giving up")
    logging.getLogger("library").error("of no interest")
    return stream.getvalue().splitlines()


def test_without_being_asked_only_errors_are_said() -> None:
    assert logged(0) == ["web: *** at https://***@example.com/; giving up"]


def test_warnings_are_said_unasked_where_somebody_reads_them() -> None:
    stream = StringIO()
    set_up_logging(CONFIG, 0, "text", stream, logging.WARNING)

    logger.info("jira: starting")
    logger.warning("jira: refused; retrying in 4 s")

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
    logger.info("web2: an0ther-s3cret and s3cr3t-value; starting")

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
