"""What a server asks in the middle of a call is asked of the person who made it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli.environment import ExitStatus
from aggregator.cli.fields import Field, MisfitError
from tests.cli.shell import Shell
from tests.cli.window import Window, plain

SERVER = Path(__file__).with_name("asking_server.py")
SERVERS = f"servers:\n  asking: {{command: {sys.executable}, args: [{SERVER}]}}\n"
CHOICE = "[y]es, [n]o, [c]ancel: "


def talk(shell: Shell, tool: str, *answers: tuple[str, str]) -> str:
    """Call a tool in a window, type each answer when it is asked for, and return what is seen."""
    shell.write_servers(SERVERS)
    with Window(shell, "call", tool, columns=200) as window:
        for prompt, typed in answers:
            seen = len(window.text)
            window.until(lambda text, seen=seen, prompt=prompt: prompt in text[seen:])
            window.type(typed)
        return plain(window.until_end())


@pytest.mark.slow
def test_a_form_is_filled_in_field_by_field(shell: Shell) -> None:
    text = talk(
        shell,
        "asking__book",
        (CHOICE, "y\n"),
        ("(a whole number): ", "many\n"),
        ("it must be a whole number\n  (a whole number): ", "9\n"),
        ("it must be at most 8\n  (a whole number): ", "4\n"),
        ("empty for in): ", "outside\n"),
        ("may be left empty): ", "\n"),
    )

    assert "[asking] Which table?" in text
    assert "  2. Outside (out)" in text
    answer = {"action": "accept", "content": {"people": 4, "place": "out"}}
    assert json.loads(text.splitlines()[-1].rpartition("): ")[2]) == answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "action"), [("n\n", "decline"), ("c\n", "cancel"), ("\x04", "cancel")]
)
def test_a_person_may_decline_or_cancel(shell: Shell, typed: str, action: str) -> None:
    text = talk(shell, "asking__book", (CHOICE, typed))

    assert text.splitlines()[-1].endswith(json.dumps({"action": action}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "said"), [("asking__visit", '{"action": "accept"}'), ("asking__refuse", "welcome")]
)
def test_an_address_is_shown_and_opened_by_nobody_else(shell: Shell, tool: str, said: str) -> None:
    text = talk(shell, tool, (CHOICE, "y\n"))

    assert "if you trust example.org:\n  https://example.org/login?x=1\n" in text
    assert text.splitlines()[-1].endswith(said)


@pytest.mark.slow
def test_without_a_terminal_nobody_can_be_asked(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    ran = shell.run("call", "asking__book")

    assert ran.status is ExitStatus.FINE
    assert json.loads(ran.out) == {"action": "decline"}
    assert "\nwarning: [asking] Which table? (declined, as there is nobody to ask" in ran.err


@pytest.mark.slow
def test_what_a_server_calls_itself_is_shown_where_the_file_says_nothing(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    assert "Asks before it answers" in shell.run("inspect").out


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "string"}, " text ", "text"),
        ({"type": "string", "format": "email"}, "a@b.org", "a@b.org"),
        ({"type": "string", "format": "uri"}, "https://a.org", "https://a.org"),
        ({"type": "string", "format": "date"}, "2026-12-31", "2026-12-31"),
        ({"type": "string", "format": "date-time"}, "2026-12-31T10:00:00", "2026-12-31T10:00:00"),
        ({"type": "integer"}, "3", 3),
        ({"type": "number"}, "0.5", 0.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "off", False),
        ({"type": "boolean", "default": True}, "", True),
        ({"type": "string"}, "", None),
        ({"type": "string", "enum": ["a", "b"]}, "2", "b"),
        ({"type": "string", "enum": ["2", "1"]}, "2", "2"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}, "red", "r"),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}}, "c, 1, c", ["c", "a"]),
        ({"type": "array", "items": {"anyOf": [{"const": "a"}]}}, "a", ["a"]),
        ({"type": "array", "items": {"type": "string"}}, "x,y", ["x", "y"]),
    ],
)
def test_an_answer_has_the_type_its_field_asks_for(
    schema: dict[str, Any], typed: str, value: object
) -> None:
    field = Field("field", schema, is_required=False)

    assert field.read(typed) == value
    assert field.takes


@pytest.mark.parametrize(
    ("schema", "typed", "problem"),
    [
        ({"type": "string"}, "", "it is required"),
        ({"type": "string", "minLength": 3}, "ab", "it must be at least 3 characters"),
        ({"type": "string", "format": "email"}, "a@b", "it must be an e-mail address"),
        ({"type": "string", "format": "uri"}, "a.org", "it must be an address such as"),
        ({"type": "string", "format": "date"}, "tomorrow", "it must be a date such as"),
        ({"type": "string", "format": "date-time"}, "now", "it must be a date and time such as"),
        ({"type": "integer"}, "1.5", "it must be a whole number"),
        ({"type": "number"}, "nan", "it must be a number"),
        ({"type": "number", "minimum": 1}, "0", "it must be at least 1"),
        ({"type": "boolean"}, "perhaps", "it must be yes or no"),
        ({"type": "string", "enum": ["a", "b"]}, "3", "`3` is none of them"),
        (
            {"type": "array", "maxItems": 1, "items": {"enum": ["a", "b"]}},
            "a,b",
            "at most 1 values",
        ),
    ],
)
def test_an_answer_that_does_not_fit_is_explained(
    schema: dict[str, Any], typed: str, problem: str
) -> None:
    with pytest.raises(MisfitError) as raised:
        Field("field", schema, is_required=True).read(typed)

    assert problem in str(raised.value)


def test_what_a_server_says_of_a_field_stays_on_its_line() -> None:
    schema = {"title": "Name\x1b[2J", "description": "x" * 1000}

    about = Field("name", schema, is_required=True).about

    assert about.startswith("Name (name): xxx")
    assert len(about) <= 300
