"""A browser that a person can see, where there is one."""

import shlex
import subprocess
import sys
import webbrowser
from collections.abc import Mapping
from threading import Thread


def open_browser(address: str, variables: Mapping[str, str]) -> bool:
    """Open a browser that a person can see; say whether there is one."""
    if command := variables.get("BROWSER"):
        words = [each.replace("%s", address) for each in shlex.split(command)]
        words += [] if "%s" in command else [address]
        return _start(words, variables)
    remote = "SSH_CONNECTION" in variables or "SSH_TTY" in variables
    screen = variables.get("DISPLAY") or variables.get("WAYLAND_DISPLAY")
    if sys.platform not in ("darwin", "win32") and not screen:
        # One for the terminal would take it from us.
        return False
    try:
        return not (remote and not screen) and webbrowser.open(address)
    except webbrowser.Error:
        return False


def _start(words: list[str], variables: Mapping[str, str]) -> bool:
    quiet = subprocess.DEVNULL
    try:
        process = subprocess.Popen(  # noqa: S603 - it is what the person has chosen
            words,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            env=dict(variables),
            start_new_session=True,
        )
    except OSError:
        return False
    # It stays for as long as the person likes, and is missed by nobody.
    Thread(target=process.wait, daemon=True).start()
    return True
