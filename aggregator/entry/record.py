"""How a conversation with one client began the last time, in a file of the user's own.

What is in the file is said to a client unseen. So it must be ours, whole, and no larger than what
a start has time for; and it is used only where everything it was made of is the same.
"""

import json
import os
import stat
import time
from collections.abc import Mapping, Sequence

from aggregator.entry.basis import digest_of, digest_of_params, stamp_of

MAX_BYTES = 1024 * 1024
"""Bytes a record may have."""
MAX_SOURCES = 64
"""Variables, and files, that a record may rest on."""

Json = dict[str, object]


class Answer:
    """What was answered to one request."""

    __slots__ = ("method", "params", "result")

    def __init__(self, method: str, params: str, result: Json) -> None:
        self.method = method
        self.params = params
        """What stands for all that the client said with it."""
        self.result = result

    def fits(self, method: str, params: object) -> bool:
        """Whether the same was asked."""
        return method == self.method and digest_of_params(params).hex() == self.params


class Record:
    """The first answers to a client, and what they rest on besides the configuration."""

    __slots__ = ("after", "answers", "files", "names", "salt", "stamp")

    def __init__(
        self,
        answers: Sequence[Answer],
        *,
        names: Sequence[str] = (),
        files: Sequence[str] = (),
        salt: str = "",
        stamp: str = "",
        after: float = 0.0,
    ) -> None:
        self.answers = answers
        """In the order in which they were asked for."""
        self.names = names
        """The variables that the configuration refers to."""
        self.files = files
        """The files that it refers to."""
        self.salt = salt
        self.stamp = stamp
        """What stands for the values of the ones and the content of the others."""
        self.after = after
        """Until when, on the clock of `time.time`, a client is given another list than this."""

    def holds(self, variables: Mapping[str, str]) -> bool:
        """Whether all that it rests on is as it was."""
        stamp = stamp_of(self.salt, self.names, self.files, variables)
        return stamp is not None and stamp == self.stamp

    def put_off(self, after: float) -> "Record":
        """Return the same, with lists that wait at least so long."""
        return self._with(after=max(self.after, after))

    def sealed(self, salt: str, stamp: str) -> "Record":
        """Return the same, with another stamp for the same values."""
        return self._with(salt=salt, stamp=stamp)

    def without_lists(self) -> "Record":
        """Return the same without what servers have to say."""
        return self._with(answers=[each for each in self.answers if "tools" not in each.result])

    def _with(
        self,
        *,
        answers: Sequence[Answer] | None = None,
        salt: str | None = None,
        stamp: str | None = None,
        after: float | None = None,
    ) -> "Record":
        return Record(
            self.answers if answers is None else answers,
            names=self.names,
            files=self.files,
            salt=self.salt if salt is None else salt,
            stamp=self.stamp if stamp is None else stamp,
            after=self.after if after is None else after,
        )

    def current(self) -> Sequence[Answer]:
        """Return the answers that can be given now."""
        lists = time.time() >= self.after
        return [each for each in self.answers if lists or each.method != "tools/list"]


def written(record: Record) -> bytes | None:
    """Return the content of its file; nothing if it would be out of all proportion."""
    answers = [
        {"method": each.method, "params": each.params, "result": each.result}
        for each in record.answers
    ]
    whole = {
        "names": record.names,
        "files": record.files,
        "salt": record.salt,
        "stamp": record.stamp,
        "after": record.after,
        "answers": answers,
    }
    if not answers or max(len(record.names), len(record.files)) > MAX_SOURCES:
        return None
    try:
        line = json.dumps(whole, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    content = digest_of(line).hex().encode() + b"\n" + line
    return content if len(content) <= MAX_BYTES else None


def read(path: str) -> Record | None:
    """Return what a file holds, if it is ours and whole."""
    try:
        digest, _, line = _own(path).partition(b"\n")
        is_whole = digest == digest_of(line).hex().encode()
        return _record(line) if is_whole else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def are(kind: type, *values: object) -> bool:
    """Whether all that came as JSON is of a kind."""
    return all(isinstance(value, kind) for value in values)


def _own(path: str) -> bytes:
    """Return what is in a file that nobody else can have written.

    Raises:
        OSError: There is none, or it is a link.
        ValueError: It may be another's, is no file, or too long.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        is_ours = status.st_uid == os.geteuid() and not status.st_mode & 0o077
        if not is_ours or not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise ValueError(path)
        return file.read(MAX_BYTES)


def _record(line: bytes) -> Record:
    """Return what was written.

    Raises:
        ValueError: It is no JSON, or has another form, as does LookupError or TypeError.
    """
    whole = json.loads(line)
    names, files, answers = (whole[key] for key in ("names", "files", "answers"))
    texts = [whole["salt"], whole["stamp"], *names, *files]
    texts += [each[key] for each in answers for key in ("method", "params")]
    results = [each["result"] for each in answers]
    is_like_ours = are(str, *texts) and are(dict, *results) and are(float, whole["after"])
    if not is_like_ours or max(map(len, (names, files, answers))) > MAX_SOURCES:
        raise ValueError(texts)
    return Record(
        [Answer(each["method"], each["params"], each["result"]) for each in answers],
        names=names,
        files=files,
        salt=whole["salt"],
        stamp=whole["stamp"],
        after=whole["after"],
    )
