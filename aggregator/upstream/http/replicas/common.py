"""What the replicas behind one address have in common."""

import os
import socket
import time

from aggregator.basics.frozen import frozen
from aggregator.upstream.http.binding import Binding
from aggregator.upstream.http.replicas.key_file import KeyFile
from aggregator.upstream.http.replicas.login_renewals import LoginRenewals
from aggregator.upstream.http.replicas.mail import Box, Mail
from aggregator.upstream.replica import Replica
from aggregator.upstream.seal import Cipher, Sealer


@frozen
class Common:
    """The keys, and this process among those that have them."""

    keys: KeyFile
    replica: Replica
    mail: Mail | None = None
    """How others are reached, where there is a store."""

    @classmethod
    def of(
        cls, keys: KeyFile, cipher: Cipher, binding: Binding, box: Box | None = None
    ) -> "Common":
        """Return what is in common to all that have these keys, for one that listens here."""
        # Whoever is started again where it was is the same; no port tells processes apart that
        # are each given one.
        place = binding.port or f"process-{os.getpid()}"
        # What is sealed is opened on machines that have only the time of day in common.
        name = f"{socket.gethostname()}:{place}"
        sealer = Sealer(cipher, time.time)
        if box is None:
            return cls(keys, Replica(name, cipher, sealer))
        mail = Mail(box, name)
        return cls(keys, Replica(name, cipher, sealer, mail, LoginRenewals(box, name)), mail)
