"""Secrets in the system's keyring, which `${keyring:NAME}` stands for.

The extra is imported when a file needs it: that takes a while, and most files do not.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from importlib import import_module
from threading import Thread
from types import ModuleType
from typing import NamedTuple

from aggregator.config.document import Value
from aggregator.secrecy import Redaction

SERVICE = "mcp-tool-aggregator"
"""Under which name a keyring keeps what is ours."""
PREFIX = "keyring:"
NAME = r"[A-Za-z0-9_][A-Za-z0-9_.@/-]{0,127}"
"""What a secret may be called."""
PATIENCE = 5.0
"""Seconds a keyring may take: one that is locked may wait for a person, and we for it."""
EXTRA = (
    f"`{sys.executable} -m pip install 'mcp-tool-aggregator[keyring]'` "
    "installs the extra that it needs"
)

_REFERENCE = re.compile(rf"(?<!\$)(?:\$\$)*\$\{{({PREFIX}{NAME})(?=[:}}])", re.ASCII)

_NOTHING_CONFIDED = Redaction(())


class KeyringError(Exception):
    """A keyring that cannot be used, or does not hold what it is asked for."""


class Held(NamedTuple):
    """What a file refers to in the keyring, by the names that references have."""

    values: Mapping[str, str]
    problems: Mapping[str, str]
    """Why others are not known."""
    is_silent: bool = False
    """Whether the keyring did not answer in time."""

    def referred_to(self, data: Value) -> dict[str, str]:
        """Return what a part of the file refers to."""
        return {name: self.values[name] for name in _names(data) if name in self.values}


def held(data: Value, patience: float | None = None) -> Held:
    """Look up all that a file refers to; whoever needs what is not there is told why."""
    patience = PATIENCE if patience is None else patience
    values: dict[str, str] = {}
    problems: dict[str, str] = {}
    names = dict.fromkeys(_names(data))
    for name in names:
        try:
            values[name] = _looked_up(name.removeprefix(PREFIX), patience)
        except TimeoutError:
            # What does not answer once is not asked again.
            silence = f"the keyring did not answer within {patience:g} s"
            advice = "unlock it, and save the file again"
            problems |= {each: f"{silence}; {advice}" for each in names if each not in values}
            return Held(values, problems, is_silent=True)
        except KeyringError as error:
            problems[name] = str(error)
    return Held(values, problems)


def check(name: str) -> None:
    """Find out whether there is a keyring, before somebody types what it is to keep.

    Raises:
        KeyringError: It cannot be used.
    """
    _asked(lambda ring: ring.get_password(SERVICE, name))


def keep(name: str, value: str) -> None:
    """Put a secret into the keyring, in the place of one of that name.

    Raises:
        KeyringError: It cannot be used.
    """
    _asked(lambda ring: ring.set_password(SERVICE, name, value), Redaction([(name, value)]))


def forget(name: str) -> None:
    """Take a secret out of the keyring.

    Raises:
        KeyringError: It cannot be used, or has none of that name.
    """
    look_up(name)
    _asked(lambda ring: ring.delete_password(SERVICE, name))


def look_up(name: str) -> str:
    """Return a secret.

    Raises:
        KeyringError: The keyring cannot be used, or has none of that name.
    """
    found: list[str | None] = []
    _asked(lambda ring: found.append(ring.get_password(SERVICE, name)))
    if not found or found[0] is None:
        raise KeyringError(
            f"the keyring has no `{name}`: `aggregator secret set {name}` puts it there"
        )
    return found[0]


def _looked_up(name: str, patience: float) -> str:
    """Look up a secret without waiting for ever.

    Raises:
        KeyringError: The keyring cannot be used, or has none of that name.
        TimeoutError: It does not answer.
    """
    outcome: Future[str] = Future()

    def look() -> None:
        try:
            outcome.set_result(look_up(name))
        except KeyringError as error:
            outcome.set_exception(error)

    # Not one of a pool: nobody waits at the end for one that hangs.
    Thread(target=look, name="keyring", daemon=True).start()
    return outcome.result(patience)


def _asked(act: Callable[[ModuleType], object], redact: Redaction = _NOTHING_CONFIDED) -> None:
    try:
        ring = import_module("keyring")
        errors = import_module("keyring.errors")
    except ImportError:
        raise KeyringError(f"the keyring cannot be used: {EXTRA}") from None
    try:
        act(ring)
    except errors.NoKeyringError:
        raise KeyringError(
            "this system has no keyring that can be used: "
            "write `${NAME}` instead, and put it into a file named by `envFile`"
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # What answers is anybody's program: it raises what it likes, and may leave altogether.
        kind, said = type(error).__name__, redact(str(error)).strip()
        is_sentence = isinstance(error, (errors.KeyringError, OSError, RuntimeError, ValueError))
        reason = said if said and is_sentence else f"{kind}: {said}".removesuffix(": ")
        raise KeyringError(f"the keyring cannot be used: {reason}") from error


def _names(data: Value) -> Iterator[str]:
    """Yield the references in every text of a value."""
    if isinstance(data, str):
        yield from _REFERENCE.findall(data)
    elif isinstance(data, list | dict):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _names(each)
