"""The vectors of the whole catalog, and how near each of them is to another."""

from array import array
from collections.abc import Sequence
from importlib import import_module
from typing import Any

Numbers = Any
"""An array of numpy's, which only this process has."""
SCALE = 32_767
"""What a likeness of 1 is written as, so that one takes two bytes."""


class Vectors:
    """Vectors in a row, each as little-endian numbers of two bytes."""

    def __init__(self, vectors: Sequence[bytes] = ()) -> None:
        # Imported by name: the default install does without it.
        self._numpy: Any = import_module("numpy")
        self._rows = len(vectors)
        self._matrix = self._numbers(b"".join(vectors)).reshape(self._rows, -1) if vectors else None

    def likeness(self, *vectors: bytes) -> "array[int]":
        """Return how near each vector is to the nearest of these, from -`SCALE` to `SCALE`."""
        if self._matrix is None:
            return array("h")
        each = [self._numpy.nan_to_num(self._matrix @ self._numbers(one)) for one in vectors]
        products = self._numpy.max(each, axis=0)
        whole = self._numpy.rint(self._numpy.clip(products, -1, 1) * SCALE)
        return array("h", whole.astype(self._numpy.int16).tobytes())

    def _numbers(self, vector: bytes) -> Numbers:
        return self._numpy.frombuffer(vector, dtype="<f2").astype(self._numpy.float32)
