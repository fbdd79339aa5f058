"""`servers.yaml` as a value: read, checked, with variables filled in."""

from aggregator.config.load import check_profile, load_config, parse_config
from aggregator.config.values import (
    IDLE_TIMEOUT,
    Config,
    ServerConfig,
    Settings,
    SurfaceChoice,
    ToolSearchMode,
)

__all__ = [
    "IDLE_TIMEOUT",
    "Config",
    "ServerConfig",
    "Settings",
    "SurfaceChoice",
    "ToolSearchMode",
    "check_profile",
    "load_config",
    "parse_config",
]
