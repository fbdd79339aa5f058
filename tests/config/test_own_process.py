"""Which servers are taken to need a process for every client, by what their command runs."""

from pathlib import Path

import pytest

from aggregator.config import parse_config
from aggregator.config.own_process import KNOWN, why_own_process

BROWSER = KNOWN["@playwright/mcp"]


@pytest.mark.parametrize(
    "line",
    [
        "npx @playwright/mcp",
        "npx -y @playwright/mcp@latest --headless",
        "npx -y --package @playwright/mcp@0.0.41 playwright-mcp",
        "/usr/local/bin/npx chrome-devtools-mcp@0.9.0",
        "bunx puppeteer-mcp-server",
        "uvx --from browser-use[cli] browser-use --mcp",
        "uvx mcp-server-browser-use==0.1.9",
        "pipx run mcp-server-browser-use",
        "docker run -i --rm --init mcr.microsoft.com/playwright/mcp:latest",
        "docker run -i mcp/puppeteer",
        "node ./node_modules/@playwright/mcp/cli.js",
        r"node C:\work\node_modules\chrome-devtools-mcp\build\index.js",
        "playwright-mcp --headless",
        "cmd /c npx -y @playwright/mcp@latest",
        r"C:\tools\npx.cmd @browsermcp/mcp@latest",
    ],
)
def test_a_browser_is_known_however_it_is_started(line: str) -> None:
    command, *arguments = line.split()

    assert why_own_process(command, arguments) == BROWSER


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @modelcontextprotocol/server-filesystem browser-use",
        "npx -y @modelcontextprotocol/server-memory@2025.1.1",
        "uvx mcp-server-git --repository /src/chrome-devtools-mcp",
        "npx",
        "npx --package",
        "node /src/chrome-devtools-mcp/index.js",
        "python server.py node_modules/@playwright/mcp",
        "docker run -i mcp/fetch",
    ],
)
def test_others_are_shared(line: str) -> None:
    command, *arguments = line.split()

    assert why_own_process(command, arguments) is None


def test_a_server_elsewhere_has_no_command() -> None:
    assert why_own_process(None, ()) is None


@pytest.mark.parametrize("name", KNOWN)
def test_each_is_found_by_its_name(name: str) -> None:
    ways: list[tuple[str, list[str]]] = [
        ("npx", ["-y", f"{name}@1.0"]),
        ("uvx", [name]),
        ("docker", [name]),
        (name, []),
    ]

    assert any(why_own_process(*way) == KNOWN[name] for way in ways)


@pytest.mark.parametrize(
    ("server", "is_so"),
    [
        ("command: npx, args: ['@playwright/mcp']", True),
        ("command: npx, args: ['@playwright/mcp'], perClient: false", False),
        ("command: [npx, -y, chrome-devtools-mcp]", True),
        ("command: my-pad", False),
        ("command: my-pad, perClient: true", True),
        ("url: 'https://example.com/mcp'", False),
        ("url: 'https://example.com/mcp', perClient: true", True),
    ],
)
def test_the_file_has_the_last_word(server: str, *, is_so: bool) -> None:
    config = parse_config(f"servers: {{a: {{{server}}}}}", Path("servers.yaml"), {})

    assert [each.per_client for each in config.servers.values()] == [is_so]
