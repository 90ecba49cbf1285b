"""The table in a terminal: pictures, lamps, frames of every size, sentences, and a terminal given back."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from heek.simulator.steps import EVENT_FIELDS, PATTERNS
from heek.simulator.terminal import (
    ENTER,
    LEAVE,
    Canvas,
    Lamp,
    braille,
    can_draw,
    cells,
    clip,
    colour_allowed,
    event_line,
    event_row,
    frame,
    half_blocks,
    lamp_rows,
    repaint,
)
from heek.telling import Teller

GOLDEN = Path(__file__).parent / "golden"
LAMPS = (
    Lamp(1, "thrown", 1.0),
    Lamp(2, "your_turn", 0.3),
    Lamp(3, "time_running_out", 0.0),
    Lamp(5, "unconfirmed", 1.0),
)
LINES = (
    "A match begins: seats 1, 2, 3 and 5",
    "Round 1 opens for seats 1, 2, 3 and 5",
    "Seat 1 has thrown",
    "The countdown runs: 5 s left",
    "Seat 3's press does not count: several buttons closed at once",
)


def golden(name: str, text: str) -> None:
    """The text is that of the file; HEEK_RENEW_GOLDEN=1 writes the file instead."""
    path = GOLDEN / name
    if os.environ.get("HEEK_RENEW_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")


def picture() -> Image.Image:
    """A frame one pixel wide, a ring and a filled box that stand off centre, and a diagonal."""
    image = Image.new("1", (128, 64))
    for y in range(64):
        for x in range(128):
            edge = x in (0, 127) or y in (0, 63)
            ring = 18**2 <= (x - 40) ** 2 + (y - 30) ** 2 <= 24**2
            box = 90 <= x < 110 and 10 <= y < 20
            if edge or ring or box or x == y + 60:
                image.putpixel((x, y), 1)
    return image


def ink(dots: dict[tuple[int, int], int]) -> Image.Image:
    image = Image.new("1", (128, 64))
    for place, value in dots.items():
        image.putpixel(place, value)
    return image


# -- pictures -----------------------------------------------------------------------------------


def test_half_blocks_show_two_pixels_a_character() -> None:
    """Upper, lower, both and neither give the four characters, at the right place."""
    lines = half_blocks(ink({(0, 0): 1, (1, 1): 1, (2, 0): 1, (2, 1): 1, (127, 63): 1}))
    assert [len(line) for line in lines] == [128] * 32
    assert lines[0][:4] == "▀▄█ "
    assert lines[31] == " " * 127 + "▄"


@pytest.mark.parametrize(
    ("dot", "char"),
    [
        ((0, 0), "⠁"),
        ((0, 1), "⠂"),
        ((0, 2), "⠄"),
        ((0, 3), "⡀"),
        ((1, 0), "⠈"),
        ((1, 1), "⠐"),
        ((1, 2), "⠠"),
        ((1, 3), "⢀"),
    ],
)
def test_each_braille_dot_is_its_pixel(dot: tuple[int, int], char: str) -> None:
    """Each of a cell's eight pixels lights the dot at its own place, as Unicode numbers them."""
    lines = braille(ink({(126 + dot[0], 4 + dot[1]): 1}))
    assert [len(line) for line in lines] == [64] * 16
    assert lines[1] == "⠀" * 63 + char


@pytest.mark.parametrize("image", [Image.new("1", (64, 128)), Image.new("L", (128, 64))])
def test_pictures_of_another_kind_are_refused(image: Image.Image) -> None:
    """Only what an OLED of 128 x 64 can show is drawn."""
    for draw in (half_blocks, braille):
        with pytest.raises(ValueError, match=r"the OLED's is 128 x 64, one bit"):
            draw(image)


# -- lamps --------------------------------------------------------------------------------------


def test_lamps_are_told_apart_without_colour() -> None:
    """Off, dim and full have marks of their own, each pattern its words, an absent seat a dash."""
    assert lamp_rows(LAMPS, 90) == [
        "       1 ●               2 ◐               3 ○               4 -               5 ●",
        "      thrown          your turn       time runs out           -           press to stay",
    ]


def test_lamps_have_short_words_in_a_narrow_terminal() -> None:
    """Forty columns hold five seats, with a word each and a gap between them."""
    assert lamp_rows(LAMPS, 40) == [
        "  1 ●     2 ◐     3 ○     4 -     5 ●",
        " thrown  throw   hurry     -     press",
    ]


