"""What a monitor reads of the link: every counter, in the format it expects, and nothing of the game."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from heek.ki.delivery import ExchangeCounters
from heek.web.metrics import KiFigures, exposition, read_exposition
from tests.web.serving import LAN, serving

WELL_FORMED = re.compile(r'|# (HELP|TYPE) \w+ [\w ,.]+|\w+({link="http"})? [0-9.e+-]+', re.ASCII)
COUNTED = {"frames": 120, "invalid_bytes": 7, "crc_errors": 1, "resends": 2, "round_trip_ms": 3.4}
SERIAL = KiFigures("serial", 3, True, True, 1_900_000_000.25, COUNTED)


def test_the_endpoint() -> None:
    """`/metrics` answers in Prometheus' text format what the door says now, and is never kept."""
    now = [KiFigures("serial", 3, None)]
    with serving(ki_figures=lambda: now[0]) as served:
        answer = served.browser().get("/metrics")
        assert (answer.status, answer.headers["content-type"]) == (
            200,
            "text/plain; version=0.0.4; charset=utf-8",
        )
        assert answer.headers["cache-control"] == "no-cache"
        assert read_exposition(answer.body.decode()) == {
            "heek_journal_faults": 0,
            "heek_ki_link": 1,
            "heek_ki_waiting": 3,
            "heek_link_up": 0,
        }
        now[0] = SERIAL
        told = read_exposition(served.browser().get("/metrics").body.decode())
    assert told == {
        "heek_journal_faults": 0,
        "heek_ki_link": 1,
        "heek_ki_waiting": 3,
        "heek_ki_up": 1,
        "heek_ki_answered_timestamp_seconds": 1_900_000_000.25,
        "heek_link_up": 1,
        "heek_link_frames": 120,
        "heek_link_invalid_bytes": 7,
        "heek_link_crc_errors": 1,
        "heek_link_resends": 2,
        "heek_link_round_trip_ms": 3.4,
    }


def test_the_form() -> None:
    """Each sample has its help and its type before it: counts are counters, measures are gauges."""
    lines = exposition(SERIAL).decode().splitlines()
    assert lines[2] == "heek_journal_faults 0"
    assert lines[3:6] == [
        "# HELP heek_ki_link The link that is configured, by its label.",
        "# TYPE heek_ki_link gauge",
        'heek_ki_link{link="serial"} 1',
    ]
    assert "# TYPE heek_link_frames counter" in lines
    assert "# TYPE heek_link_round_trip_ms gauge" in lines
    assert "heek_link_frames 120" in lines
    for at in range(0, len(lines), 3):
        name = lines[at].split()[2]
        assert lines[at].startswith(f"# HELP {name} ")
        assert lines[at + 1].startswith(f"# TYPE {name} ")
        assert re.match(re.escape(name) + r"[ {]", lines[at + 2])


def test_how_far_the_clock_is_behind_may_fall() -> None:
    """It is a measure with words of its own, and negative where the clock is ahead."""
    lines = exposition(KiFigures("http", 0, True, True, None, {"clock_behind_s": -7})).decode().splitlines()
    assert "# TYPE heek_link_clock_behind_s gauge" in lines
    assert "heek_link_clock_behind_s -7" in lines
    assert not any("clock_behind_s Counted by" in line for line in lines)


def test_every_counter_of_the_serial_line_is_there_by_words() -> None:
    """What the specification counts on a serial line has a name and a help of its own."""
    counters = ExchangeCounters()
    counters.measure(1_000_000)
    told = exposition(KiFigures("serial", counters=counters.by_name())).decode()
    for name in ("frames", "invalid_bytes", "crc_errors", "resends", "duplicates", "hellos", "round_trip_ms"):
        assert f"# TYPE heek_link_{name} " in told
    assert "Counted by the link." not in told


def test_a_table_without_a_link_says_so() -> None:
    """Without a link there is nothing of it to count; one without the door has no such endpoint."""
    with serving(ki_figures=KiFigures) as served:
        assert read_exposition(served.browser().get("/metrics").body.decode()) == {
            "heek_journal_faults": 0,
            "heek_ki_link": 1,
        }
    with serving() as served:
        assert served.browser().get("/metrics").status == 404


def test_outsiders_are_not_told() -> None:
    """In LAN mode nobody reads it who has not joined."""
    with serving(LAN, ki_figures=lambda: SERIAL) as served:
        assert served.browser("table.lan").get("/metrics").status == 403


@given(
    st.dictionaries(
        st.text(max_size=20), st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 10**15)
    )
)
def test_what_is_written_is_read(counters: dict[str, float]) -> None:
    """Whatever a link counts by whatever name, the answer is well formed and read back exactly."""
    named = {name: value for name, value in counters.items() if re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name)}
    text = exposition(KiFigures("http", counters=counters)).decode()
    for line in text.split("\n"):
        assert re.fullmatch(
            r"|# (HELP|TYPE) \w+ [\w ,.]+|\w+({link=\"http\"})? [0-9.e+-]+", line, re.ASCII
        ), line
    told = read_exposition(text)
    read = {name.removeprefix("heek_link_"): value for name, value in told.items()}
    assert {name: read[name] for name in named if name != "up"} == {
        name: value for name, value in named.items() if name != "up"
    }


@given(st.text(max_size=300))
def test_reading_never_fails(text: str) -> None:
    """An answer that is no such thing has no values."""
    read_exposition(text)
