"""Whether the model can be used, as its files say."""

import sys
from hashlib import sha256
from pathlib import Path

import pytest

from aggregator.search.semantic import encoder

CONTENT = b"weights"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the model be a file of a package that anybody has."""
    folder = tmp_path / "model_of_ours"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('it is not to be run')")
    (folder / "model.onnx").write_bytes(CONTENT)
    file = ("model_of_ours", "model.onnx", sha256(CONTENT).hexdigest())
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(encoder, "RUNTIME", ("json",))
    monkeypatch.setattr(encoder, "WEIGHTS", file)
    monkeypatch.setattr(encoder, "VOCABULARY", file)
    return folder


@pytest.mark.usefixtures("folder")
def test_files_that_are_as_they_were_measured_have_no_fault() -> None:
    assert encoder.installed()
    assert encoder.fault() is None


def test_a_file_that_is_another_or_not_there_is_a_fault(folder: Path) -> None:
    said = "`model_of_ours` has not the `model.onnx` that was measured"

    (folder / "model.onnx").write_bytes(b"others")
    assert encoder.fault() == said
    (folder / "model.onnx").unlink()
    assert encoder.fault() == said
    assert encoder.installed()


@pytest.mark.usefixtures("folder")
def test_packages_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "RUNTIME", ("json", "no_such_one", "nor_this"))

    assert encoder.fault() == "`no_such_one` and `nor_this` cannot be found"
    assert not encoder.installed()
