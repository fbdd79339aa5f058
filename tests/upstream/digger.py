"""A modern server whose calls become tasks, and what is asked about them."""

from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.tasks import TASKS
from tests.raw import FULL_CAPABILITIES, Dispatch, Json, RawClient, RawServer

CAN: Json = {"extensions": {TASKS: {}}}
CALL: Json = {"name": "peer__dig", "arguments": {"deep": 1}}
QUESTION: Json = {"method": "elicitation/create", "params": {"message": "Deeper?"}}
TIMES: Json = {"createdAt": "2026-11-19T00:00:00Z", "lastUpdatedAt": "2026-11-19T00:00:00Z"}
REMOTE: Json = {"type": "http", "url": "https://peer.example/mcp"}
DONE: Json = {"status": "completed", "result": {"content": [{"type": "text", "text": "gold"}]}}


class Digger(RawServer):
    """A modern server that makes a task of each call whose client can follow it."""

    def __init__(self, **options: Any) -> None:
        super().__init__("modern")
        self.capabilities = {**FULL_CAPABILITIES, **CAN}
        self.tasks: dict[str, Json] = {}
        self.ttl: object = options.get("ttl", 60_000)
        self.own_id: object = options.get("own_id", "")
        self.tool("dig", self._dig)
        self.handlers["prompts/get"] = self._dig
        self.handlers["tasks/get"] = self._get
        self.handlers["tasks/update"] = self._update
        self.handlers["tasks/cancel"] = self._cancel

    def asked_about(self) -> list[tuple[str, str]]:
        """Return what was asked about tasks, and by which id."""
        return [(each, params["taskId"]) for each, params in self.received if "tasks/" in each]

    async def _dig(self, _context: Dispatch, params: Json) -> Json:
        can = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        if TASKS not in can.get("extensions", {}):
            return {"content": [{"type": "text", "text": "dug at once"}]}
        task = self.own_id or f"dig-{len(self.tasks)}"
        self.tasks[str(task)] = {"status": "working", "ttlMs": self.ttl, **TIMES}
        return {"resultType": "task", "taskId": task, **self.tasks[str(task)]}

    async def _get(self, _context: Dispatch, params: Json) -> Json:
        task = self._task(params)
        return {"taskId": params["taskId"], **task, "pollIntervalMs": 50}

    async def _update(self, _context: Dispatch, params: Json) -> Json:
        self._task(params)["answers"] = params["inputResponses"]
        return {}

    async def _cancel(self, _context: Dispatch, params: Json) -> Json:
        self._task(params)["status"] = "cancelled"
        return {}

    def _task(self, params: Json) -> Json:
        if params["taskId"] not in self.tasks:
            raise MCPError(types.INVALID_PARAMS, "Task not found")
        return self.tasks[params["taskId"]]


async def asked(client: RawClient, task: str) -> list[object]:
    """Return what a client is told of a task in each of the ways to ask about one."""
    told: list[object] = []
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        try:
            told.append(await client.request(method, {"taskId": task, "inputResponses": {}}))
        except MCPError as error:
            told.append(error.error.message)
    return told
