"""`servers.yaml` as a value: read, checked, with variables filled in."""

from aggregator.clients import SurfaceChoice
from aggregator.config.load import check_profile, load_config, parse_config
from aggregator.config.mode import ToolSearchMode
from aggregator.config.settings import Settings
from aggregator.config.values import IDLE_TIMEOUT, Config, ServerConfig

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
