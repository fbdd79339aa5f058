"""The vectors of the whole catalog, and how near each of them is to another."""

from array import array
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from aggregator.search.weights import DRAWN_OUT

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
        """Return how near each vector is to the nearest of these, from -`SCALE` to `SCALE`.

        Some texts are near to nothing much, and their best would come after many that are near to
        another: each is drawn out towards the one that has the nearest.
        """
        if self._matrix is None:
            return array("h")
        numpy = self._numpy
        each = [numpy.nan_to_num(self._matrix @ self._numbers(one)) for one in vectors]
        nearest = max(one.max() for one in each)
        products = numpy.max([self._drawn_out(one, nearest) for one in each], axis=0)
        whole = numpy.rint(numpy.clip(products, -1, 1) * SCALE)
        return array("h", whole.astype(numpy.int16).tobytes())

    @staticmethod
    def _drawn_out(likeness: Numbers, nearest: float) -> Numbers:
        """Return how near all are to one text, as far as the nearest to any of them allows."""
        usual, most = likeness.mean(), likeness.max()
        if not usual < most < nearest:
            return likeness
        return usual + (likeness - usual) * ((nearest - usual) / (most - usual)) ** DRAWN_OUT

    def _numbers(self, vector: bytes) -> Numbers:
        return self._numpy.frombuffer(vector, dtype="<f2").astype(self._numpy.float32)
