"""The README shows only what is true: its configuration works, its reference is complete.

Run as a program (`python -m tests.test_readme`), it writes the reference and the names of the
clients into the README.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic.fields import FieldInfo

from aggregator.clients import INSTALLABLE
from aggregator.config import ToolSearchMode, parse_config
from aggregator.config.form import ServerForm, SettingsForm

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
REFERENCE = re.compile(r"(?<=-->\n).*?(?=<!-- end of reference -->)", re.DOTALL)
CLIENTS = re.compile(r"(?<=; it knows )[^.\n]+(?=\.\n)")


def test_the_reference_names_every_key() -> None:
    found = REFERENCE.search(README.read_text(encoding="utf-8"))

    assert found is not None
    assert found[0] == reference()


def test_the_configuration_shown_is_valid() -> None:
    text = README.read_text(encoding="utf-8")
    (shown,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)

    config = parse_config(shown, ROOT / "servers.yaml", {"GITHUB_TOKEN": "secret"})

    assert list(config.servers) == ["notes", "github"]
    assert all(server.problem is None for server in config.servers.values())
    assert list(yaml.safe_load(shown)["servers"]) == ["notes", "github"]


def test_the_clients_it_knows_are_those_of_the_table() -> None:
    assert CLIENTS.findall(README.read_text(encoding="utf-8")) == [clients()]


def test_the_test_command_is_the_one_that_ci_runs() -> None:
    readme = README.read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    for part in ("python3 -m venv .venv", "-e '.[test]'", ".venv/bin/python -m pytest -n auto"):
        assert part in readme
        assert part in ci


def reference() -> str:
    """Return the configuration reference, from the models that check the file."""
    return (
        "Each server, under its name below `servers:`:\n\n"
        f"{_table(ServerForm.model_fields)}\n"
        "At the top of the file, for all servers and clients:\n\n"
        f"{_table(SettingsForm.model_fields)}\n"
    )


def clients() -> str:
    """Return the clients that can be registered in, from the table of clients."""
    *others, last = [client.title for client in INSTALLABLE]
    return f"{', '.join(others)} and {last}"


def _table(fields: dict[str, FieldInfo]) -> str:
    return "\n".join(["| key | default | means |", "| --- | --- | --- |", *_rows(fields), ""])


def _rows(fields: dict[str, FieldInfo]) -> Iterator[str]:
    for name, field in fields.items():
        key = field.alias or name
        yield f"| `{key}` | {_default(key, field.default)} | {field.description} |"


def _default(key: str, value: object) -> str:
    """Return a value as it would be written in the file; nothing for what is not there."""
    if value == ToolSearchMode():
        return "`true`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        minutes = value >= 60 and value % 60 == 0
        return f"`{value / 60:g}m`" if minutes else f"`{value:g}s`"
    if isinstance(value, int):
        return f"`{value >> 20}MiB`" if key.endswith("Bytes") else f"`{value}`"
    return f"`{value}`" if isinstance(value, str) and value else ""


if __name__ == "__main__":
    text = REFERENCE.sub(lambda _: reference(), README.read_text(encoding="utf-8"))
    README.write_text(CLIENTS.sub(lambda _: clients(), text), encoding="utf-8")
