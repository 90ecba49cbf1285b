"""Writes a configuration: the commented example to start from, and what is in force."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from heek.config.keys import ARRAYS, DISPLAY_KEYS, KEYS, SECTIONS, Key, Seconds, quoted, seconds_words
from heek.config.values import Config
from heek.wiring.pin_map import DEFAULT_STATIONS

_HEAD = """\
# Configuration of an Ahyoheek table. Every key stands here at its default; what is left out keeps it.
# Seconds end in _s. After a change: heek config check FILE
"""
_STATIONS = """\
# One [[station]] for each seat that is wired, two to five of them; a seat without one is absent.
# A pin that is left out is that of the pin map. Without any [[station]] all five are wired as here.
"""
_DISPLAYS = """\
# One [[display]] for each panel of 128 x 64. Without any: this one with backend "gpio", a dummy with "mock".
"""


def example() -> str:
    """A complete file with every key at its default and a comment on each, for buttons on the Pi's pins."""
    blocks = [_HEAD]
    for section in SECTIONS:
        lines = [f"[{section}]"]
        for key in (key for key in KEYS if key.name.startswith(f"{section}.")):
            if key.field == "state_dir":
                # The default differs between users and systems, so it cannot be written down here.
                line = f"# {_bare(key)} = {quoted('/var/lib/heek')}"
            elif key.field == "backend":
                line = f"{_bare(key)} = {quoted('gpio')}"
            else:
                line = f"{_bare(key)} = {_toml(key, key.default_value())}"
            lines.append(f"{line:<32} # {key.meaning}; {_choices(key)}")
        blocks.append("\n".join(lines) + "\n")
    stations = [_table("station", [("seat", station.seat), *station.roles]) for station in DEFAULT_STATIONS]
    blocks.append(_STATIONS + "\n".join(stations))
    lines = ["[[display]]"]
    for key in DISPLAY_KEYS:
        value = f"{key.name} = {_toml(key, key.default)}"
        lines.append(f"{value:<32} # {key.meaning}; {key.rule.words()}")
    blocks.append(_DISPLAYS + "\n".join(lines) + "\n")
    return "\n".join(blocks)


def show(config: Config) -> str:
    """The configuration in force as TOML, every key written out; reading it gives an equal one."""
    blocks = []
    for section in SECTIONS:
        values = getattr(config, section)
        lines = [f"[{section}]"]
        lines += [
            f"{_bare(key)} = {_toml(key, getattr(values, key.field))}"
            for key in KEYS
            if key.name.startswith(f"{section}.")
        ]
        blocks.append("\n".join(lines) + "\n")
    blocks += [_table("station", [("seat", station.seat), *station.roles]) for station in config.wired]
    for display in config.displays:
        pairs = [f"{key.name} = {_toml(key, getattr(display, key.name))}" for key in ARRAYS["display"]]
        blocks.append("\n".join(["[[display]]", *pairs]) + "\n")
    return "\n".join(blocks)


def _table(name: str, pairs: Iterable[tuple[str, int]]) -> str:
    return "\n".join([f"[[{name}]]", *(f"{key} = {value}" for key, value in pairs)]) + "\n"


def _bare(key: Key) -> str:
    return key.name.rpartition(".")[2]


def _choices(key: Key) -> str:
    if key.field == "state_dir":
        return "default: the platform's, $STATE_DIRECTORY under systemd"
    return key.rule.words()


def _toml(key: Key, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if isinstance(key.rule, Seconds):
            return seconds_words(value)
        return f"0x{value:02x}" if key.name == "address" else str(value)
    if isinstance(value, str | Path):
        return quoted(str(value))
    raise TypeError(f"{key.name}: {value!r} has no place in a configuration")
