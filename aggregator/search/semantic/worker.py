"""The process that holds the model: texts and questions in, likenesses out, one JSON line each.

    {"version": 7, "server": "github", "texts": ["github create issue: …"]}  →  {"ready": 7}
    {"ask": 3, "text": "tel the team", "also": ["tell the team"]}  →  {"answer": 3, "near": "…"}

A server's texts replace what it had, and what is ready includes all versions before. Nearness is
base64 of numbers of two bytes, in the order in which servers were last heard of.

Questions are answered between any two texts, and the end of the input is the end.
"""

import json
import os
import signal
import sys
from array import array
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, NamedTuple

from aggregator.search.semantic.cache import Cache
from aggregator.search.semantic.clauses import clauses
from aggregator.search.semantic.encoder import Encoder, SentenceModel
from aggregator.search.semantic.vectors import Vectors
from aggregator.search.semantic.weighing import Commonness

NICENESS = 5
"""How far this process stands back for others."""
SAVED_AT_ONCE = 64
"""New vectors that are written to disk together."""

Message = Mapping[str, Any]
Send = Callable[[Message], None]


class _Known(NamedTuple):
    """What is known of the text of a tool."""

    vector: bytes
    pieces: "array[int]"


class Worker:
    """Keeps vectors in step with the catalog, and compares."""

    def __init__(self, encoder: Encoder, cache: Cache, send: Send) -> None:
        self._encoder = encoder
        self._cache = cache
        self._send = send
        self._vectors = Vectors()
        self._common = Commonness()
        self._known: dict[str, _Known] = {}
        """What is known of all texts there are now."""
        self._texts: dict[str, Sequence[str]] = {}
        self._missing: dict[str, None] = {}
        self._unsaved: list[tuple[str, bytes]] = []
        self._version: int | None = None
        """The last change, until it is known to be ready."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do until the next message."""
        return not self._missing and self._version is None

    def take(self, message: Message) -> None:
        """Heed one message."""
        match message:
            case {"version": int(version), "server": str(server), "texts": texts}:
                self._replace(server, [_written(text) for text in texts])
                self._version = version
            case {"ask": int(number), "text": str(text)}:
                texts = [*clauses(text), *message.get("also", ())]
                near = self._vectors.likeness(*(self._request(text) for text in texts))
                self._send({"answer": number, "near": b64encode(near.tobytes()).decode()})
            case _:
                raise ValueError(message)

    def work(self) -> None:
        """Take one step: compute one vector, or say that all are there."""
        if self._missing:
            self._learn(next(iter(self._missing)))
        elif self._version is not None:
            self._save()
            self._forget()
            every = (text for texts in self._texts.values() for text in texts)
            self._vectors = Vectors([self._known[text].vector for text in every])
            self._common = Commonness(known.pieces for known in self._known.values())
            self._send({"ready": self._version})
            self._version = None

    def _request(self, text: str) -> bytes:
        return self._encoder.request(_written(text), self._common)

    def _replace(self, server: str, texts: Sequence[str]) -> None:
        self._texts.pop(server, None)
        self._texts[server] = texts
        self._missing |= dict.fromkeys(text for text in texts if text not in self._known)

    def _learn(self, text: str) -> None:
        del self._missing[text]
        vector = self._cache.get(text)
        if vector is None:
            vector = self._encoder.tool(text)
            self._unsaved.append((text, vector))
        self._known[text] = _Known(vector, self._encoder.pieces(text))
        if len(self._unsaved) >= SAVED_AT_ONCE:
            self._save()

    def _save(self) -> None:
        self._cache.put(self._unsaved)
        self._unsaved.clear()

    def _forget(self) -> None:
        """Let go of the vectors of texts that are gone; on disk they stay a while."""
        wanted = {text for texts in self._texts.values() for text in texts}
        self._known = {text: known for text, known in self._known.items() if text in wanted}
        self._cache.tidy()


def _written(text: str) -> str:
    """Return a text without what cannot be written: half of a pair of JSON's escapes."""
    return text.encode("utf-8", "replace").decode()


def run(source: BinaryIO, sink: BinaryIO, load: Callable[[], Encoder], path: Path | None) -> None:
    """Work until the input ends."""
    inbox: SimpleQueue[Message | None] = SimpleQueue()
    # The input is read at all times, so that whoever writes to us never waits.
    Thread(target=_read, args=(source, inbox), daemon=True).start()
    encoder = load()
    cache = Cache(path, model=encoder.model, size=encoder.size)
    worker = Worker(encoder, cache, lambda message: _write(sink, message))
    with suppress(BrokenPipeError):
        _serve(worker, inbox)
    cache.close()


def _serve(worker: Worker, inbox: "SimpleQueue[Message | None]") -> None:
    while True:
        try:
            message = inbox.get(block=worker.idle)
        except Empty:
            worker.work()
            continue
        if message is None:
            return
        worker.take(message)


def _read(source: BinaryIO, inbox: "SimpleQueue[Message | None]") -> None:
    for line in source:
        inbox.put(json.loads(line))
    inbox.put(None)


def _write(sink: BinaryIO, message: Message) -> None:
    sink.write(json.dumps(message).encode() + b"\n")
    sink.flush()


def stand_back() -> None:
    """Leave interruptions to whoever started us, and the processor to whoever wants it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A product of this size takes longer to share out among threads than to compute.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def _own_output() -> BinaryIO:
    """Return the standard output for messages alone; what others print goes to the log."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def main() -> None:
    """Run with the model that is installed; the argument names the file of known vectors."""
    stand_back()
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    try:
        run(sys.stdin.buffer, _own_output(), SentenceModel, path)
    except ImportError as error:
        sys.exit(f"{error.name or error}: cannot be used")


if __name__ == "__main__":
    main()
