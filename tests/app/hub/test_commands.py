"""What a person sees of the hub, and how it is ended."""

import json

from tests.app.hub.hub_setup import PROC, SERVERS, HubSetup
from tests.patience import PATIENCE


def test_nothing_runs_where_nobody_has_shared(hub_setup: HubSetup) -> None:
    said = [hub_setup.run("status"), hub_setup.run("stop")]

    assert [each.returncode for each in said] == [0, 0]
    assert "Nothing is shared now: no background process is running" in said[0].stdout
    assert "Nothing is shared now: no background process is running" in said[1].stdout
    assert not list(hub_setup.runtime.iterdir())


def test_status_tells_who_uses_what_and_why_not_together(hub_setup: HubSetup) -> None:
    hub_setup.write({"servers": {"test": {**SERVERS["test"], "env": {"REGION": "${REGION}"}}}})
    first = hub_setup.client(REGION="a-region-that-is-not-shown", opens=False)
    first.open("claude-code")
    first.call("test__echo", text="hello")
    second = hub_setup.client("modern", REGION="another")
    second.call("test__echo", text="hello")

    document = json.loads(hub_setup.run("status", "--json").stdout)
    text = hub_setup.run("status").stdout

    (hub,) = document["hubs"]
    assert [hub["process"]] == hub_setup.hubs()
    one, other = hub["fleets"]
    assert one["config"] == other["config"] == str(hub_setup.config)
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


def test_stop_ends_the_hub_its_servers_and_its_clients_in_good_order(hub_setup: HubSetup) -> None:
    clients = [hub_setup.client(), hub_setup.client("modern")]
    for client in clients:
        client.call("test__echo", text="hello")
    (hub,) = hub_setup.hubs()

    said = hub_setup.run("stop")

    assert said.returncode == 0
    assert f"process {hub} has ended" in said.stdout
    assert [client.process.wait(PATIENCE) for client in clients] == [0, 0]
    assert all("was stopped: connect again" in client.errors() for client in clients)
    assert not hub_setup.hubs()
    assert not hub_setup.servers()
    assert hub_setup.client().call("test__echo", text="again")


def test_commands_ask_the_fleet_that_runs(hub_setup: HubSetup) -> None:
    client = hub_setup.client()
    client.call("test__echo", text="hello")
    servers = hub_setup.servers()
    place = ("--config", str(hub_setup.config))

    said = [
        hub_setup.run("call", "test__environment", *place),
        hub_setup.run("inspect", *place),
        hub_setup.run("search", "echo", *place),
        hub_setup.run("check", "test", *place),
    ]

    assert [each.returncode for each in said] == [0, 0, 0, 0]
    asked = json.loads(said[0].stdout)
    assert asked["environ"]["HOME"] == str(hub_setup.directory)
    assert hub_setup.servers() == servers
    assert parent_of(servers[0]) == hub_setup.hubs()[0]
    assert client.call("test__echo", text="hello")


def test_a_command_with_another_environment_starts_servers_of_its_own(hub_setup: HubSetup) -> None:
    hub_setup.write({"servers": {"test": {**SERVERS["test"], "env": {"REGION": "${REGION}"}}}})
    client = hub_setup.client(REGION="one")
    client.call("test__echo", text="hello")

    said = hub_setup.run(
        "call", "test__environment", "--config", str(hub_setup.config), REGION="two"
    )

    assert json.loads(said.stdout)["environ"]["REGION"] == "two"
    report = json.loads(hub_setup.run("status", "--json").stdout)
    assert len(report["hubs"][0]["fleets"]) == 1


def parent_of(pid: int) -> int:
    """Return who has started a process."""
    return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
