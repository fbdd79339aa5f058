"""Clients that come over HTTP, to a socket that was handed over by whoever listens on it."""

import json
import os
import socket
from pathlib import Path
from typing import Any

from aggregator.app.hub.session import Session
from aggregator.upstream.server import Upstream


class DoorSession(Session):
    """A door, from the moment that it is opened in our house to its end.

    It is not many clients but one: whoever has opened it, and closes it.
    """

    @property
    def title(self) -> str:
        """Where clients come in."""
        told = self._told()
        return f"clients over HTTP at {told['host']}:{told['port']}"

    async def _attend(self, upstream: Upstream) -> None:
        # Most hubs have no door, and do not wait for what HTTP takes.
        from aggregator.upstream.http.binding import Binding  # noqa: PLC0415 - see above
        from aggregator.upstream.http.keys import Keys, Ring  # noqa: PLC0415 - see above
        from aggregator.upstream.http.proxies import parse_proxies  # noqa: PLC0415 - see above
        from aggregator.upstream.http.serving import Access, Listener  # noqa: PLC0415 - see above
        from aggregator.upstream.http.tls import Certificate  # noqa: PLC0415 - see above

        told = self._told()
        binding = Binding(told["host"], told["port"])
        ring, tls = told["ring"], told["tls"]
        access = Access(
            binding,
            None,
            told["token"],
            tuple(told["names"]),
            stats=told["stats"] and Path(told["stats"]),
            shows_arguments=told["shows_arguments"],
            profile=told["profile"],
            asks_issuer=told["asks_issuer"],
            keys=Keys(ring and Ring(Path(ring[0]), ring[1])),
            certificate=tls and Certificate(Path(tls[0]), tls[1] and Path(tls[1])),
            proxies=parse_proxies(told["proxies"]),
            drain_time=told["drain"][0],
            notice=told["drain"][1],
        )
        listener = Listener(access, socket.socket(fileno=os.dup(self._line.descriptors[0])))
        try:
            await listener.serve(upstream, self._stop, self._shutdown_notice)
        finally:
            listener.close()

    def _told(self) -> dict[str, Any]:
        return json.loads(self.hello.details)
