"""One TOML file into typed, frozen values, with every mistake answered at once."""

from heek.config.document import example, show
from heek.config.reading import (
    from_keys,
    from_text,
    is_for_service_alone,
    load,
    load_service,
    service_alone_words,
)
from heek.config.values import (
    AhyoheekConfig,
    Config,
    DisplayConfig,
    KiConfig,
    LogConfig,
    SeatsConfig,
    ServiceConfig,
    StationsConfig,
    TableConfig,
    WebConfig,
    default_state_dir,
)

__all__ = [
    "AhyoheekConfig",
    "Config",
    "DisplayConfig",
    "KiConfig",
    "LogConfig",
    "SeatsConfig",
    "ServiceConfig",
    "StationsConfig",
    "TableConfig",
    "WebConfig",
    "default_state_dir",
    "example",
    "from_keys",
    "from_text",
    "is_for_service_alone",
    "load",
    "load_service",
    "service_alone_words",
    "show",
]
