"""Where the logins of this user are kept, and what is typed to have one."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from aggregator.config import ServerConfig
from aggregator.downstream.login.command import Command
from aggregator.downstream.login.file import LoginFile, login_file
from aggregator.downstream.login.home import login_home
from aggregator.downstream.login.shared_renewal import SharedRenewal


class Logins(NamedTuple):
    """The directory of all logins, and the file that names the servers."""

    directory: Path
    config: Path
    shared_renewal: SharedRenewal | None = None
    """What other machines with the same logins know of them."""

    def file(self, server: ServerConfig) -> LoginFile:
        """Return where the login to a server is kept."""
        client = server.oauth.client_id if server.oauth else None
        return login_file(self.directory, server.url or "", client)

    def command(self, server: ServerConfig) -> Command:
        """Return how a person logs in to a server."""
        return Command(server.name, self.config)


def open_logins(variables: Mapping[str, str], config: Path) -> Logins | None:
    """Return the logins of this user; none where nothing says whose state is where."""
    home = login_home(variables, config)
    return None if home is None else Logins(*home)
