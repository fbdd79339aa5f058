"""What files were before an installation, so that it can be undone to the byte."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from aggregator.cli.changes import Change, content, make
from aggregator.cli.environment import CommandError, Environment
from aggregator.memory import state_path

FOLDER = "installations"


@dataclass(frozen=True)
class Kept:
    """One file as it was, and a digest of what it was made."""

    path: Path
    before: bytes | None
    after: str


class Record:
    """The files that one installation changed."""

    def __init__(self, environment: Environment, client: str, path: Path, name: str) -> None:
        state = state_path(environment.variables, environment.platform)
        if state is None:
            raise CommandError("no directory for backups is known, as `HOME` is not set")
        digest = sha256(f"{path}\0{name}".encode()).hexdigest()[:10]
        self.folder = state.parent / FOLDER / f"{client}-{digest}"

    def load(self) -> list[Kept]:
        """Return what was kept; nothing if there is no record."""
        text = content(self.folder / "record.json")
        files: list[dict[str, Any]] = json.loads(text) if text else []
        return [
            Kept(Path(file["path"]), content(self.folder / f"{at}.before"), file["after"])
            for at, file in enumerate(files)
        ]

    def keep(self, changes: Sequence[Change]) -> None:
        """Keep what the files are now; what an earlier installation kept comes first."""
        earlier = {kept.path: kept for kept in self.load()}
        files = [_kept(change, earlier.pop(change.path, None)) for change in changes]
        files.extend(earlier.values())
        self.forget()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        listed = [{"path": str(kept.path), "after": kept.after} for kept in files]
        backups = [
            Change(self.folder / f"{at}.before", None, kept.before, confidential=True)
            for at, kept in enumerate(files)
            if kept.before is not None
        ]
        record = json.dumps(listed, indent=1).encode()
        make([*backups, Change(self.folder / "record.json", None, record, confidential=True)])

    def forget(self) -> None:
        """Remove the record."""
        for file in self.folder.glob("*"):
            file.unlink()
        if self.folder.exists():
            self.folder.rmdir()


def digest_of(data: bytes | None) -> str:
    """Return what tells a file from any other."""
    return "" if data is None else sha256(data).hexdigest()


def _kept(change: Change, earlier: Kept | None) -> Kept:
    """Keep a file as it was before the first of several installations in a row."""
    untouched = earlier is not None and earlier.after == digest_of(change.before)
    before = earlier.before if untouched and earlier else change.before
    return Kept(change.path, before, digest_of(change.after))
