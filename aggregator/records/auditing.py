"""Takes each call to the audit file as it ends, and says so when that cannot be done."""

import logging
from collections.abc import Callable

import anyio
from anyio import to_thread

from aggregator.basics.files import in_words
from aggregator.config.audit import Audit
from aggregator.records.audit import AuditFile, Entry
from aggregator.records.events import CallEnded, Event, Stream, Trouble
from aggregator.records.gathering import Gathering
from aggregator.secrecy import Redaction

logger = logging.getLogger(__name__)

MOST = 10_000
"""Calls that wait to be written while that fails; more are counted, and told."""
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of their arguments, together."""
RETRY = 1.0
"""Seconds before it is tried again."""
_NO_THREAD = OSError(0, "no thread can be started")


class Auditing:
    """The way of calls to the file, and what stands in it."""

    def __init__(
        self,
        audit: Audit,
        redact: Callable[[], Redaction],
        report: Callable[[Trouble | None], None],
    ) -> None:
        self._audit = audit
        self._file = AuditFile(audit)
        self._redact = redact
        self._report = report
        self._gathering = Gathering[Entry](MOST, lambda entry: entry.weight, MOST_BYTES)
        self._trouble: Trouble | None = None

    async def prepare(self) -> None:
        """See whether calls can be written down: that is said before the first, not after it."""
        write, redact = self._file.write, self._redact()
        try:
            # Whoever ends us meanwhile does not wait for a disk.
            written = await to_thread.run_sync(write, (), 0, redact, abandon_on_cancel=True)
        except RuntimeError:
            self._settle(_NO_THREAD)
        else:
            self._settle(written.problem)

    async def keep(self, stream: Stream) -> None:
        """Write down each call as it ends, until cancelled; then once more."""
        with stream.heard_by(self._hear, content=True):
            try:
                while True:
                    if self._trouble is None:
                        await self._gathering.wait()
                    try:
                        left, lost, problem = await self._gathering.hand_over(self._write)
                    except RuntimeError:
                        left, lost, problem = [], 0, _NO_THREAD
                    self._gathering.put_back(left, lost)
                    self._settle(problem)
                    if problem is not None:
                        await anyio.sleep(RETRY)
            finally:
                left, lost, problem = self._write(*self._gathering.take())
                if problem is not None and (left or lost):
                    number = len(left) + lost
                    logger.error("%d calls are not in the audit file: %s", number, problem)

    def _hear(self, event: Event) -> None:
        if isinstance(event, CallEnded):
            self._gathering.put(self._file.entry(event))

    def _write(self, entries: list[Entry], lost: int) -> tuple[list[Entry], int, OSError | None]:
        """Write calls down; return what could not be, and why."""
        written = self._file.write(entries, lost, self._redact())
        return entries[written.calls :], 0 if written.is_loss_told else lost, written.problem

    def _settle(self, problem: OSError | None) -> None:
        """Say what has changed: that calls cannot be written down, or that they can be again."""
        trouble = None
        if problem is not None:
            reason = f"`{self._audit.file}`: {in_words(problem)}"
            trouble = Trouble(reason, self._audit.required)
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble is None:
            logger.warning("calls are written to the audit file again")
        else:
            meanwhile = "no tool is called" if trouble.forbids else "calls go on"
            told = "the audit file cannot be written: %s; meanwhile %s"
            logger.error(told, trouble.reason, meanwhile)
        self._report(trouble)
