"""The table of clients: everything that is known of each, in one entry.

A new client is one entry here and, if it keeps its servers in a file, a sample of that file in
`tests/cli/files`: install, import, doctor, the help and the tests of them all go by this table.

In paths, `{home}`, `{project}`, `{config}` (programs' settings), `{support}` (the same, but for
macOS), `{claude}` and `{codex}` (which have variables of their own) stand for directories.
"""

from aggregator.clients.client import (
    FROM_ENVIRONMENT,
    ROOTED,
    Client,
    ClientProfile,
    FileTemplate,
    VariableStyle,
    WebEntry,
)

PLAIN: tuple[VariableStyle, ...] = ("env", "braces", "place")
EDITOR: tuple[VariableStyle, ...] = (*PLAIN, "input")

IN_BRACES, AS_ENV = f"${{{FROM_ENVIRONMENT}}}", f"${{env:{FROM_ENVIRONMENT}}}"
"""How files refer to the token."""

CLIENTS: tuple[Client, ...] = (
    Client(
        "claude-code",
        "Claude Code",
        (
            ClientProfile(
                ("claude-code",),
                "same-turn",
                tool_form="mcp__<server>__{}",
                defers_late_tools=True,
                max_result_chars=50_000,
                needs_structured=False,
                skill_places=("/.claude/skills",),
                evidence="lab, 2.1.325: lists again within 3 ms, but a tool that joins is only "
                "announced by name, to be found by its own tool search; longer results become a "
                "file with a preview",
            ),
        ),
        {
            "user": FileTemplate("{claude}/.claude.json"),
            "project": FileTemplate("{project}/.mcp.json"),
            "local": FileTemplate("{claude}/.claude.json", ("projects", "{project}", "mcpServers")),
        },
        variables=PLAIN,
        extra={"type": "stdio", "alwaysLoad": True},
        unshared=ROOTED,
        web=WebEntry(IN_BRACES, {"type": "http", "alwaysLoad": True}),
    ),
    Client(
        "claude-desktop",
        "Claude Desktop",
        (
            ClientProfile(
                ("claude-ai", "Claude Desktop"),
                "never",
                title="Claude Desktop and claude.ai",
                evidence="anthropics/claude-ai-mcp#960, #45, #137: the list is fetched, new tools "
                "are not registered",
            ),
        ),
        {"user": FileTemplate("{support}/Claude/claude_desktop_config.json")},
    ),
    Client(
        "codex",
        "Codex",
        (
            ClientProfile(
                ("codex-mcp-client", "Codex"),
                "never",
                title="Codex CLI",
                max_result_chars=12_000,
                # It cuts the middle out of more, for good; less than this only of unknown models.
                max_result_tokens=16_000,
                needs_structured=False,
                skill_places=("/.codex/skills", "/.agents/skills"),
                evidence="lab, 0.166.0, and its source: the notification is only logged; "
                "openai/codex#10105, #33266, #35583, #37417",
            ),
        ),
        {"user": FileTemplate("{codex}/config.toml", ("mcp_servers",))},
        extra={"required": True, "omit_tools_from": ["deferred"]},
        handing="names",
        # Its source refuses any other.
        takes_any_name=False,
        # In the lab through a hub, 0.166.0: it declares no roots.
        unshared="",
        web=WebEntry("", {"required": True, "omit_tools_from": ["deferred"]}),
    ),
    Client(
        "gemini-cli",
        "Gemini CLI",
        (
            ClientProfile(
                ("gemini-cli-mcp-client", "gemini-cli"),
                "same-turn",
                tool_form="mcp_<server>_{}",
                max_result_chars=40_000,
                skill_places=("/.gemini/skills",),
                evidence="lab, 0.61.0: lists again, declared or not, and has the new tool for its "
                "model some 50 ms later",
            ),
        ),
        {
            "user": FileTemplate("{home}/.gemini/settings.json"),
            "project": FileTemplate("{project}/.gemini/settings.json"),
        },
        variables=("braces", "bare", "percent"),
        handing="references",
        tries_transports=True,
        unshared=ROOTED,
        web=WebEntry(IN_BRACES, address="httpUrl"),
    ),
    Client(
        "copilot-cli",
        "GitHub Copilot CLI",
        (
            ClientProfile(
                ("copilot-cli", "github-copilot-developer"),
                "after-result",
                tool_form="<server>-{}",
                max_result_chars=18_000,
                needs_structured=False,
                reads_questions=False,
                evidence="lab, 1.0.102: lists again when the call returns, before the next model "
                "request; says that it can be asked, and takes a result that asks for a failure",
            ),
        ),
        {
            "user": FileTemplate("{home}/.copilot/mcp-config.json"),
            "project": FileTemplate("{project}/.github/mcp.json"),
        },
        variables=("braces", "bare"),
        extra={"type": "local", "tools": ["*"], "deferTools": "never"},
        # In the lab through a hub, 1.0.102: it declares no roots.
        unshared="",
    ),
    Client(
        "vscode",
        "VS Code",
        (
            ClientProfile(
                ("Visual Studio Code", "Visual Studio Code - Insiders"),
                "same-turn",
                defers_late_tools=True,
                evidence="its source: every call waits for the refreshed list; tools outside a "
                "fixed core are deferred behind its own search",
            ),
        ),
        {
            "user": FileTemplate("{support}/Code/User/mcp.json", ("servers",)),
            "project": FileTemplate("{project}/.vscode/mcp.json", ("servers",)),
        },
        variables=EDITOR,
        extra={"type": "stdio"},
        unshared=ROOTED,
        web=WebEntry(AS_ENV, {"type": "http"}),
    ),
    Client(
        "cursor",
        "Cursor",
        (
            ClientProfile(
                ("cursor-vscode", "Cursor"),
                evidence="mixed reports: not acted on mid-session (forum thread 161459), "
                "mattt/iMCP#13",
            ),
        ),
        {
            "user": FileTemplate("{home}/.cursor/mcp.json"),
            "project": FileTemplate("{project}/.cursor/mcp.json"),
        },
        variables=EDITOR,
        unshared=ROOTED,
        web=WebEntry(AS_ENV),
    ),
    Client(
        "windsurf",
        "Windsurf",
        (ClientProfile(("windsurf-client", "Windsurf")),),
        {"user": FileTemplate("{home}/.codeium/windsurf/mcp_config.json")},
        variables=(*PLAIN, "file"),
        web=WebEntry(AS_ENV, address="serverUrl"),
    ),
    Client(
        "cline",
        "Cline",
        (
            ClientProfile(
                ("Cline",),
                "never",
                title="Cline for VS Code",
                evidence="its source: a changed list restarts the session, which would lose the "
                "search that caused it",
            ),
            ClientProfile(
                ("@cline/core",),
                "never",
                title="Cline CLI",
                tool_form="<server>__{}",
                shows_whole_result=True,
                # It cuts the JSON of the whole result; the escapes in that JSON need room.
                max_result_chars=6_000,
                max_result_tokens=2_400,
                needs_structured=False,
                evidence="lab, 3.0.65: the notification is ignored; the result's JSON is cut in "
                "the middle at about 7,950 characters",
            ),
        ),
        {"user": FileTemplate("{home}/.cline/data/settings/cline_mcp_settings.json")},
        variables=PLAIN,
        extra={"disabled": False},
    ),
    Client(
        "roo",
        "Roo Code",
        (
            ClientProfile(
                ("Roo Code",),
                "never",
                tool_form="mcp--<server>--{}",
                evidence="its source: no handler for the notification",
            ),
        ),
        {
            "user": FileTemplate(
                "{support}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/"
                "mcp_settings.json"
            ),
            "project": FileTemplate("{project}/.roo/mcp.json"),
        },
        variables=PLAIN,
        extra={"disabled": False},
        web=WebEntry(AS_ENV, {"type": "streamable-http", "disabled": False}),
    ),
    Client(
        "zed",
        "Zed",
        (
            ClientProfile(
                ("Zed",),
                evidence="its documentation says that it reloads the list; within the same turn "
                "was not tested",
            ),
        ),
        {
            "user": FileTemplate("{config}/zed/settings.json", ("context_servers",)),
            "project": FileTemplate("{project}/.zed/settings.json", ("context_servers",)),
        },
    ),
    Client(
        "goose",
        "Goose",
        (
            ClientProfile(
                ("goose",),
                "never",
                tool_form="<server>__{}",
                evidence="aaif-goose/goose#10925: the new list is used from the next reply on, a "
                "running one is not updated",
            ),
        ),
        {"user": FileTemplate("{config}/goose/config.yaml", ("extensions",))},
        shape="goose",
        extra={"enabled": True, "timeout": 300},
    ),
    Client(
        "opencode",
        "opencode",
        (
            ClientProfile(
                ("opencode",),
                "same-turn",
                tool_form="<server>_{}",
                max_result_chars=50_000,
                skill_places=("/.opencode/skills", "/opencode/skills"),
                evidence="lab, 1.18.34: lists again, and has the new tool for its model a moment "
                "later; results are cut by lines",
            ),
        ),
        {
            "user": FileTemplate("{config}/opencode/opencode.json", ("mcp",)),
            "project": FileTemplate("{project}/opencode.json", ("mcp",)),
        },
        variables=("curly",),
        shape="array",
        extra={"enabled": True},
        # In the lab, 1.18.34: it declares roots.
        unshared=ROOTED,
        web=WebEntry(f"{{env:{FROM_ENVIRONMENT}}}", {"type": "remote", "enabled": True}),
    ),
    Client(
        "continue",
        "Continue",
        (
            ClientProfile(
                ("continue-client",),
                "never",
                evidence="its source: no handler for the notification",
            ),
            ClientProfile(
                ("continue-cli-client",),
                "never",
                title="Continue CLI",
                # It gives its model all of a result, of any size.
                max_result_tokens=25_000,
                evidence="lab, 1.5.47: the notification is ignored",
            ),
        ),
        {"user": FileTemplate("{home}/.continue/config.yaml")},
        variables=("secrets",),
        shape="named",
        preamble={"name": "Main Config", "version": "1.0.0", "schema": "v1"},
    ),
    Client(
        "librechat",
        "LibreChat",
        (
            ClientProfile(
                ("@librechat/api-client",),
                "never",
                evidence="danny-avila/LibreChat#14517: the new list is used from a later run on",
            ),
        ),
        {"project": FileTemplate("{project}/librechat.yaml")},
        variables=("braces",),
        extra={"type": "stdio"},
        web=WebEntry(IN_BRACES, {"type": "streamable-http"}),
        preamble={"version": "1.2.1"},
    ),
    Client(
        "chatgpt",
        "ChatGPT",
        (
            ClientProfile(
                ("openai-mcp", "ChatGPT"),
                "never",
                evidence="openai/tunnel-client#42: a frozen snapshot of the tools until someone "
                "presses Refresh",
            ),
        ),
    ),
    Client(
        "inspector",
        "MCP Inspector",
        (
            ClientProfile(
                ("inspector-client", "mcp-inspector"),
                evidence="a person lists and calls by hand; its page was not tested",
            ),
            ClientProfile(
                ("inspector-cli",),
                "never",
                title="MCP Inspector CLI",
                evidence="lab, 2.12.0: one process per request, so that a list is never used again",
            ),
        ),
    ),
    Client(
        "python-sdk",
        "the default name of the Python SDK",
        (
            ClientProfile(
                ("mcp",),
                "never",
                evidence="lab: the LangChain adapters never list again; pydantic-ai and the Agents "
                "SDK, which share the name, speak the era in which a search changes no list",
            ),
        ),
    ),
)
"""Every client we know, in the order in which people are shown them."""