def test_every_pattern_has_words() -> None:
    """No pattern is shown by its name in the code, and the short words keep a gap in eight columns."""
    for pattern in PATTERNS:
        for width in (40, 90):
            words = lamp_rows([Lamp(1, pattern, 0)], width)[1]
            assert "_" not in words
            assert "…" not in words


def test_colour_adds_attributes_and_nothing_else() -> None:
    """Without its ANSI sequences a coloured row is the plain one, and each LED is set back."""
    plain = lamp_rows(LAMPS, 80)
    coloured = lamp_rows(LAMPS, 80, colour=True)
    assert "\x1b" in coloured[0]
    assert coloured[0].count("\x1b[0m") == 5
    stripped = coloured[0]
    for attribute in ("\x1b[0m", "\x1b[2m", "\x1b[33m", "\x1b[1;33m"):
        stripped = stripped.replace(attribute, "")
    assert [stripped, coloured[1]] == plain


# -- frames -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(132, 42), (130, 36), (80, 24), (66, 20), (40, 12), (20, 6)])
def test_frames_look_as_they_did(width: int, height: int) -> None:
    """A frame of each style is that of its golden file."""
    golden(f"frame_{width}x{height}.txt", frame(width, height, picture(), LAMPS, LINES, "12.345 s"))


def test_a_panel_that_does_not_answer_is_said_so() -> None:
    """Without a picture the frame keeps its shape, and says why it is empty."""
    golden("frame_no_panel.txt", frame(80, 24, None, LAMPS, LINES, "12.345 s"))


def test_the_last_events_are_shown() -> None:
    """Of more lines than there is room for the newest are shown, the oldest of them first."""
    text = frame(80, 24, picture(), LAMPS, [f"event {number}" for number in range(9)], "1 s")
    assert text.splitlines()[-3:] == ["event 6", "event 7", "event 8"]


@example(40, 2, True, ["x"], "1 s")
@example(3, 1, True, ["x"], "12.345 s")
@given(
    st.integers(0, 150),
    st.integers(0, 50),
    st.booleans(),
    st.lists(st.text(max_size=60), max_size=8),
    st.text(max_size=30),
)
def test_a_frame_never_exceeds_its_size(
    width: int, height: int, panel: bool, lines: list[str], clock: str
) -> None:
    """No size and no text, wide or malicious, makes a frame wider or higher than it may be."""
    image = Image.new("1", (128, 64)) if panel else None
    rows = frame(width, height, image, LAMPS, lines, clock).split("\n")
    assert len(rows) <= max(height, 1)
    assert all(cells(row) <= width for row in rows)
    assert not any("\x1b" in row or "\r" in row for row in rows)
    if width >= 40 and height >= 12:
        assert len(rows) >= 11


def test_wide_characters_count_as_two_columns() -> None:
    """Text is cut by columns, not by characters, and a combining mark takes none."""
    assert (cells("名前"), cells("Ａ"), cells("e\u0301"), cells("a")) == (4, 2, 1, 1)
    assert clip("名前は", 5) == "名前…"
    assert clip("名前は", 4) == "名…"
    assert clip("abc", 3) == "abc"
    assert clip("abc", 0) == ""


# -- sentences ----------------------------------------------------------------------------------

