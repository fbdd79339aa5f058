"""What the replicas behind one address have in common."""

import os
import socket
import time
from dataclasses import dataclass

from aggregator.upstream.http.binding import Binding
from aggregator.upstream.http.replicas.key_file import KeyFile
from aggregator.upstream.replica import Replica
from aggregator.upstream.seal import Sealer, Wax


@dataclass(frozen=True, slots=True)
class Common:
    """The keys, and this process among those that have them."""

    keys: KeyFile
    replica: Replica

    @classmethod
    def of(cls, keys: KeyFile, wax: Wax, binding: Binding) -> "Common":
        """Return what is in common to all that have these keys, for one that listens here."""
        # Whoever is started again where it was is the same; no port tells processes apart that
        # are each given one.
        place = binding.port or f"process-{os.getpid()}"
        # What is sealed is opened on machines that have only the time of day in common.
        replica = Replica(f"{socket.gethostname()}:{place}", wax, Sealer(wax, time.time))
        return cls(keys, replica)
