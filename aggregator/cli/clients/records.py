"""What files were before an installation, so that it can be undone to the byte."""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from aggregator.basics.frozen import frozen
from aggregator.cli.clients.changes import Change, content, make
from aggregator.cli.clients.location import ClientFile
from aggregator.cli.environment import CommandError, Environment
from aggregator.memory import state_path

FOLDER = "installations"
STATES = ("before", "after")
"""Of each file, what is kept."""


@frozen(slots=False)
class Kept:
    """One file as it was before an installation, and as it was made."""

    path: Path
    before: bytes | None
    after: bytes | None
    made: tuple[Path, ...] = ()
    """The folders that were made for it, the innermost first."""


class Record:
    """The files that one installation changed; a file may have places for several."""

    def __init__(self, environment: Environment, client: str, file: ClientFile, name: str) -> None:
        state = state_path(environment.variables, environment.platform)
        if state is None:
            raise CommandError("no directory for backups is known, as `HOME` is not set")
        where = "\0".join((str(file.path), *file.keys, name))
        digest = sha256(where.encode()).hexdigest()[:10]
        self.folder = state.parent / FOLDER / f"{client}-{digest}"

    def load(self) -> list[Kept]:
        """Return what was kept; nothing if there is no record."""
        text = content(self.folder / "record.json")
        files: list[dict[str, Any]] = json.loads(text) if text else []
        return [
            Kept(
                Path(file["path"]),
                *(content(self.folder / f"{at}.{when}") for when in STATES),
                # What earlier versions kept does not say; what was there before must stay.
                made=tuple(map(Path, file.get("made", ()))),
            )
            for at, file in enumerate(files)
        ]

    def keep(self, files: Sequence[Kept]) -> None:
        """Keep files, beside the others that an earlier installation changed."""
        paths = {kept.path for kept in files}
        files = [*files, *(kept for kept in self.load() if kept.path not in paths)]
        self.forget()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        listed = [{"path": str(kept.path), "made": [*map(str, kept.made)]} for kept in files]
        record = json.dumps(listed, indent=1).encode()
        backups = [each for at, kept in enumerate(files) for each in self._backups(at, kept)]
        make([*backups, Change(self.folder / "record.json", None, record, confidential=True)])

    def _backups(self, at: int, kept: Kept) -> Iterator[Change]:
        for when, data in zip(STATES, (kept.before, kept.after), strict=True):
            if data is not None:
                yield Change(self.folder / f"{at}.{when}", None, data, confidential=True)

    def forget(self) -> None:
        """Remove the record."""
        for file in self.folder.glob("*"):
            file.unlink()
        if self.folder.exists():
            self.folder.rmdir()