SENTENCES: list[tuple[dict[str, Any], str]] = [
    ({"event": "table_started", "name": "Table 1"}, "The table starts: Table 1"),
    ({"event": "seat_taken", "seat": 2, "kind": "guest"}, "Seat 2 is taken"),
    ({"event": "seat_taken", "seat": 2, "kind": "bot"}, "A bot sits down at seat 2"),
    (
        {"event": "seat_claimed", "seat": 2, "player": "40220173", "name": "Shorah"},
        "Shorah signs in at seat 2 (KI 40220173)",
    ),
    ({"event": "seat_ready", "seat": 2}, "Seat 2 is ready"),
    ({"event": "seat_left", "seat": 2, "reason": "leave"}, "Seat 2 stands up"),
    (
        {"event": "seat_left", "seat": 2, "reason": "missed"},
        "Seat 2 stands up: it missed too many rounds",
    ),
    ({"event": "match_started", "seats": [1, 2, 4]}, "A match begins: seats 1, 2 and 4"),
    ({"event": "round_opened", "round": 3, "seats": [1, 2]}, "Round 3 opens for seats 1 and 2"),
    ({"event": "throw_locked", "seat": 4}, "Seat 4 has thrown"),
    ({"event": "countdown_started", "at": 1.5, "deadline": 6.5}, "The countdown runs: 5 s left"),
    ({"event": "countdown_started", "at": 1.5, "deadline": None}, "The countdown runs"),
    ({"event": "countdown_started", "at": 1.5, "deadline": 1.0}, "The countdown runs"),
    ({"event": "countdown_started", "at": 1.5, "deadline": 10**400}, "The countdown runs"),
    (
        {"event": "press_ignored", "seat": 1, "reason": "guard"},
        "Seat 1's press does not count: the round has only just opened",
    ),
    (
        {"event": "contact_stuck", "seat": 1, "button": "page"},
        "Seat 1's page is stuck; it is ignored until it opens",
    ),
    (
        {"event": "contact_faulty", "seat": 1, "button": "page", "fault": "chatter"},
        "Seat 1's page bounces for long: its switch is worn; it goes on counting",
    ),
    (
        {"event": "contact_faulty", "seat": 1, "button": "page", "fault": "flood"},
        "Seat 1's page closes faster than a finger can press; it is ignored until it has been quiet",
    ),
    (
        {"event": "contact_faulty", "seat": 1, "button": "page", "fault": "sings"},
        "Seat 1's page is faulty: sings",
    ),
    ({"event": "contact_healed", "seat": 1, "button": "page"}, "Seat 1's page works again"),
    (
        {
            "event": "round_revealed",
            "round": 2,
            "throws": {"1": "pen", "2": "page", "3": None, "4": "page"},
            "winners": [1],
        },
        "Round 2: seat 1 pen, seat 2 page, seat 3 nothing, seat 4 page; seat 1 wins with pen",
    ),
    (
        {"event": "round_revealed", "round": 2, "throws": {1: "pen", 2: "pen", 3: "page"}, "winners": (1, 2)},
        "Round 2: seat 1 pen, seat 2 pen, seat 3 page; seats 1 and 2 win with pen",
    ),
    (
        {"event": "round_revealed", "round": 2, "throws": {"1": "pen", "2": "pen"}, "winners": []},
        "Round 2: seat 1 pen, seat 2 pen; nobody wins",
    ),
    (
        {"event": "round_void", "round": 2, "reason": "throws"},
        "Round 2 is void: fewer than two have thrown",
    ),
    ({"event": "sudden_death", "seats": [1, 5]}, "Sudden death: seats 1 and 5"),
    (
        {"event": "match_won", "seat": 2, "by": "walkover", "deltas": {"1": -1, "2": 1}},
        "Seat 2 wins the match: the others have left (+1)",
    ),
    (
        {"event": "match_won", "seat": 2, "by": "total", "deltas": {"1": 0, "2": 0}},
        "Seat 2 wins the match: the most altogether",
    ),
    (
        {"event": "match_won", "seat": 2, "by": "three", "deltas": {}},
        "Seat 2 wins the match: enough of one kind",
    ),
    (
        {"event": "match_void", "reason": "operator"},
        "The match is void: the operator reset the table",
    ),
    (
        {"event": "late_delivery", "seat": 3},
        "Seat 3's press was heard too late for its round, which is flagged",
    ),
]


@pytest.mark.parametrize(("event", "sentence"), SENTENCES)
def test_events_are_told_in_plain_words(event: dict[str, Any], sentence: str) -> None:
    """Each event of the spec has its sentence."""
    assert event_line(event) == sentence


def test_no_event_is_left_without_a_sentence() -> None:
    """The examples above hold every event that a story may expect."""
    assert {event["event"] for event, _ in SENTENCES} == set(EVENT_FIELDS)


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("seat_left", ("leave", "missed", "idle", "rematch", "operator", "power")),
        (
            "press_ignored",
            ("guard", "late", "locked", "not_seated", "not_in_round", "match_closed", "chord", "noise"),
        ),
        ("round_void", ("throws", "gap", "power")),
        ("match_void", ("idle", "empty", "operator", "power", "sudden_death_limit", "winnerless_limit")),
    ],
)
def test_every_reason_is_told_in_words_of_its_own(name: str, reasons: tuple[str, ...]) -> None:
    """No two reasons read the same, and none shows the name it has in the code."""
    told = [event_line({"event": name, "seat": 1, "round": 1, "reason": reason}) for reason in reasons]
    assert len(set(told)) == len(reasons)
    assert not any("_" in line for line in told)


