"""`aggregator token`: who may come in over HTTP, and what each of them sees."""

import argparse
import re
import time
from difflib import get_close_matches
from pathlib import Path

from aggregator.cli.config_file import config_path, read_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.pages import as_json, columns
from aggregator.config.quantities import seconds
from aggregator.memory import state_path
from aggregator.upstream.http.binding import BindingError
from aggregator.upstream.http.keys import Ring, Token

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}", re.ASCII)
_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)
_LONGEST = 10 * 365 * 86_400.0
_NEAR = 2 * 86_400.0
"""Seconds from now within which the time of a day matters, too."""
_AT_ONCE = 3_600.0
"""And the seconds of it."""


def ring_of(path: Path, environment: Environment) -> Ring:
    """Return where the tokens for a configuration are kept.

    Raises:
        CommandError: There is no place for them.
    """
    state = state_path(environment.variables, environment.platform)
    if state is None:
        raise CommandError("there is no place for tokens", "Set HOME or XDG_STATE_HOME")
    return Ring(state.with_name("http-tokens.json"), str(path.absolute()))


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Make a token, list those there are, or end one."""
    ring = ring_of(config_path(options.config, environment), environment)
    try:
        match options.action:
            case "add":
                return _add(ring, options, environment)
            case "revoke":
                return _revoke(ring, options, environment)
            case _:
                return _list(ring, options, environment)
    except BindingError as error:
        raise CommandError(str(error), error.hint) from error


def _add(ring: Ring, options: argparse.Namespace, environment: Environment) -> ExitStatus:
    name = _name(options)
    # Only what can be served is worth a token, and a profile that is not there would show nothing.
    read_config(options, environment, quiet=True)
    now = time.time()
    expires = None if options.expires is None else now + _duration(options.expires)
    token = ring.add(name, options.profile, expires)
    try:
        environment.say(token)
    except (OSError, CommandError):
        # Nobody has seen it, and nobody can be told again.
        ring.revoke(name)
        environment.say_nothing_more()
        raise CommandError(
            f"the token of `{name}` could not be printed, so it was revoked",
            f"`aggregator token add {name}` makes another",
        ) from None
    sees = f"sees what the profile `{options.profile}` shows" if options.profile else "sees all"
    until = "" if expires is None else f" and is valid until {_moment(expires, now)}"
    environment.note(
        f"That is the token of `{name}`, which {sees}{until}. It is shown only now; only a digest "
        "of it is kept"
    )
    return ExitStatus.FINE


def _revoke(ring: Ring, options: argparse.Namespace, environment: Environment) -> ExitStatus:
    name = _name(options)
    if not ring.revoke(name):
        close = get_close_matches(name, [each.name for each in ring.tokens()], 1)
        hint = f"Did you mean `{close[0]}`?" if close else "`aggregator token list` lists them"
        raise CommandError(f"there is no token `{name}`", hint, ExitStatus.UNKNOWN)
    environment.note(f"The token of `{name}` is no longer accepted, and its sessions end")
    return ExitStatus.FINE


def _list(ring: Ring, options: argparse.Namespace, environment: Environment) -> ExitStatus:
    tokens, now = ring.tokens(), time.time()
    if options.json:
        facts = [_facts(each, now) for each in tokens]
        environment.say(as_json({"tokens": facts}))
    elif not tokens:
        environment.tell(
            "There are no tokens besides the server's own; `aggregator token add NAME` makes one"
        )
    else:
        rows = [
            [each.name, each.profile or "", _day(each.made), _end(each, now)] for each in tokens
        ]
        environment.say(columns(["NAME", "PROFILE", "MADE", "EXPIRES"], rows, environment.paper))
    return ExitStatus.FINE


def _facts(token: Token, now: float) -> dict[str, object]:
    return {
        "name": token.name,
        "profile": token.profile,
        "made": token.made,
        "expires": token.expires,
        "expired": not token.opens_at(now),
    }


def _end(token: Token, now: float) -> str:
    if token.expires is None:
        return "never"
    end = _moment(token.expires, now)
    return end if token.opens_at(now) else f"{end} (has expired)"


def _moment(moment: float, now: float) -> str:
    """Return a day, and near now the time of it."""
    if abs(moment - now) > _NEAR:
        return _day(moment)
    form = "%Y-%m-%d %H:%M" if abs(moment - now) > _AT_ONCE else "%Y-%m-%d %H:%M:%S"
    return time.strftime(form, time.localtime(moment))


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def _name(options: argparse.Namespace) -> str:
    name: str | None = options.name
    if name is None or not _NAME.fullmatch(name):
        problem = "a name is needed" if name is None else f"`{name[:80]}` is not allowed as a name"
        hint = "Use at most 64 letters, digits, `-`, `_`, `.` and `@`: `aggregator token add anna`"
        raise CommandError(problem, hint, ExitStatus.USAGE)
    return name


def _duration(text: str) -> float:
    if _NUMBER.fullmatch(text.strip()):
        # As in the file, it would be seconds, which are rarely meant of a token.
        raise CommandError(
            f"`--expires {text}` lacks a unit",
            f"Write `{text.strip()}d` for days or `{text.strip()}h` for hours",
            ExitStatus.USAGE,
        )
    try:
        found = seconds(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= _LONGEST:
        raise CommandError(
            f"`{text}` is not a duration that a token can have",
            "Write `30d` or `12h`",
            ExitStatus.USAGE,
        )
    return found
