"""Ask the person at the terminal what a server wants to know in the middle of a call."""

from typing import Any
from urllib.parse import urlsplit

from aggregator.basics.glyphs import on_one_line
from aggregator.basics.json import JsonObject, as_object
from aggregator.cli.environment import Environment
from aggregator.cli.fields import Field, MisfitError, fields_of, shown

CAPABILITIES: JsonObject = {"elicitation": {"form": {}, "url": {}}}
"""What servers are told that can be asked of us."""

MAX_ATTEMPTS = 20
"""Answers to one field that may be wrong before the whole question is given up."""

Answer = dict[str, Any]


class _GoneError(Exception):
    """Nobody types any more."""


def answer(question: JsonObject, environment: Environment) -> Answer:
    """Return what a person says to a question; where there is nobody to ask, decline and say so."""
    params = as_object(question.get("params"))
    message = shown(str(params.get("message") or "It asks for something"))
    if not (environment.stdin.isatty() and environment.stderr.isatty()):
        environment.warn(f"{message} (declined, as there is nobody to ask; use a terminal)")
        return {"action": "decline"}
    environment.note(environment.paper.fill(message))
    try:
        if params.get("mode") == "url":
            return _visit(str(params.get("url") or ""), environment)
        return _fill_in(fields_of(as_object(params.get("requestedSchema"))), environment)
    except _GoneError:
        environment.note("")
        return {"action": "cancel"}


def _visit(url: str, environment: Environment) -> Answer:
    """Show where a server sends the person; whether to go there is theirs to say."""
    address = on_one_line(url)
    try:
        parts = urlsplit(address)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if not host:
        environment.warn(f"`{shown(address)}` is not an address that can be opened; declined")
        return {"action": "decline"}
    environment.note(f"  Open this in a browser, if you trust {host}:\n  {address}")
    return _agreed("Go on?", environment)


def _fill_in(fields: list[Field], environment: Environment) -> Answer:
    """Ask for each field of a form."""
    consent = _agreed("Answer?", environment)
    if consent["action"] != "accept":
        return consent
    content: dict[str, Any] = {}
    for field in fields:
        value = _ask(field, environment)
        if value is not None:
            content[field.name] = value
    return {"action": "accept", "content": content}


def _agreed(question: str, environment: Environment) -> Answer:
    actions = {"y": "accept", "n": "decline", "c": "cancel"}
    for _attempt in range(MAX_ATTEMPTS):
        typed = _typed(f"{question} [y]es, [n]o, [c]ancel: ", environment)
        action = actions.get(typed.strip().lower()[:1])
        if action is not None:
            return {"action": action}
        environment.note("  Type y, n or c")
    raise _GoneError


def _ask(field: Field, environment: Environment) -> Any:  # noqa: ANN401 - as the schema has it
    environment.note(environment.paper.fill(field.about))
    for number, choice in enumerate(field.choices, 1):
        same = "" if choice.title == choice.value else f" ({shown(choice.value)})"
        environment.note(f"  {number}. {shown(choice.title)}{same}")
    for _attempt in range(MAX_ATTEMPTS):
        try:
            return field.read(_typed(f"  ({field.takes}): ", environment))
        except MisfitError as error:
            environment.note(f"  {error}")
    raise _GoneError


def _typed(prompt: str, environment: Environment) -> str:
    environment.note(prompt, end="")
    typed = environment.read_line()
    if not typed:
        raise _GoneError
    return typed.rstrip("\n")
