"""Where logins belong: all that a start has to know of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from aggregator.memory import state_path


class Home(NamedTuple):
    """The directory of all logins of a user, and the file that names the servers."""

    directory: Path
    config: Path


def login_home(variables: Mapping[str, str], config: Path) -> Home | None:
    """Return where this user's logins are; none where nothing says whose state is where."""
    state = state_path(variables)
    return None if state is None else Home(state.with_name("logins"), config.absolute())
