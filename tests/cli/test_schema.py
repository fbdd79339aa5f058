"""The schema for editors: fresh, valid, and true to what is accepted."""

import json
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import ROOT, Shell

COMMITTED = ROOT / "docs" / "servers.schema.json"


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    schema = json.loads(COMMITTED.read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def accepts(validator: Draft7Validator, data: Any) -> bool:
    return validator.is_valid(data)  # pyright: ignore[reportUnknownMemberType] - its stubs


def test_the_committed_schema_is_the_one_the_command_prints(shell: Shell) -> None:
    """Run `aggregator schema > docs/servers.schema.json` when it is not."""
    printed = shell.run("schema")

    assert printed.status is ExitStatus.FINE
    assert printed.out == COMMITTED.read_text(encoding="utf-8")


def test_the_file_that_comes_with_us_is_valid(validator: Draft7Validator) -> None:
    data = yaml.safe_load((ROOT / "servers.yaml").read_text(encoding="utf-8"))

    assert accepts(validator, data)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("servers: {a: {command: x, args: [1, true], env: {PORT: 8080}}}", True),
        ("servers: {a: {command: x, enabled: '${ON:-true}', maxInFlight: '${N}'}}", True),
        ("servers: {a: {command: x, connectTimeout: 2m, alwaysLoad: ['get_*']}}", True),
        ("servers: {a: {description: x}}", False),
        ("servers: {a: {command: x, comand: y}}", False),
        ("servers: {a: {command: x, type: telepathy}}", False),
        ("servers: {a: {command: x, enabled: maybe}}", False),
        ("maxResults: 0", False),
    ],
)
def test_the_schema_accepts_what_the_reader_accepts(
    validator: Draft7Validator, text: str, valid: bool
) -> None:
    assert accepts(validator, yaml.safe_load(text)) is valid
