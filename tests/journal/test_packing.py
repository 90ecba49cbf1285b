"""What is written small is read as it was; what an older heek wrote, or a card has damaged, as it stands."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heek.journal import Batch, Entry, open_journal, read_journal
from heek.journal.packing import packed, rest_of_line, unpacked, whole_line
from heek.journal.schema import FILE_NAME
from heek.session import events as ev
from heek.session.events import event_line, event_name
from tests.journal.damage import STATE
from tests.journal.scripts import label


def told(seq: int, event: ev.Event) -> Entry:
    return Entry(seq, event.at, event_name(type(event)), event_line(seq, event))


@given(st.binary(max_size=2000))
@example(b"\x01" + zlib.compress(STATE))
def test_a_state_comes_back(state: bytes) -> None:
    """Any bytes, also those that begin like packed ones; and those of a table come small."""
    assert unpacked(packed(state)) == state
    assert len(packed(8 * STATE)) < 2 * len(STATE)


def test_a_state_of_an_older_heek_is_read_as_it_stands() -> None:
    """JSON is not packed, and nothing is made of it."""
    assert unpacked(STATE) == STATE


@pytest.mark.parametrize(
    "written",
    [
        packed(STATE)[:-1],
        packed(STATE)[:9] + b"\xa5" + packed(STATE)[10:],
        b"\x01",
        b"\x01" + zlib.compress(bytes(20_000_000)),
    ],
    ids=["cut", "changed", "nothing", "larger than any state"],
)
def test_a_damaged_state_is_no_state(written: bytes) -> None:
    """It comes back as it stands, for whoever reads it to refuse."""
    assert unpacked(written) == written


LINES = st.text(max_size=60).filter(lambda line: not line.startswith((",", "}")))
"""Any but those that begin as the rest of a line does: a JSON object begins with a brace."""


@given(st.integers(1, 1 << 40), st.integers(-(1 << 62), 1 << 62), st.text(max_size=20), LINES)
def test_any_line_comes_back(seq: int, at_ns: int, event: str, line: str) -> None:
    """Also one that is none of ours."""
    assert whole_line(seq, at_ns, event, rest_of_line(seq, at_ns, event, line)) == line


def test_what_the_columns_say_is_not_written_again(folder: Path) -> None:
    """The file has each line without its beginning, and the journal gives it whole."""
    events = [
        told(1, ev.TableStarted(0, "00", "boot", "Table 1")),
        told(2, ev.SeatReady(1_234_567_891, 3)),
        Entry(3, 5, "of_another_form", '{"event":"of_another_form","seq":3}'),
        Entry(4, 6, "bare", '{"seq":4,"at":0.000000,"event":"bare"}'),
    ]
    with open_journal(folder) as journal:
        journal.append(Batch(tuple(events), True, STATE, label(1)))
        rows = journal._db.execute("SELECT body FROM events ORDER BY seq").fetchall()
        assert [row for (row,) in rows[1:]] == [',"seat":3}', events[2].body, "}"]
        assert list(journal.events()) == events
        (state,) = journal._db.execute("SELECT state FROM snapshot").fetchone()
        assert state == packed(STATE)
        assert journal.verify() == []
    with read_journal(folder) as reader:
        assert list(reader.events()) == events
        assert reader.snapshot() == (STATE, label(1))


def test_columns_that_a_card_has_changed_are_told_and_break_nothing(folder: Path) -> None:
    """An instant that is a text, a line that is bytes: the check names them, and the others are read."""
    with open_journal(folder) as journal:
        events = tuple(told(seq, ev.SeatReady(seq, 1)) for seq in range(1, 4))
        journal.append(Batch(events, True, None, label(1)))
    db = sqlite3.connect(folder / FILE_NAME)
    db.execute("UPDATE events SET at_ns = 'soon' WHERE seq = 1")
    db.execute("UPDATE events SET body = x'ff' WHERE seq = 2")
    db.commit()
    db.close()
    with read_journal(folder) as reader:
        assert [each.seq for each in reader.events()] == [1, 2, 3]
        assert list(reader.events())[2] == events[2]
        assert [line for line in reader.verify() if "JSON" in line] == [
            "event 1: its line is not a JSON object",
            "event 2: its line is not a JSON object",
        ]
