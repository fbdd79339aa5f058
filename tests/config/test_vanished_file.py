"""A file that goes away while it is being looked at."""

from pathlib import Path

from aggregator.config.source import anyone_can_write


def test_a_file_that_is_gone_again_is_no_danger(tmp_path: Path) -> None:
    """Some editors take a file away for a moment, and a reload may come at that very moment."""
    assert not anyone_can_write(tmp_path / "servers.yaml")
