"""A client with roots in front of the published `server-filesystem`, which is given no directory.

Takes the path of the server's script; says what passed, and ends with 1 if anything did not.
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPDeprecationWarning

from tests.peers import text_of

PATIENCE = 60
"""Seconds any one conversation may take."""


async def visit(mode: str, directory: Path, script: str) -> bool:
    """Ask which directories the server allows, before and after the roots change."""
    roots = [directory / "first"]
    config = directory / "servers.yaml"
    config.write_text(json.dumps({"servers": {"fs": {"command": "node", "args": [script]}}}))

    async def list_roots(context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": roots[0].as_uri()})])

    async def allowed() -> str:
        return text_of(await client.call_tool("fs__list_allowed_directories", {}))

    command = ["-m", "aggregator", "serve", "--config", str(config)]
    process = StdioServerParameters(command=sys.executable, args=command)
    with anyio.fail_after(PATIENCE):
        async with Client(
            stdio_client(process), mode=mode, list_roots_callback=list_roots
        ) as client:
            await client.call_tool("ToolSearch", {"query": "directories", "wait": 30})
            before = await allowed()
            if mode != "legacy":
                return "first" in before
            roots[0] = directory / "second"
            await client.send_roots_list_changed()  # pyright: ignore[reportDeprecated]
            while "second" not in (after := await allowed()):
                pass
    return "first" in before and "first" not in after


def main() -> int:
    """Visit it in both eras."""
    failed = 0
    for mode in ("legacy", "auto"):
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name).resolve()
            for root in ("first", "second"):
                (directory / root).mkdir()
            passed = anyio.run(visit, mode, directory, sys.argv[1])
        failed += not passed
        outcome = "passed" if passed else "failed"
        sys.stdout.write(f"{outcome}: {mode} server-filesystem without directories\n")
    return min(failed, 1)


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    sys.exit(main())
