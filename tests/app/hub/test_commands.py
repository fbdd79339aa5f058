"""What a person sees of the hub, and how it is ended."""

import json

from tests.app.hub.harbour import PROC, SERVERS, Harbour
from tests.patience import PATIENCE


def test_nothing_runs_where_nobody_has_shared(harbour: Harbour) -> None:
    said = [harbour.run("status"), harbour.run("stop")]

    assert [each.returncode for each in said] == [0, 0]
    assert "Nothing is shared now: no background process is running" in said[0].stdout
    assert "Nothing is shared now: no background process is running" in said[1].stdout
    assert not list(harbour.runtime.iterdir())


def test_status_tells_who_uses_what_and_why_not_together(harbour: Harbour) -> None:
    harbour.write({"servers": {"test": {**SERVERS["test"], "env": {"REGION": "${REGION}"}}}})
    first = harbour.client(REGION="a-region-that-is-not-shown", opens=False)
    first.open("claude-code")
    first.call("test__echo", text="hello")
    second = harbour.client("modern", REGION="another")
    second.call("test__echo", text="hello")

    document = json.loads(harbour.run("status", "--json").stdout)
    text = harbour.run("status").stdout

    (hub,) = document["hubs"]
    assert [hub["process"]] == harbour.hubs()
    one, other = hub["fleets"]
    assert one["config"] == other["config"] == str(harbour.config)
    assert one["servers"] == other["servers"] == {"test": "ready"}
    assert [each["process"] for each in one["clients"]] == [first.pid]
    assert [each["name"] for each in one["clients"]] == ["claude-code"]
    assert one["apart"] == []
    assert other["apart"] == ["REGION"]
    assert hub["memory"] > 1 << 20
    assert "claude-code" in text
    assert "1 server ready: test" in text
    assert "not shared with the fleet above: REGION differ" in text
    assert "a-region-that-is-not-shown" not in text + json.dumps(document)


def test_stop_ends_the_hub_its_servers_and_its_clients_in_good_order(harbour: Harbour) -> None:
    clients = [harbour.client(), harbour.client("modern")]
    for client in clients:
        client.call("test__echo", text="hello")
    (hub,) = harbour.hubs()

    said = harbour.run("stop")

    assert said.returncode == 0
    assert f"process {hub} has ended" in said.stdout
    assert [client.process.wait(PATIENCE) for client in clients] == [0, 0]
    assert all("was stopped: connect again" in client.errors() for client in clients)
    assert not harbour.hubs()
    assert not harbour.servers()
    assert harbour.client().call("test__echo", text="again")


def test_commands_ask_the_fleet_that_runs(harbour: Harbour) -> None:
    client = harbour.client()
    client.call("test__echo", text="hello")
    servers = harbour.servers()
    place = ("--config", str(harbour.config))

    said = [
        harbour.run("call", "test__environment", *place),
        harbour.run("inspect", *place),
        harbour.run("search", "echo", *place),
        harbour.run("check", "test", *place),
    ]

    assert [each.returncode for each in said] == [0, 0, 0, 0]
    asked = json.loads(said[0].stdout)
    assert asked["environ"]["HOME"] == str(harbour.directory)
    assert harbour.servers() == servers
    assert parent_of(servers[0]) == harbour.hubs()[0]
    assert client.call("test__echo", text="hello")


def test_a_command_with_another_environment_starts_servers_of_its_own(harbour: Harbour) -> None:
    harbour.write({"servers": {"test": {**SERVERS["test"], "env": {"REGION": "${REGION}"}}}})
    client = harbour.client(REGION="one")
    client.call("test__echo", text="hello")

    said = harbour.run("call", "test__environment", "--config", str(harbour.config), REGION="two")

    assert json.loads(said.stdout)["environ"]["REGION"] == "two"
    report = json.loads(harbour.run("status", "--json").stdout)
    assert len(report["hubs"][0]["fleets"]) == 1


def parent_of(pid: int) -> int:
    """Return who has started a process."""
    return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
