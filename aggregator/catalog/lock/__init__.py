"""What servers offered when they were approved: kept in a file, and compared with listings."""

from aggregator.catalog.lock.drift import (
    Drift,
    Kind,
    drift_of,
    drifts,
    edited,
    ordered,
    removed,
    retold,
)
from aggregator.catalog.lock.lazy_lock import LazyLock, LockedServer, read, taken_apart
from aggregator.catalog.lock.merging import merged
from aggregator.catalog.lock.record import SHOWN, Lock, Record, fingerprint, kept, veiled
from aggregator.catalog.lock.text import MAX_BYTES, LaterLockError, LockError, written

__all__ = [
    "MAX_BYTES",
    "SHOWN",
    "Drift",
    "Kind",
    "LaterLockError",
    "LazyLock",
    "Lock",
    "LockError",
    "LockedServer",
    "Record",
    "drift_of",
    "drifts",
    "edited",
    "fingerprint",
    "kept",
    "merged",
    "ordered",
    "read",
    "removed",
    "retold",
    "taken_apart",
    "veiled",
    "written",
]
