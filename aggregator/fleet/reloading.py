"""Go over to what `servers.yaml` says now, all of it or nothing."""

import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path

from aggregator.config import Config, load_config
from aggregator.errors import ConfigError
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.watching import changes
from aggregator.secrecy import without_secrets

logger = logging.getLogger(__name__)

MAX_PROBLEM = 400
"""Characters told to clients of what is wrong with the file."""


class Reloading:
    """Keeps a fleet in step with its file."""

    def __init__(
        self,
        fleet: Fleet,
        environment: Mapping[str, str],
        expect: Callable[[Config], None] = lambda _config: None,
    ) -> None:
        self._fleet = fleet
        self._environment = environment
        self._expect = expect
        """Told of a configuration before any of its servers is started."""

    @property
    def _path(self) -> Path:
        return self._fleet.now.config.path

    def reload(self) -> None:
        """Read the file and apply it; one that cannot be used changes nothing."""
        try:
            config = load_config(self._path, self._environment)
        except ConfigError as error:
            self._fleet.report_problem(_tell(error))
            logger.error("%s; going on with the configuration in use", error)  # noqa: TRY400
            return
        self._expect(config)
        self._fleet.reconfigure(config)
        logger.info("%s: applied", self._path)

    async def follow(self) -> None:
        """Apply each change of the file, until the file itself says not to."""
        async with aclosing(changes(self._path, self._fleet.now.config.digest)) as changed:
            async for _ in changed:
                if not self._fleet.now.config.settings.watch:
                    return
                self.reload()


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
