"""What clients of one hub share, and what is each client's own."""

import json
import os
import signal
import sys
import time

import pytest

from tests.app.hub.hub_setup import FAULTY, PROC, SERVERS, Client, HubSetup
from tests.ends import await_ends
from tests.entry.gate import HEAVY
from tests.patience import PATIENCE
from tests.peers import ERAS, Era


def given(client: Client) -> dict[str, str]:
    """Return the environment that a client's server says it has."""
    return json.loads(client.call("test__environment"))["environ"]


@pytest.mark.parametrize("era", ERAS)
def test_clients_share_one_fleet_and_each_leaves_by_itself(hub_setup: HubSetup, era: Era) -> None:
    one, other = hub_setup.client(era), hub_setup.client("modern")
    said = [client.call("test__echo", text="hello") for client in (one, other)]
    servers, hubs = hub_setup.servers(), hub_setup.hubs()

    assert said[0] == said[1]
    assert len(servers) == len(hubs) == 1
    assert one.leave() == 0
    assert other.call("test__echo", text="still here")
    assert hub_setup.servers() == servers
    assert other.leave() == 0


@pytest.mark.parametrize("era", ERAS)
def test_clients_of_two_profiles_share_servers_and_see_their_own(
    hub_setup: HubSetup, era: Era
) -> None:
    hub_setup.write({"servers": SERVERS, "profiles": {"quiet": {"deny": ["echo"]}}})
    wide, narrow = hub_setup.client(era), hub_setup.client(era, profile="quiet")
    asked = {"name": "test__echo", "arguments": {"text": "hello"}}

    assert "hello" in wide.call("test__echo", text="hello")
    assert "test__echo" in narrow.ask("tools/call", asked)["error"]["message"]
    assert narrow.call("test__environment")
    assert len(hub_setup.servers()) == len(hub_setup.hubs()) == 1


def test_a_client_with_another_value_has_servers_of_its_own(hub_setup: HubSetup) -> None:
    variables = {"REGION": "${REGION}"}
    hub_setup.write({"servers": {"test": {**SERVERS["test"], "env": variables}}})
    first, same = hub_setup.client(REGION="one"), hub_setup.client(REGION="one")
    another = hub_setup.client(REGION="two")

    regions = [given(client)["REGION"] for client in (first, same, another)]

    assert regions == ["one", "one", "two"]
    assert len(hub_setup.hubs()) == 1
    assert len(hub_setup.servers()) == 2


def test_what_the_file_does_not_speak_of_is_no_reason_not_to_share(hub_setup: HubSetup) -> None:
    clients = [hub_setup.client(UNHEARD_OF="one"), hub_setup.client(UNHEARD_OF="two", TERM="dumb")]
    for client in clients:
        client.call("test__echo", text="hello")

    assert len(hub_setup.servers()) == 1


def test_a_client_that_is_killed_leaves_nothing(hub_setup: HubSetup) -> None:
    killed, other = hub_setup.client(), hub_setup.client("modern")
    killed.send("tools/call", {"name": "test__wait", "arguments": {}})
    other.call("test__echo", text="hello")
    (hub,) = hub_setup.hubs()
    held = descriptors(hub)
    extra = hub_setup.client()
    extra.call("test__echo", text="hello")

    extra.process.kill()

    # Its output ends although a call was under way, and other clients do not notice.
    while extra.hear() is not None:
        pass
    assert other.call("test__echo", text="hello")
    await_fewer_descriptors(hub, held)


