"""Servers that other people publish: which version, how each is started, what is asked of it.

Each has two calls that need no account and no network, or that fail for want of them, in the same
words every time. `{work}` in arguments is the directory that `scratch` fills.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Json = dict[str, Any]


class Call(NamedTuple):
    """A call of a tool, by the name its server has for it."""

    tool: str
    arguments: Json


class Published(NamedTuple):
    """One server, as its registry has it."""

    name: str
    registry: Literal["npm", "pypi"]
    package: str
    version: str
    program: str
    calls: tuple[Call, Call]
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})
    beside: tuple[str, ...] = ()
    """What must be installed with it, as it no longer runs with the newest of what it needs."""

    @property
    def pin(self) -> str:
        """What an installer is told."""
        return f"{self.package}{'@' if self.registry == 'npm' else '=='}{self.version}"


def _npm(
    name: str, package: str, version: str, program: str, *calls: Call, **more: Any
) -> Published:
    first, second = calls
    return Published(name, "npm", package, version, program, (first, second), **more)


def _pypi(name: str, package: str, version: str, *calls: Call, **more: Any) -> Published:
    first, second = calls
    program = more.pop("program", package)
    return Published(name, "pypi", package, version, program, (first, second), **more)


_TRIANGLE = {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1], [0, 0]]]}

SERVERS = (
    _npm(
        "everything",
        "@modelcontextprotocol/server-everything",
        "2026.8.31",
        "mcp-server-everything",
        Call("get-sum", {"a": 2, "b": 3}),
        Call("get-structured-content", {"location": "Chicago"}),
        args=("stdio",),
    ),
    _npm(
        "filesystem",
        "@modelcontextprotocol/server-filesystem",
        "2026.8.31",
        "mcp-server-filesystem",
        Call("read_text_file", {"path": "{work}/hello.txt"}),
        Call("list_directory", {"path": "/"}),
        args=("{work}",),
    ),
    _npm(
        "memory",
        "@modelcontextprotocol/server-memory",
        "2026.8.31",
        "mcp-server-memory",
        Call("read_graph", {}),
        Call("search_nodes", {"query": "Ada"}),
        env={"MEMORY_FILE_PATH": "{work}/memory.jsonl"},
    ),
    _npm(
        "sequential-thinking",
        "@modelcontextprotocol/server-sequential-thinking",
        "2026.8.31",
        "mcp-server-sequential-thinking",
        Call(
            "sequentialthinking",
            {"thought": "One", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2},
        ),
        Call("sequentialthinking", {"thought": "Two"}),
    ),
    _npm(
        "playwright",
        "@playwright/mcp",
        "0.0.83",
        "playwright-mcp",
        Call("browser_resize", {}),
        Call("browser_navigate", {}),
        args=("--headless",),
    ),
    _npm(
        "chrome-devtools",
        "chrome-devtools-mcp",
        "1.11.0",
        "chrome-devtools-mcp",
        Call("click", {}),
        Call("new_page", {}),
        args=("--headless", "--no-usage-statistics"),
    ),
    _npm(
        "browsermcp",
        "@browsermcp/mcp",
        "0.1.3",
        "mcp-server-browsermcp",
        Call("browser_navigate", {"url": "about:blank"}),
        Call("browser_click", {}),
    ),
    _npm(
        "context7",
        "@upstash/context7-mcp",
        "4.1.1",
        "context7-mcp",
        Call("resolve-library-id", {}),
        Call("query-docs", {}),
    ),
    _npm(
        "notion",
        "@notionhq/notion-mcp-server",
        "2.5.2",
        "notion-mcp-server",
        Call("API-get-user", {}),
        Call("API-retrieve-a-block", {}),
        env={"NOTION_TOKEN": "ntn_none"},
    ),
    _npm(
        "sentry",
        "@sentry/mcp-server",
        "0.39.0",
        "sentry-mcp",
        Call("find_projects", {}),
        Call("search_sentry_tools", {}),
        args=("--access-token=none",),
    ),
    _npm(
        "firecrawl",
        "firecrawl-mcp",
        "3.26.0",
        "firecrawl-mcp",
        Call("firecrawl_map", {}),
        Call("firecrawl_search", {}),
        env={"FIRECRAWL_API_KEY": "none"},
    ),
    _npm(
        "tavily",
        "tavily-mcp",
        "0.2.22",
        "tavily-mcp",
        Call("tavily_search", {}),
        Call("tavily_extract", {}),
        env={"TAVILY_API_KEY": "none"},
    ),
    _npm(
        "exa",
        "exa-mcp-server",
        "3.4.1",
        "exa-mcp-server",
        Call("web_search_exa", {}),
        Call("web_fetch_exa", {}),
        env={"EXA_API_KEY": "none"},
    ),
    _npm(
        "brave",
        "@brave/brave-search-mcp-server",
        "2.1.4",
        "brave-search-mcp-server",
        Call("brave_web_search", {}),
        Call("brave_summarizer", {}),
        args=("--transport", "stdio"),
        env={"BRAVE_API_KEY": "none"},
    ),
    _npm(
        "cloudflare",
        "@cloudflare/mcp-server-cloudflare",
        "0.2.0",
        "mcp-server-cloudflare",
        Call("kv_get", {}),
        Call("worker_get", {}),
        args=("run", "none"),
        env={"CLOUDFLARE_API_TOKEN": "none"},
    ),
    _npm(
        "kubernetes",
        "mcp-server-kubernetes",
        "4.1.7",
        "mcp-server-kubernetes",
        Call("ping", {}),
        Call("kubectl_scale", {}),
    ),
    _npm(
        "azure",
        "@azure/mcp",
        "2.0.5",
        "azmcp",
        Call("get_azure_bestpractices", {"intent": "list", "learn": True}),
        Call("cloudarchitect", {"intent": "list", "learn": True}),
        args=("server", "start"),
        env={"AZURE_MCP_COLLECT_TELEMETRY": "false"},
    ),
    _npm(
        "figma",
        "figma-developer-mcp",
        "0.13.2",
        "figma-developer-mcp",
        Call("get_figma_data", {}),
        Call("download_figma_images", {"fileKey": "none"}),
        args=("--stdio", "--figma-api-key=none"),
    ),
    _npm(
        "chart",
        "@antv/mcp-server-chart",
        "0.9.10",
        "mcp-server-chart",
        Call("generate_pie_chart", {}),
        Call("generate_liquid_chart", {"percent": 7}),
    ),
    _npm(
        "mapbox",
        "@mapbox/mcp-server",
        "0.14.0",
        "mcp-server",
        Call("area_tool", {"geometry": _TRIANGLE}),
        Call("length_tool", {}),
        env={"MAPBOX_ACCESS_TOKEN": "pk.eyJ1Ijoibm9uZSJ9.none"},
    ),
    _npm(
        "hubspot",
        "@hubspot/mcp-server",
        "0.4.0",
        "mcp-hubspot",
        Call("hubspot-generate-feedback-link", {}),
        Call("hubspot-list-objects", {}),
        env={"PRIVATE_APP_ACCESS_TOKEN": "none"},
    ),
    _npm(
        "mongodb",
        "mongodb-mcp-server",
        "3.0.4",
        "mongodb-mcp-server",
        Call("count", {}),
        Call("connect", {"connectionString": "none"}),
        env={"MDB_MCP_TELEMETRY": "disabled"},
    ),
    _npm(
        "airtable",
        "airtable-mcp-server",
        "1.14.0",
        "airtable-mcp-server",
        Call("list_records", {}),
        Call("list_tables", {}),
        env={"AIRTABLE_API_KEY": "none"},
    ),
    _npm(
        "eslint",
        "@eslint/mcp",
        "0.3.13",
        "mcp",
        Call("lint-files", {}),
        Call("lint-files", {"filePaths": []}),
    ),
    _npm(
        "elasticsearch",
        "@elastic/mcp-server-elasticsearch",
        "0.3.1",
        "mcp-server-elasticsearch",
        Call("search", {}),
        Call("get_mappings", {}),
        env={"ES_URL": "http://127.0.0.1:9", "ES_API_KEY": "none"},
    ),
    _npm(
        "circleci",
        "@circleci/mcp-server-circleci",
        "0.20.0",
        "mcp-server-circleci",
        Call("config_helper", {}),
        Call("list_followed_projects", {"params": 1}),
        env={"CIRCLECI_TOKEN": "none"},
    ),
    _pypi(
        "time",
        "mcp-server-time",
        "2026.10.19",
        Call(
            "convert_time",
            {"source_timezone": "UTC", "time": "25:00", "target_timezone": "Asia/Tokyo"},
        ),
        Call("get_current_time", {"timezone": "Nowhere"}),
        args=("--local-timezone", "UTC"),
    ),
    _pypi(
        "fetch",
        "mcp-server-fetch",
        "2026.10.24",
        Call("fetch", {}),
        Call("fetch", {"url": "http://127.0.0.1:9/"}),
    ),
    _pypi(
        "git",
        "mcp-server-git",
        "2026.10.19",
        Call("git_status", {"repo_path": "{work}/repository"}),
        Call("git_log", {"repo_path": "{work}"}),
    ),
    _pypi(
        "sqlite",
        "mcp-server-sqlite",
        "2025.4.25",
        Call("read_query", {"query": "SELECT * FROM people"}),
        Call("describe_table", {"table_name": "people"}),
        beside=("mcp<2",),
        args=("--db-path", "{work}/data.db"),
    ),
    _pypi(
        "markitdown",
        "markitdown-mcp",
        "0.0.1a4",
        Call("convert_to_markdown", {"uri": "file://{work}/page.html"}),
        Call("convert_to_markdown", {}),
        beside=("pydantic<2.12",),
    ),
    _pypi(
        "motherduck",
        "mcp-server-motherduck",
        "1.1.0",
        Call("execute_query", {"sql": "SELECT 6 * 7 AS answer"}),
        Call("execute_query", {"sql": "SELEC"}),
        args=("--db-path", ":memory:", "--read-write"),
    ),
    _pypi(
        "duckdb",
        "mcp-server-duckdb",
        "1.1.0",
        Call("query", {"query": "SELECT 6 * 7 AS answer"}),
        Call("query", {"query": "SELEC"}),
        beside=("mcp<2",),
        args=("--db-path", "{work}/data.duckdb"),
    ),
    _pypi(
        "aws-documentation",
        "awslabs.aws-documentation-mcp-server",
        "1.2.3",
        Call("read_documentation", {"url": "https://example.com/"}),
        Call("search_documentation", {}),
    ),
    _pypi(
        "arxiv",
        "arxiv-mcp-server",
        "0.8.2",
        Call("list_papers", {}),
        Call("read_paper", {"paper_id": "0000.00000"}),
        args=("--storage-path", "{work}/papers"),
    ),
    _pypi(
        "wikipedia",
        "wikipedia-mcp",
        "2.0.1",
        Call("search_wikipedia", {}),
        Call("get_article", {}),
    ),
    _pypi(
        "duckduckgo",
        "duckduckgo-mcp-server",
        "0.7.0",
        Call("search", {}),
        Call("fetch_content", {"url": "http://127.0.0.1:9/"}),
    ),
    _pypi(
        "excel",
        "excel-mcp-server",
        "2.2.2",
        Call("list_workbooks", {}),
        Call("describe_workbook", {"path": "{work}/none.xlsx"}),
        args=("stdio",),
    ),
    _pypi(
        "word",
        "office-word-mcp-server",
        "1.1.11",
        Call("get_document_info", {"filename": "{work}/none.docx"}),
        Call("list_available_documents", {"directory": "{work}"}),
        program="word_mcp_server",
    ),
)
