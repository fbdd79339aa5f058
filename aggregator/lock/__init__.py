"""What servers were last known to offer: kept in a file, and compared with what they offer now."""

from aggregator.lock.drift import Drift, Kind, drift_of, drifts, edited, ordered, removed, retold
from aggregator.lock.ledger import Ledger, Sheet, read, taken_apart
from aggregator.lock.merging import merged
from aggregator.lock.record import SHOWN, Lock, Record, fingerprint, kept, veiled
from aggregator.lock.text import MAX_BYTES, LaterLockError, LockError, written

__all__ = [
    "MAX_BYTES",
    "SHOWN",
    "Drift",
    "Kind",
    "LaterLockError",
    "Ledger",
    "Lock",
    "LockError",
    "Record",
    "Sheet",
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
