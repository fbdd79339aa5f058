"""A small encoder for tests: texts are near each other if they share runs of three letters.

Run as a program, it is the worker with this encoder in place of the model.
"""

import math
import struct
import sys
from pathlib import Path
from zlib import crc32

from aggregator.search.semantic.worker import run

DIMENSIONS = 256


class Trigrams:
    """Counts runs of three letters by their hash."""

    model = "trigrams"
    size = DIMENSIONS * 2

    def __init__(self) -> None:
        self.read: list[str] = []

    def encode(self, text: str, /) -> bytes:
        self.read.append(text)
        counts = [0.0] * DIMENSIONS
        spaced = f" {text.lower()} "
        for at in range(len(spaced) - 2):
            counts[crc32(spaced[at : at + 3].encode()) % DIMENSIONS] += 1
        length = math.hypot(*counts)
        return struct.pack(f"<{DIMENSIONS}e", *(count / length for count in counts))


if __name__ == "__main__":
    run(sys.stdin.buffer, sys.stdout.buffer, Trigrams, Path(sys.argv[1]))
