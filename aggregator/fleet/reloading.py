"""Go over to what `servers.yaml` says now, all of it or nothing."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path

import anyio
from anyio import to_thread

from aggregator.basics.turns import in_turns
from aggregator.config import Config, load_config
from aggregator.downstream.review import NO_REVIEWS, Review, Reviews, review
from aggregator.errors import ConfigError
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.watching import changes
from aggregator.names import ServerName
from aggregator.secrecy import without_secrets

logger = logging.getLogger(__name__)

PIPE_PATIENCE = 0.05
"""Seconds for all pipes that are read again."""
MAX_PROBLEM = 400
"""Characters told to clients of what is wrong with the file."""


Foresee = Callable[[Config], Awaitable[None]]
"""Told of a configuration that can be used, while it is yet to be applied."""


async def foresee_nothing(_config: Config) -> None:
    """Need no time to get ready."""


class Reloading:
    """Keeps a fleet in step with its file."""

    def __init__(
        self,
        fleet: Fleet,
        environment: Mapping[str, str],
        expect: Callable[[Config], None] = lambda _config: None,
        foresee: Foresee = foresee_nothing,
    ) -> None:
        self._fleet = fleet
        self._environment = environment
        self._expect = expect
        """Told of a configuration before any of its servers is started."""
        self._foresee = foresee
        self._turn = anyio.Lock()

    @property
    def _path(self) -> Path:
        return self._fleet.now.config.path

    def reload(self) -> None:
        """Read the file and apply it; one that cannot be used changes nothing."""
        self._apply(self._read())

    async def renew(self) -> None:
        """Do so while others have their turn: the file may be long, or a keyring be asked."""
        async with self._turn:
            config = await self._read_aside()
            if isinstance(config, ConfigError):
                self._apply(config)
                return
            reviews = await self._review(config)
            await self._foresee(config)
            self._apply(config, reviews)

    async def _read_aside(self) -> Config | ConfigError:
        try:
            return await to_thread.run_sync(self._read)
        except RuntimeError:
            # There is no thread to be had: everybody waits.
            return self._read()

    def _read(self) -> Config | ConfigError:
        try:
            deadline = time.monotonic() + PIPE_PATIENCE
            return load_config(self._path, self._environment, deadline)
        except ConfigError as error:
            return error

    async def _review(self, config: Config) -> Reviews:
        """Work out what a configuration means for what is known, before it is in use."""
        found: dict[ServerName, Review] = {}
        for name, server in config.enabled.items():
            now = self._fleet.now
            state = now.routes.gone.get(name) or now.catalog.known.get(name)
            if state is not None and server != now.config.servers[name]:
                found[name] = await in_turns(review(server, state))
        entries = self._fleet.now.catalog.entries.values()
        await in_turns(self._fleet.profile_views.expect(config, entries))
        return found

    def _apply(self, config: Config | ConfigError, reviews: Reviews = NO_REVIEWS) -> None:
        if isinstance(config, ConfigError):
            self._fleet.report_problem(_tell(config))
            logger.error("%s; going on with the configuration in use", config)
            return
        was_broken = self._fleet.now.problem is not None
        self._expect(config)
        self._fleet.reconfigure(config, reviews)
        # Who was told that it is broken is told that it is mended.
        level = logging.WARNING if was_broken else logging.INFO
        logger.log(level, "%s: applied", self._path)

    async def follow(self) -> None:
        """Apply each change of the file, until the file itself says not to."""
        async with aclosing(changes(self._path, self._fleet.now.config.digest)) as changed:
            async for _ in changed:
                if not self._fleet.now.config.settings.watch:
                    return
                await self.renew()


def _tell(error: ConfigError) -> str:
    """Say what is wrong with the file to whoever asks, who may be on another machine.

    Where the file is, and what has the form of a secret, is for the log alone.
    """
    name = Path(error.path).name
    where = f"`{name}`" if error.line is None else f"`{name}`, line {error.line}"
    hint = f" ({error.hint})" if error.hint else ""
    more = f", and {len(error.others)} more that `aggregator check` tells" if error.others else ""
    text = without_secrets(f"{where}: {error.problem}{hint}")
    return f"{text if len(text) <= MAX_PROBLEM else f'{text[:MAX_PROBLEM]}…'}{more}"
