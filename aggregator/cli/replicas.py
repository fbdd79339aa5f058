"""What a door has in common with others that serve the same clients, as commands are told."""

import argparse
from pathlib import Path

from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.config.http import Replicas
from aggregator.config.quantities import is_store
from aggregator.upstream.http.binding import Binding, BindingError
from aggregator.upstream.http.replicas.common import Common
from aggregator.upstream.http.replicas.key_file import ensure_keys
from aggregator.upstream.http.replicas.mail import Box
from aggregator.upstream.seal import Cipher

STATE = "AGGREGATOR_STATE"
"""The variable with the address of the store: what stands in a command line, others can see."""


def common_for(
    options: argparse.Namespace, file: Replicas, binding: Binding, environment: Environment
) -> Common | None:
    """Return what we have in common with other replicas, if there are to be any.

    What was typed is stronger than the environment, and that than the file.

    Raises:
        CommandError: It cannot be done so.
    """
    typed: str | None = options.state
    url = typed or environment.variables.get(STATE) or file.store
    path = file.key
    if options.state_key is not None:
        path = environment.directory / Path(options.state_key).expanduser()
    if path is None:
        if typed or file.store:
            raise CommandError(
                f"{'`--state`' if typed else '`http.state`'} needs `--state-key`, or "
                "`http.stateKey` in the file",
                "What replicas tell each other there is sealed with a key that they share",
                ExitStatus.USAGE,
            )
        return None
    if options.shared:
        named = "`--state-key`" if options.state_key is not None else "`http.stateKey`"
        raise CommandError(
            f"{named} and `--shared` exclude each other",
            "Leave out `--shared`: each replica has servers of its own",
            ExitStatus.USAGE,
        )
    # Whoever is alone does not wait for what only replicas take.
    from aggregator.upstream.http.replicas.cipher import SharedCipher  # noqa: PLC0415 - see above

    try:
        keys = ensure_keys(path)
        cipher = SharedCipher(keys)
        return Common.of(keys, cipher, binding, None if url is None else _store(url, cipher))
    except BindingError as error:
        raise CommandError(str(error), error.hint) from error


def _store(url: str, cipher: Cipher) -> Box:
    """Return what replicas have in common besides the keys."""
    if not is_store(url):
        raise CommandError(
            "the store is not a `redis://…` or `rediss://…` address",
            "`--state redis://host:6379/0`",
            ExitStatus.USAGE,
        )
    try:
        from aggregator.upstream.http.replicas.store import Store  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise CommandError(
            "a store needs the extra `redis`", "`pip install 'mcp-tool-aggregator[redis]'`"
        ) from error
    return Store(url, cipher)