def test_a_match_is_won_with_what_was_collected() -> None:
    """Told after its last reveal, a match won names the kind and how many of it there are."""
    teller = Teller()
    collections = {"1": {"pen": 2, "page": 0, "beetle": 1}, "2": {"pen": 0, "page": 3, "beetle": 2}}
    teller.tell({"event": "round_revealed", "round": 7, "collections": collections})
    won = {"event": "match_won", "seat": 2, "by": "three", "deltas": {"1": -3, "2": 3}}
    assert teller.tell(won) == "Seat 2 wins the match: three pages (+3)"
    assert event_line(won, {2: {"beetle": 1}}) == "Seat 2 wins the match: one beetle (+3)"


def test_an_event_of_a_later_version_explains_itself() -> None:
    """An unknown event is told by its name and its plain fields."""
    line = event_line({"seq": 9, "at": 1.0, "event": "turn_started", "seat": 2, "board": [1, 2]})
    assert line == "Turn started: seat 2"
    assert event_line({}) == "?"


_FIELDS = ("seat", "seats", "reason", "round", "throws", "winners", "by", "deltas", "deadline", "at", "name")
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2) | st.integers(), inner),
    max_leaves=5,
)


@given(
    st.sampled_from([*EVENT_FIELDS, "other"]), st.dictionaries(st.sampled_from(_FIELDS), _ANYTHING), _ANYTHING
)
def test_no_event_breaks_a_sentence_or_a_terminal(
    name: str, fields: dict[str, Any], collections: object
) -> None:
    """Whatever an event holds, its line has no control character and nothing is raised."""
    line = event_line({"event": name, **fields}, collections)
    assert line
    assert not any(ord(char) < 32 or char == "\x7f" for char in line)
    line.encode("utf-8")
    assert "\n" not in event_row({"event": name, **fields})


def test_plain_mode_is_one_line_an_event() -> None:
    """A row has the time in seconds, right aligned, and the sentence; or only the sentence."""
    event = {"event": "seat_ready", "seat": 2, "at": 12.3456}
    assert event_row(event) == "    12.346 s  Seat 2 is ready"
    assert event_row(event, "told otherwise") == "    12.346 s  told otherwise"
    assert event_row({"event": "seat_ready", "seat": 2}) == "              Seat 2 is ready"


# -- the terminal -------------------------------------------------------------------------------


class Tty(io.StringIO):
    """A terminal that keeps what it is sent."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class AsciiTty(Tty):
    encoding = "ascii"


def test_frames_are_drawn_only_where_they_can_be_seen() -> None:
    """A pipe, a dumb terminal and one without block characters get plain mode."""
    assert can_draw(Tty(), {"TERM": "xterm"})
    assert not can_draw(io.StringIO(), {"TERM": "xterm"})
    assert not can_draw(Tty(), {"TERM": "dumb"})
    assert not can_draw(Tty(), {})
    assert not can_draw(AsciiTty(), {"TERM": "xterm"})


def test_colour_is_for_terminals_that_do_not_refuse_it() -> None:
    """NO_COLOR with any content, a pipe and a dumb terminal are without colour; an empty NO_COLOR is not."""
    assert colour_allowed(Tty(), {"TERM": "xterm", "NO_COLOR": ""})
    assert not colour_allowed(Tty(), {"TERM": "xterm", "NO_COLOR": "0"})
    assert not colour_allowed(Tty(), {"TERM": "dumb"})
    assert not colour_allowed(io.StringIO(), {"TERM": "xterm"})


def test_a_repaint_covers_what_stood_there() -> None:
    """It goes home, clears the rest of each line and of the screen, and does not scroll at the end."""
    assert repaint("ab\nc") == "\x1b[Hab\x1b[K\r\nc\x1b[K\x1b[J"


def test_a_canvas_sends_a_frame_once() -> None:
    """The same frame again sends nothing, until the canvas is told that the terminal has changed."""
    stream = Tty()
    with Canvas(stream) as canvas:
        assert stream.getvalue() == ENTER
        assert canvas.show("a")
        assert not canvas.show("a")
        assert stream.getvalue() == ENTER + repaint("a")
        canvas.forget()
        assert canvas.show("a")
    assert stream.getvalue() == ENTER + repaint("a") * 2 + LEAVE


def test_a_canvas_gives_the_terminal_back_after_any_end() -> None:
    """Cursor and screen come back when drawing fails, and the error goes on."""
    stream = Tty()
    with pytest.raises(KeyboardInterrupt), Canvas(stream):
        raise KeyboardInterrupt
    assert stream.getvalue() == ENTER + LEAVE