def test_the_hub_killed_ends_its_clients_and_the_next_start_works(hub_setup: HubSetup) -> None:
    clients = [hub_setup.client(), hub_setup.client("modern")]
    for client in clients:
        client.call("test__echo", text="hello")
    (hub,), servers = hub_setup.hubs(), hub_setup.servers()

    os.kill(hub, signal.SIGKILL)

    for client in clients:
        assert client.process.wait(PATIENCE) == 1
        assert "connect again" in client.errors()
    await_ends(servers, PATIENCE)
    assert not hub_setup.servers()
    again = hub_setup.client()
    assert again.call("test__echo", text="hello")
    assert len(hub_setup.hubs()) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_one_client_in_good_order(
    hub_setup: HubSetup, number: signal.Signals
) -> None:
    one, other = hub_setup.client(), hub_setup.client("modern")
    one.call("test__echo", text="hello")

    one.process.send_signal(number)

    assert one.process.wait(PATIENCE) == 0
    assert other.call("test__echo", text="hello")


def test_many_that_come_at_once_have_one_hub(hub_setup: HubSetup) -> None:
    clients = [hub_setup.client(era, opens=False) for era in ERAS * 10]
    for client in clients:
        client.open()
        assert client.call("test__echo", text="hello")

    assert len(hub_setup.hubs()) == 1
    assert len(hub_setup.servers()) == 1
    assert {client.leave() for client in clients} == {0}


def test_a_client_that_is_stopped_is_served_all_the_same(hub_setup: HubSetup) -> None:
    """No byte of what it says passes through the process that it has started."""
    client = hub_setup.client()
    client.call("test__echo", text="hello")

    os.kill(client.pid, signal.SIGSTOP)

    assert client.call("test__echo", text="hello")
    os.kill(client.pid, signal.SIGCONT)
    assert client.leave() == 0


TELLING = """
import atexit, os, sys
atexit.register(lambda: os.write(2, " ".join(sys.modules).encode()))
"""
"""Says at the end what has been loaded."""


def test_nothing_heavy_is_loaded_for_a_client_that_is_handed_over(hub_setup: HubSetup) -> None:
    client = hub_setup.client(after=TELLING)
    client.call("test__echo", text="hello")

    assert client.leave() == 0
    loaded = client.errors().split()
    assert "aggregator.entry.shim" in loaded
    assert not {name.partition(".")[0] for name in loaded} & {*HEAVY}


def test_an_edit_reaches_all_who_share(hub_setup: HubSetup) -> None:
    client = hub_setup.client()
    client.call("test__echo", text="hello")

    hub_setup.write({"servers": {**SERVERS, "more": SERVERS["test"]}})

    later = hub_setup.client("modern")
    assert later.call("more__echo", text="hello")
    assert client.call("more__echo", text="hello")
    assert len(hub_setup.servers()) == 2


def test_an_edit_that_tells_clients_apart_parts_them(hub_setup: HubSetup) -> None:
    """Nobody is left with servers that were started with another's value."""
    one, other = hub_setup.client(REGION="one"), hub_setup.client(REGION="two")
    for client in (one, other):
        client.call("test__echo", text="hello")
    assert len(hub_setup.servers()) == 1

    hub_setup.write({"servers": {"test": {**SERVERS["test"], "env": {"REGION": "${REGION}"}}}})

    assert other.process.wait(PATIENCE) == 1
    assert "connect again" in other.errors()
    assert given(one).get("REGION") in (None, "one")
    again = hub_setup.client(REGION="two")
    assert given(again)["REGION"] == "two"


def test_a_mistake_in_the_file_is_told_as_without_a_hub(hub_setup: HubSetup) -> None:
    hub_setup.write({"servers": {"test": {"command": sys.executable, "arguments": [str(FAULTY)]}}})

    client = hub_setup.client(opens=False)

    assert client.process.wait(PATIENCE) == 2
    assert "`servers.test.arguments`" in client.errors()


def descriptors(pid: int) -> int:
    return len(list((PROC / str(pid) / "fd").iterdir()))


def await_fewer_descriptors(pid: int, most: int) -> None:
    """Wait until a process has no more open than before."""
    deadline = time.monotonic() + PATIENCE
    while descriptors(pid) > most:
        assert time.monotonic() < deadline
        os.sched_yield()
