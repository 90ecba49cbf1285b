"""How it stands with journal and KI, as Prometheus reads it: what is wrong, what waits, what the link counts.

The text format 0.0.4. Nothing of a seat is in here, so nothing of a throw (the specification of the KI,
"Nothing leaks before the reveal"): records go out when a match is over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LINK: Final = "heek_link_"
"""What the name of each of the link's counters begins with."""

_HELP: Final[Mapping[str, str]] = {
    "frames": "Whole and sound frames that came.",
    "invalid_bytes": "Bytes that came and belong to no sound frame.",
    "crc_errors": "Frames that came damaged.",
    "resends": "Frames that were sent once more.",
    "duplicates": "Frames that came once more.",
    "hellos": "Greetings that were sent.",
    "sessions": "Sessions that were opened.",
    "round_trip_ms": "From a frame to its acknowledgement, the last time, in milliseconds.",
    "round_trip_smoothed_ms": "The same, over some eight frames.",
    "clock_behind_s": "How far the clock is behind the KI's, in seconds; negative if it is ahead.",
    "asked": "Questions that were asked.",
    "failed": "Questions that got no answer.",
}
_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LINE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^}]*\})? (\S+)")


@dataclass(frozen=True, slots=True)
class KiFigures:
    """What is told of the KI. Only numbers: words are for the page."""

    link: str = "none"
    """`ki.link`: `none`, `http`, `serial`."""
    waiting: int = 0
    """Results that the KI has not answered for."""
    up: bool | None = None
    """Whether it answers; None: it was not asked yet."""
    link_up: bool = False
    """Whether the link itself stands, with or without the KI behind it."""
    answered_wall_s: float | None = None
    """When it last answered, by the wall clock."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """What the link has counted since the start, by name; one that ends in `_ms` or `_s` is a measure."""


def exposition(figures: KiFigures, journal_faults: int = 0) -> bytes:
    """The whole answer to `GET /metrics`; `journal_faults` is the number of sentences that `/healthz` has."""
    return "".join(_lines(figures, journal_faults)).encode()


def _lines(figures: KiFigures, journal_faults: int) -> Iterator[str]:
    yield from _metric(
        "heek_journal_faults",
        "gauge",
        "How many things are wrong with the journal, among them that nothing is saved.",
        journal_faults,
    )
    yield from _metric(
        "heek_ki_link", "gauge", "The link that is configured, by its label.", 1, f'{{link="{figures.link}"}}'
    )
    if figures.link == "none":
        return
    yield from _metric(
        "heek_ki_waiting", "gauge", "Results that the KI has not answered for.", figures.waiting
    )
    if figures.up is not None:
        yield from _metric("heek_ki_up", "gauge", "Whether the KI answered the last time.", figures.up)
    if figures.answered_wall_s is not None:
        yield from _metric(
            "heek_ki_answered_timestamp_seconds",
            "gauge",
            "When the KI last answered.",
            figures.answered_wall_s,
        )
    yield from _metric("heek_link_up", "gauge", "Whether the link to the KI stands.", figures.link_up)
    for name, value in figures.counters.items():
        if _NAME.fullmatch(name):
            kind = "gauge" if name.endswith(("_ms", "_s")) else "counter"
            yield from _metric(LINK + name, kind, _HELP.get(name, "Counted by the link."), value)


def _metric(name: str, kind: str, words: str, value: float, labels: str = "") -> Iterator[str]:
    number = int(value) if float(value).is_integer() else value
    yield f"# HELP {name} {words}\n# TYPE {name} {kind}\n{name}{labels} {number}\n"


def read_exposition(text: str) -> dict[str, float]:
    """The values in such an answer, by name, labels left out; what is no sample is passed over."""
    values = {}
    for line in text.splitlines():
        sample = _LINE.fullmatch(line)
        if sample is not None:
            try:
                value = float(sample[2])
            except ValueError:
                continue
            if math.isfinite(value):
                values[sample[1]] = value
    return values
