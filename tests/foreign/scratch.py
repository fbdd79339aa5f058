"""A directory for servers to work in, the same at the beginning of every run."""

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

ADA = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["programs"]}


def fill(work: Path) -> None:
    """Make the directory anew: a text, a page, a database, a repository."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "hello.txt").write_text("Hello, world\n", encoding="utf-8")
    (work / "page.html").write_text("<h1>Hello</h1><p>A <b>page</b></p>", encoding="utf-8")
    (work / "memory.jsonl").write_text(json.dumps(ADA) + "\n", encoding="utf-8")
    with closing(sqlite3.connect(work / "data.db")) as database, database:
        database.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
        database.execute("INSERT INTO people (name) VALUES ('Ada'), ('Grace')")
    git = shutil.which("git") or "git"
    subprocess.run([git, "init", "--quiet", str(work / "repository")], check=True)
    (work / "repository" / "new.txt").write_text("new\n", encoding="utf-8")
