"""Plant fifty secrets in every place that has some, and look for them everywhere else."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.client import ROOT, Client, Json, aggregator, faulty

SECRET_NAMES = ("API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "CLIENT_SECRET", "SENTRY_DSN")
PLAIN_NAMES = ("SETTING", "ENDPOINT", "PROFILE", "TENANT", "CHANNEL")
OPTIONS = ("--api-key", "--token", "--password", "--client-secret", "--auth")
COMMANDS = ("inspect", "inspect crash", "inspect --json", "doctor", "check")
"""What a person may look with."""

HEADERS = ("Authorization", "X-Api-Key", "X-Tenant-Token", "Cookie", "X-Secret")


@dataclass(slots=True)
class Garden:
    """The secrets that have been planted, by where."""

    planted: dict[str, str] = field(default_factory=dict[str, str])

    def plant(self, where: str) -> str:
        """Return a new secret."""
        number = len(self.planted)
        canary = f"canary{number:02}x{number * 7919 % 9973:04}"
        self.planted[canary] = where
        return canary


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found of how many."""

    planted: int
    places: tuple[str, ...]
    """Where was looked."""
    found: tuple[str, ...]


async def measure(directory: Path, commands: Sequence[str] = COMMANDS) -> Findings:
    """Run servers that tell whatever they know, call them, and look around."""
    garden = Garden()
    servers = _servers(garden)
    async with aggregator(directory, servers, "-vv") as client:
        await client.until(lambda found: found["talker"]["state"] == "ready")
        await _call(client, garden)
        await client.until(_all_have_failed)
        seen = {
            "the catalog's servers": str(await client.servers()),
            "the catalog's tools": await _read(client, "catalog://tools"),
            "a search": str(await client.call("ToolSearch", query="server tool echo")),
            "an error of a missing server": str(await client.call("crash__echo")),
            "an error of an unreachable server": str(await client.call("refused__echo")),
        }
    seen["the log"] = (directory / "log").read_text(errors="replace")
    seen |= {each: _run(each, directory) for each in commands}
    seen |= {f"state: {name}": text for name, text in _state(directory)}
    found = [
        f"{where} in {place}"
        for place, text in seen.items()
        for canary, where in garden.planted.items()
        if canary in text and not _is_kept(where, place)
    ]
    return Findings(len(garden.planted), tuple(seen), tuple(found))


def _servers(garden: Garden) -> dict[str, Json]:
    names = (*SECRET_NAMES, *PLAIN_NAMES)
    servers = {
        name: faulty(
            mode,
            *(f"{option}={garden.plant(f'{option} of {name}')}" for option in OPTIONS),
            env={key: garden.plant(f"{key} of {name}") for key in names},
            callTimeout=1,
        )
        for name, mode in (("talker", "ok"), ("crash", "confess_at_start"))
    }
    servers["missing"] = {
        "command": "/no/such/command",
        "args": [f"--token={garden.plant('an argument of what is not there')}"],
        "env": {"API_KEY": garden.plant("the key of what is not there")},
    }
    servers |= {
        name: {
            "url": f"http://{garden.plant(f'user of {name}')}:"
            f"{garden.plant(f'password of {name}')}@{host}/mcp"
            f"?token={garden.plant(f'query of {name}')}",
            "headers": {each: garden.plant(f"{each} of {name}") for each in HEADERS},
        }
        for name, host in (("refused", "127.0.0.1:9"), ("nowhere", "no-such-host.invalid"))
    }
    return servers


async def _call(client: Client, garden: Garden) -> None:
    """Call in every way that a call can end."""
    for kind in ("confess", "exit", "garbage", "wrong_shape", "hang", "die"):
        secret = garden.plant(f"an argument of a call that ends in `{kind}`")
        await client.call("talker__fault", kind=kind, text=secret)
    await client.call("talker__echo", text=garden.plant("a result"))
    await client.call("talker__nothing", text=garden.plant("an argument of an unknown tool"))
    await client.call("ToolSearch", query=garden.plant("a query"))


def _all_have_failed(servers: dict[str, Json]) -> bool:
    return all(
        server["state"] == "failed" or server.get("phase") in ("retrying", "cooling down")
        for name, server in servers.items()
        if name != "talker"
    )


async def _read(client: Client, uri: str) -> str:
    return str(await client.request("resources/read", {"uri": uri}))


def _run(command: str, directory: Path) -> str:
    """Return all that a command says."""
    done = subprocess.run(
        [sys.executable, "-m", "aggregator", *command.split(), "--config", "servers.yaml"],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(directory / "state"),
        },
    )
    return done.stdout + done.stderr


def _is_kept(where: str, place: str) -> bool:
    """Whether it is there on purpose: stats tell what was searched for, and nothing else."""
    return where == "a query" and place.startswith("state: ") and "/stats/" in place


def _state(directory: Path) -> Iterator[tuple[str, str]]:
    for path in (directory / "state").rglob("*"):
        if path.is_file():
            yield str(path.relative_to(directory)), path.read_text(errors="replace")
