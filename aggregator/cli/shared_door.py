"""Have the hub serve whoever comes over HTTP, from the servers that its other clients use."""

import json

from aggregator.basics.files import in_words
from aggregator.cli.environment import Environment
from aggregator.config import Config
from aggregator.entry.hub_socket import HubSocketError, open_hub_socket
from aggregator.entry.shim import (
    DOOR,
    InProcessError,
    accepted,
    await_end,
    hello,
    is_same_for_all,
)
from aggregator.upstream.http.serving import Listener

STANDARD_ERROR = 2


def open_in_hub(listener: Listener, config: Config, environment: Environment) -> int | None:
    """Serve clients from a hub's fleet, started if need be; return the exit status at the end.

    Nothing is returned, and the listener is as it was, where the hub cannot: then whoever has
    opened it is to serve them.
    """
    if environment.platform != "linux":
        environment.note("not shared: only on Linux several can share servers")
        return None
    path = str(config.path.absolute())
    if not is_same_for_all(path):
        environment.note(f"not shared: `{path}` is no regular file")
        return None
    kind = f"{DOOR} {json.dumps(listener.told())}"
    words = hello(kind, path, str(environment.directory), environment.variables)
    given = (listener.descriptor, listener.descriptor, STANDARD_ERROR)
    try:
        hub_socket = open_hub_socket(environment.variables)
        try:
            connection = accepted(hub_socket, words, given)
        finally:
            hub_socket.close()
    except (InProcessError, HubSocketError) as error:
        environment.note(f"not shared: {error}")
        return None
    except OSError as error:
        environment.note(f"not shared: {in_words(error)}")
        return None
    listener.greet()
    # Whoever comes once the hub has gone is to be told so, and not to wait.
    listener.close()
    return await_end(connection)
