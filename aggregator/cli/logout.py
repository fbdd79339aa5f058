"""`aggregator logout`: revoke a login, and forget it."""

import argparse
from functools import partial

import anyio

from aggregator.cli.config_file import read_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.login import logins_of, server_of
from aggregator.config import ServerConfig
from aggregator.downstream.http.reach import address
from aggregator.downstream.http.tokens import sender
from aggregator.downstream.login.credentials import RenewalError
from aggregator.downstream.login.file import LoginFile, LoginFileError
from aggregator.downstream.login.record import Login
from aggregator.downstream.login.renewal import revocation

GOOD = range(200, 300)


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Forget the login to a server; where it was given, it is revoked first."""
    config = read_config(options, environment, quiet=True)
    server = server_of(options, config)
    file = logins_of(config, environment).file(server)
    try:
        anyio.run(partial(_log_out, server, file, environment))
    except LoginFileError as error:
        raise CommandError(f"`{server.name}`: {error}") from None
    return ExitStatus.FINE


async def _log_out(server: ServerConfig, file: LoginFile, environment: Environment) -> None:
    if not file.look():
        environment.note(f"{server.name}: there is no login")
        return
    async with file.turn():
        try:
            login = file.read()
        except LoginFileError:
            login = None
        told = await _revoke(login, server) if login else "it could not be read, nor revoked"
        file.remove()
    environment.tell(f"{server.name}: logged out; {told}")


async def _revoke(login: Login, server: ServerConfig) -> str:
    """Revoke what can be, and say what came of it."""
    tokens = {"refresh_token": login.refresh_token, "access_token": login.access_token}
    asks = [revocation(login, token, kind) for kind, token in tokens.items() if token]
    where = f"end it at {login.issuer} if it must not be used any more"
    send = sender(address(server))
    for ask in asks:
        if ask is None:
            return f"its authorisation server has no way to revoke it: {where}"
        try:
            reply = await send(ask)
        except RenewalError as error:
            return f"it could not be revoked ({error}): {where}"
        if reply.status not in GOOD:
            return f"it could not be revoked ({reply.status}): {where}"
    return "it is revoked"
