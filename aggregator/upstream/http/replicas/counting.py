"""What each identity has asked of all replicas together, told from one to the other meanwhile.

No call waits for it: each replica tells the others a second later at the most, or once a good part
of a limit was used, and counts what it has heard. Without a store each counts for itself.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from aggregator.basics.json import JsonObject, as_object, items
from aggregator.upstream.allowances import Allowances
from aggregator.upstream.http.replicas.mail import Mail
from aggregator.upstream.other_replicas import Report

AT_ONCE = 500
"""Identities that are told of in one message."""


class Counting:
    """One replica's part of it."""

    def __init__(self, mail: Mail, allowances: Allowances) -> None:
        self._mail = mail
        self._allowances = allowances

    async def run(self) -> None:
        """Tell others what was let through here, until cancelled."""
        while True:
            await self._allowances.until_due()
            self._tell(self._allowances.reports())

    def introduce(self, *, wants: bool = True) -> None:
        """Tell others all of the last minute, and have them tell it, too."""
        self._tell(self._allowances.reports(is_whole=True), wants=wants)

    def hear(self, message: JsonObject) -> None:
        """Take note of what another has let through."""
        told = as_object(message["holders"])
        self._allowances.hear(message["from"], {who: _read(each) for who, each in told.items()})
        if message.get("wants"):
            self.introduce(wants=False)

    def _tell(self, reports: Mapping[str, Report], *, wants: bool = False) -> None:
        rest = iter(reports.items())
        while part := {who: _written(each) for who, each in islice(rest, AT_ONCE)}:
            self._mail.spent(part)
        if wants:
            self._mail.spent({}, wants=True)


def _written(report: Report) -> list[Any]:
    return [report.in_flight, [[*each] for each in report.passed], report.is_whole]


def _read(written: object) -> Report:
    in_flight, passed, is_whole = items(written)
    times = tuple((float(age), int(number)) for age, number in map(items, items(passed)))
    return Report(int(in_flight), times, is_whole=bool(is_whole))
