"""Where logins belong: all that a start has to know of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from aggregator.downstream.login.shared_renewal import SharedRenewal
from aggregator.memory import state_path


class Home(NamedTuple):
    """The directory of all logins of a user, and the file that names the servers."""

    directory: Path
    config: Path
    shared_renewal: SharedRenewal | None = None
    """What other machines with the same logins know of them."""


def login_home(
    variables: Mapping[str, str], config: Path, shared_renewal: SharedRenewal | None = None
) -> Home | None:
    """Return where this user's logins are; none where nothing says whose state is where."""
    state = state_path(variables)
    if state is None:
        return None
    return Home(state.with_name("logins"), config.absolute(), shared_renewal)
