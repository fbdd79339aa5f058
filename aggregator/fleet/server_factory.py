"""How a server of the configuration becomes one that can be run."""

from collections.abc import Callable

from aggregator.basics.json import JsonObject
from aggregator.config import ServerConfig
from aggregator.downstream.eras import Eras
from aggregator.downstream.introduction import Ourselves
from aggregator.downstream.news import ServerEvents
from aggregator.downstream.server import Downstream
from aggregator.downstream.start_queue import StartQueue
from aggregator.downstream.transport import Connect


class ServerFactory:
    """What all servers of a fleet are given alike, whoever they run for."""

    def __init__(
        self,
        connect: Callable[[ServerConfig], Connect],
        identity: JsonObject,
        *,
        eras: Eras,
        jitter: Callable[[], float],
        start_queue: StartQueue,
    ) -> None:
        self._connect = connect
        self._identity = identity
        self._eras = eras
        self._jitter = jitter
        self._start_queue = start_queue

    def __call__(
        self,
        server: ServerConfig,
        events: ServerEvents,
        capabilities: Callable[[], JsonObject],
        watched: frozenset[str],
    ) -> Downstream:
        """Return a server that is ready to be run."""
        return Downstream(
            server,
            self._connect(server),
            events,
            ours=Ourselves(self._identity, capabilities),
            eras=self._eras,
            jitter=self._jitter,
            watched=watched,
            ticket=self._start_queue.ticket(is_heavy=server.type == "stdio"),
        )
