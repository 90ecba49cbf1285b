"""One TOML file into typed, frozen values, with every mistake answered at once."""

from heek.config.document import example, show
from heek.config.reading import from_keys, from_text, load
from heek.config.values import (
    AhyoheekConfig,
    Config,
    DisplayConfig,
    LogConfig,
    SeatsConfig,
    StationsConfig,
    TableConfig,
    default_state_dir,
)

__all__ = [
    "AhyoheekConfig",
    "Config",
    "DisplayConfig",
    "LogConfig",
    "SeatsConfig",
    "StationsConfig",
    "TableConfig",
    "default_state_dir",
    "example",
    "from_keys",
    "from_text",
    "load",
    "show",
]
