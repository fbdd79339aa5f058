"""What the pages show is true: entries are understood, configurations work, hints find."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from aggregator.cli.clients.foreign import foreign_servers, recognise
from aggregator.cli.environment import Environment
from aggregator.clients.client import FROM_ENVIRONMENT
from aggregator.config import parse_config
from tests.processes.driver import aggregator, texts

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))]
STEP = re.compile(r"^ *([\w/]+\.py) +([\w.]+(?: → [\w.]+)*)(?: {2,}|$)", re.MULTILINE)
"""A step of a journey: a file, and the functions in it that it goes through."""
HTTP_ENTRY = re.compile(
    r"^\| ([^|]+) \| `[^`]+` \| `((?:\{|extensions|mcpServers).*)` \|$", re.MULTILINE
)
FILE = re.compile(r"`((?:aggregator|benchmarks|tests)/[\w./-]+)`")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)")
CONFIGURATION = re.compile(r"^```yaml\n(servers:\n.*?)^```", re.MULTILINE | re.DOTALL)
FOUND = re.compile(r"^\| `([^`]+)` \| (?:`(\w+)`|nothing) \| `(\w+)` \|$", re.MULTILINE)


def written(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


HTTP_ENTRIES = dict(HTTP_ENTRY.findall(written("clients.md")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_ours_that_are_named_are_there(page: Path) -> None:
    for named in FILE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / named).exists(), f"{page.name} names {named}"


def test_the_journeys_go_through_functions_that_are_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    steps = STEP.findall(page)

    missing = [
        f"{path}: {name}"
        for path, names in steps
        for name in names.split(" → ")
        if f"def {name.rpartition('.')[2]}(" not in (ROOT / "aggregator" / path).read_text("utf-8")
    ]

    assert len(steps) > 20
    assert missing == []


@pytest.mark.parametrize("client", HTTP_ENTRIES)
def test_an_entry_over_http_is_one_that_import_reads(client: str, tmp_path: Path) -> None:
    entry = HTTP_ENTRIES[client]
    path = tmp_path / ("entry.json" if entry.startswith("{") else "entry.yaml")
    # By the name of its variable it is known to be ours, which import does not take over.
    path.write_text(entry.replace(FROM_ENVIRONMENT, "OTHER_TOKEN"), encoding="utf-8")
    environment = Environment.of_process()

    (server,) = foreign_servers(recognise(path, environment), environment)

    assert (server.name, server.problem) == ("toolbox", None)
    assert server.entry["url"] == "http://127.0.0.1:8765/mcp"
    assert server.entry["headers"]["Authorization"].startswith("Bearer ")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if CONFIGURATION.search(page.read_text("utf-8"))], ids=str
)
def test_configurations_shown_are_valid(page: Path) -> None:
    for shown in CONFIGURATION.findall(page.read_text(encoding="utf-8")):
        names = set(re.findall(r"\$\{(\w+)", shown))

        config = parse_config(shown, ROOT / "servers.yaml", dict.fromkeys(names, "x" * 20))

        assert all(server.problem is None for server in config.servers.values())
        assert not config.warnings


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_hints_shown_find_what_is_said(tmp_path: Path) -> None:
    page = written("describing.md")
    shown, _put_right = CONFIGURATION.findall(page)
    document = yaml.safe_load((ROOT / "servers.yaml").read_text(encoding="utf-8"))
    # What is shown is found by words alone, as where nothing else is installed.
    document["semantic"] = False
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    rows = FOUND.findall(page)
    queries = [query for query, _, _ in rows]

    without = await first_matches(tmp_path, document, queries)
    document["servers"] |= yaml.safe_load(shown)["servers"]
    with_hints = await first_matches(tmp_path, document, queries)

    assert len(rows) == 3
    assert list(zip(queries, without, with_hints, strict=True)) == rows


async def first_matches(directory: Path, document: dict[str, Any], queries: list[str]) -> list[str]:
    """Return the first match of each query, or nothing where there is none."""
    found = list[str]()
    async with aggregator(directory, **document) as client:
        for query in queries:
            answer = texts(await client.call("ToolSearch", query=query, max_results=1, wait=30))
            found.append("".join(re.findall(r"^## (\w+)", answer, re.MULTILINE)[:1]))
    return found
