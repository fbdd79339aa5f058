"""The names of OpenTelemetry's semantic conventions for MCP, which are still in development."""

from mcp_types.methods import SPEC_CLIENT_METHODS

METHOD = "mcp.method.name"
PROTOCOL = "mcp.protocol.version"
REQUEST = "jsonrpc.request.id"
TOOL = "gen_ai.tool.name"
PROMPT = "gen_ai.prompt.name"
OPERATION = "gen_ai.operation.name"
EXECUTE_TOOL = "execute_tool"
TRANSPORT = "network.transport"
PIPE, TCP = "pipe", "tcp"
ERROR = "error.type"
TOOL_ERROR = "tool_error"
STATUS = "rpc.response.status_code"
SERVER = "aggregator.server"
"""Ours: the name of a server in the configuration."""
MEASURED = (METHOD, TOOL, OPERATION, TRANSPORT, SERVER)
"""What durations are told apart by, beside how requests ended."""

SERVER_DURATION = "mcp.server.operation.duration"
CLIENT_DURATION = "mcp.client.operation.duration"
BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds, as the conventions advise."""

CONTEXT = ("traceparent", "tracestate")
"""The keys of `_meta` in which a trace is handed on."""

OTHER_METHOD = "other"
OTHER_CODE = "_OTHER"
"""What the conventions have for an error that is none of those known."""
CODES = frozenset(
    {
        *(-32700, -32600, -32601, -32602, -32603),
        *(-32000, -32001, -32002, -32020, -32021, -32022, -32042),
    }
)
"""Codes of JSON-RPC, of MCP, and of its SDKs."""


def method_label(method: str) -> str:
    """Return what a client's method is called: anybody can make one up, and each is kept."""
    return method if method in SPEC_CLIENT_METHODS else OTHER_METHOD


def code_label(code: int) -> str:
    """Return what the code of an error is called: a server can make one up, too."""
    return str(code) if code in CODES else OTHER_CODE
