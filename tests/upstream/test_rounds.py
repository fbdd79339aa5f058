"""A server that answers with questions is asked again with the client's answers."""

from collections.abc import Mapping
from typing import Any

import pytest

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject
from aggregator.downstream.inflight import Caller
from aggregator.names import ServerName
from aggregator.upstream.rounds import fulfil

pytestmark = pytest.mark.anyio

DB = ServerName("db")


class Asker:
    """Asks once, if it is to, and then answers with what it was told."""

    def __init__(self, *, asks: bool) -> None:
        self.asks = asks
        self.heard: list[tuple[str, object, Mapping[str, Any]]] = []

    async def request(
        self, method: str, params: Mapping[str, Any], caller: Caller
    ) -> dict[str, Any]:
        self.heard.append((method, caller.key, params))
        if not self.asks:
            return {"content": []}
        question = {"method": "elicitation/create", "params": {"message": "Which?"}}
        return {
            "resultType": "input_required",
            "inputRequests": {"q": question},
            "requestState": "s",
        }


class Servers:
    """What is behind one name, before and after a reload."""

    def __init__(self, *servers: Asker) -> None:
        self.servers = list(servers)

    def server(self, _name: ServerName, /) -> Asker:
        return self.servers[0]


class Person:
    """A client that reloads the configuration while it thinks of an answer."""

    era: Era = "handshake"
    key: object = "person"
    party: object = None
    log_level: str | None = None

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.asked: list[tuple[str, JsonObject]] = []
        self.capabilities: JsonObject = {"elicitation": {}}

    def notify(self, _method: str, _params: JsonObject, /) -> None:
        raise NotImplementedError

    async def tell(self, method: str, params: JsonObject) -> None:
        raise NotImplementedError

    async def ask(self, method: str, params: JsonObject) -> dict[str, Any]:
        self.asked.append((method, params))
        self._servers.servers.pop(0)
        return {"action": "accept", "content": {"which": "this"}}


async def test_the_answer_goes_to_the_server_that_has_the_name_by_then() -> None:
    before, after = Asker(asks=True), Asker(asks=False)
    servers = Servers(before, after)

    person = Person(servers)
    result = await fulfil(servers, DB, "tools/call", {"name": "pick"}, person)

    assert result == {"content": []}
    answer = {"action": "accept", "content": {"which": "this"}}
    assert person.asked == [("elicitation/create", {"message": "[db] Which?"})]
    again = {"name": "pick", "inputResponses": {"q": answer}, "requestState": "s"}
    assert after.heard == [("tools/call", "person", again)]
