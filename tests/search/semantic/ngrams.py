"""A small encoder for tests: texts are near each other if they share runs of three letters.

Run as a program, it is the worker with this encoder in place of the model.
"""

import math
import struct
import sys
from array import array
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

from aggregator.search.semantic.weighing import Commonness
from aggregator.search.semantic.worker import run

DIMENSIONS = 256


class Trigrams:
    """Counts runs of three letters by their hash."""

    model = "trigrams"
    size = DIMENSIONS * 2

    def __init__(self) -> None:
        self.read: list[str] = []

    def pieces(self, text: str, /) -> "array[int]":
        return array("H", sorted(set(_runs(text))))

    def tool(self, text: str, /) -> bytes:
        self.read.append(text)
        return _vector(dict.fromkeys(range(DIMENSIONS), 1.0), text)

    def request(self, text: str, common: Commonness, /) -> bytes:
        return _vector({letters: common.worth(letters) for letters in _runs(text)}, text)


def _runs(text: str) -> list[int]:
    spaced = f" {text.lower()} "
    ends = range(3, len(spaced) + 1)
    return [crc32(spaced[end - 3 : end].encode()) % DIMENSIONS for end in ends]


def _vector(worth: Mapping[int, float], text: str) -> bytes:
    counts = [0.0] * DIMENSIONS
    for letters in _runs(text):
        counts[letters] += worth[letters]
    length = math.hypot(*counts)
    return struct.pack(f"<{DIMENSIONS}e", *(count / length for count in counts))


if __name__ == "__main__":
    run(sys.stdin.buffer, sys.stdout.buffer, Trigrams, Path(sys.argv[1]))
