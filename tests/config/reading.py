"""Read a configuration from text, and say what is wrong with one."""

from pathlib import Path

import pytest

from aggregator.config import Config, ServerConfig, parse_config
from aggregator.errors import ConfigError
from aggregator.names import ServerName

PATH = Path("/etc/aggregator/servers.yaml")


def config_of(text: str, **environ: str) -> Config:
    return parse_config(text, PATH, environ)


def server_of(text: str, **environ: str) -> ServerConfig:
    """Return the one server of a file that has only its keys written down."""
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    return config_of(f"servers:\n  one:\n{indented}\n", **environ).servers[ServerName("one")]


def refusal(text: str, **environ: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config_of(text, **environ)
    return caught.value
