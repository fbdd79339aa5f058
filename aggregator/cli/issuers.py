"""Whether people could log in to come in over HTTP, as the file has it."""

from collections.abc import Iterator, Sequence

import anyio

from aggregator.cli.lint import Finding
from aggregator.config import Config
from aggregator.config.http import Issuer

PERSONAL = "only you see it, since it may have your login; `shared: true` shows it to others, too"


def tell_logins(config: Config, wanted: Sequence[str]) -> Iterator[Finding]:
    """Yield why nobody could log in, and which servers whoever does would not see."""
    issuer = config.settings.http.issuer
    if issuer is None:
        return
    if not wanted and (problem := _problem(issuer)) is not None:
        yield Finding("error", "", f"no keys of the issuer `{issuer.name}`: {problem}")
    for name, server in config.enabled.items():
        if server.is_personal and (not wanted or name in wanted):
            yield Finding("hint", name, PERSONAL)


def _problem(issuer: Issuer) -> str | None:
    # Few files name an issuer, and nobody else waits for what it takes to ask one.
    from aggregator.upstream.http.issuer.keyset import KeysError  # noqa: PLC0415 - see above
    from aggregator.upstream.http.issuer.source import fetch_keys  # noqa: PLC0415 - see above

    try:
        anyio.run(fetch_keys, issuer)
    except KeysError as error:
        return str(error)
    return None
