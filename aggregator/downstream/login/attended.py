"""A login by way of a page on this machine, for whoever a client can show that page."""

from aggregator.config import ServerConfig
from aggregator.downstream.login.callback import Callback, LoginError
from aggregator.downstream.login.flow import log_in
from aggregator.downstream.login.home import Home
from aggregator.downstream.login.page import invitation
from aggregator.downstream.login.place import Logins
from aggregator.downstream.login.visits import Lead


async def attended(
    server: ServerConfig, scopes: tuple[str, ...], home: Home, lead: Lead
) -> str | None:
    """Have a person log in to a server, and keep that; say what stood in the way, if it did."""
    met: list[Callback] = []

    async def show(address: str, issuer: str) -> None:
        invited = invitation(server.name, server.url or "", address, issuer)
        page = met[0].invite(invited)
        if page is None:
            raise LoginError("its `redirectUri` is on another machine, so no page can be shown")
        lead(page, invited.asker)

    try:
        await log_in(server, Logins(*home).file(server), show=show, meet=met.append, scopes=scopes)
    except LoginError as error:
        return f"{error}. {error.hint}" if error.hint else str(error)
    return None
