"""A call that its server has answered with a task, followed to its result."""

import time
from contextlib import suppress
from typing import Any

from aggregator.basics.glyphs import on_one_line
from aggregator.basics.json import JsonObject, as_object
from aggregator.basics.tasks import CANCEL, GET, ID, TASKS, UPDATE, is_over
from aggregator.cli.elicitation import CAPABILITIES, answer
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.live import LiveLine
from aggregator.cli.peer import Peer

ABLE: JsonObject = {**CAPABILITIES, "extensions": {TASKS: {}}}
"""What can be asked of who follows a task, and that it does."""

LEAST, USUAL, MOST = 0.1, 1.0, 10.0
"""Seconds between two looks: the fewest, those where a server names none, and the most."""


def follow(tool: str, task: JsonObject, peer: Peer, environment: Environment) -> dict[str, Any]:
    """Return the result of a call once the task is over that its server has made of it.

    Raises:
        CommandError: It came to nothing.
    """
    line = LiveLine(environment)
    told, about, answered = task, {ID: task.get(ID)}, set[str]()
    try:
        while not is_over(told):
            if line.is_seen:
                line.show(_state(told))
            time.sleep(pause(told))
            told = peer.request(GET, about, capabilities=ABLE)
            open_ones = {
                key: as_object(each)
                for key, each in as_object(told.get("inputRequests")).items()
                if key not in answered
            }
            if open_ones:
                line.clear()
                answers = {key: answer(each, environment) for key, each in open_ones.items()}
                peer.request(UPDATE, {**about, "inputResponses": answers}, capabilities=ABLE)
                answered |= open_ones.keys()
    except KeyboardInterrupt:
        with suppress(CommandError):
            peer.request(CANCEL, about, capabilities=ABLE)
        raise
    finally:
        line.clear()
    return _result(tool, told)


def _state(told: JsonObject) -> str:
    """Say in a line how a task stands."""
    state, said = str(told.get("status")).replace("_", " "), told.get("statusMessage")
    return on_one_line(f"{state}: {said}" if said else state)


def pause(told: JsonObject) -> float:
    """Return for how long its server wants not to be asked."""
    wanted: object = told.get("pollIntervalMs")
    seconds = wanted / 1000 if isinstance(wanted, int | float) else USUAL
    return max(LEAST, min(MOST, seconds))


def _result(tool: str, told: JsonObject) -> dict[str, Any]:
    match told:
        case {"status": "completed"}:
            return dict(as_object(told.get("result")))
        case {"status": "failed"}:
            error = as_object(told.get("error"))
            reason = f"{error.get('message', 'no reason given')} (code {error.get('code')})"
        case _:
            reason = "it was cancelled"
    raise CommandError(f"`{tool}`: {reason}", status=ExitStatus.TOOL_ERROR)
