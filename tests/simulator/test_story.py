"""Stories: what is read from text, what is refused and how, the edges that follow, and the way back."""

from __future__ import annotations

import io
import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import MILLISECOND, SECOND
from heek.errors import StoryError
from heek.kinds import KINDS, Kind
from heek.simulator.steps import (
    EVENT_FIELDS,
    PATTERNS,
    SCREENS,
    Claim,
    ContactEdge,
    Display,
    End,
    Expect,
    Ki,
    Operator,
    Power,
    Press,
    RawEdge,
    Stall,
    Step,
    Story,
    WallClock,
)
from heek.simulator.story import contact_edges, parse, read, to_text
from tests.story_generator import random_story

INVALID = sorted((Path(__file__).parent.parent / "stories" / "invalid").glob("*.jsonl"))

EVERY_LINE = """\
// every line that the format has
{"story": 1, "table": {"ahyoheek.guard_s": 0.3, "ahyoheek.target": 3, "station": [{"seat": 1}, {"seat": 4}]}}

{"at": 0, "edge": {"seat": 4, "button": "beetle", "closed": true}}
{"at": 1.0, "press": {"seat": 1, "button": "pen"}}
{"at": 1.5, "press": {"seat": 1, "button": "page", "for": 0.2, "bounce": [[0.002, 0], [0.004, 1]]}}
{"at": 2, "edge": {"seat": 1, "button": "pen", "closed": true, "delivered": 2.02}}
{"at": 2.0, "claim": {"seat": 1, "player": "40220173", "name": "Shorah"}}
{"at": 2.0, "stall": 0.5}
{"at": 2.0, "wall_clock": "2031-01-01T00:00:00Z"}
{"at": 2.0, "display": "fail"}
{"at": 2.0, "display": "ok"}
{"at": 2.0, "ki": "down"}
{"at": 2.0, "ki": "up"}
{"at": 2.0, "operator": "reset"}
{"at": 2.0, "power": "cut"}
{"at": 2.1, "power": "on"}
{"at": 9.0, "expect": {"event": "match_won", "seat": 1, "at": 8.5}}
{"at": 9.0, "expect": {"lamp": {"seat": 4, "pattern": "thrown"}}, "within": 0.5}
{"at": 9.0, "expect": {"screen": "reveal"}, "not": true}
{"at": 60.123456789, "end": true}
"""


def steps(*lines: str) -> tuple[Step, ...]:
    return parse("\n".join(lines), "story.jsonl").steps


def mistake(*lines: str) -> str:
    with pytest.raises(StoryError) as caught:
        parse("\n".join(lines), "story.jsonl")
    return str(caught.value)


# -- reading ------------------------------------------------------------------------------------


def test_every_line_of_the_format_becomes_its_step() -> None:
    """Each kind of line is read into the step that means the same, its times exact."""
    story = parse(EVERY_LINE, "every.jsonl")
    assert story.table == {
        "ahyoheek.target": 3,
        "ahyoheek.guard_s": 0.3,
        "station": [{"seat": 1}, {"seat": 4}],
    }
    assert isinstance(story.table["ahyoheek.guard_s"], float)
    two = 2 * SECOND
    assert story.steps == (
        RawEdge(at=0, seat=4, button=Kind.BEETLE, closed=True),
        Press(at=SECOND, seat=1, button=Kind.PEN, duration=80 * MILLISECOND),
        Press(
            at=1_500_000_000,
            seat=1,
            button=Kind.PAGE,
            duration=200 * MILLISECOND,
            bounce=((2 * MILLISECOND, False), (4 * MILLISECOND, True)),
        ),
        RawEdge(at=two, seat=1, button=Kind.PEN, closed=True, delivered=2_020_000_000),
        Claim(at=two, seat=1, player="40220173", name="Shorah"),
        Stall(at=two, duration=500 * MILLISECOND),
        WallClock(at=two, wall_s=1_924_992_000.0),
        Display(at=two, ok=False),
        Display(at=two, ok=True),
        Ki(at=two, up=False),
        Ki(at=two, up=True),
        Operator(at=two, action="reset"),
        Power(at=two, on=False),
        Power(at=2_100_000_000, on=True),
        Expect(at=9 * SECOND, event={"event": "match_won", "seat": 1, "at": 8.5}),
        Expect(at=9 * SECOND, lamp=(4, "thrown"), within=500 * MILLISECOND),
        Expect(at=9 * SECOND, screen="reveal", negated=True),
        End(at=60_123_456_789),
    )


def test_steps_know_their_lines_and_comments_and_blanks_count() -> None:
    """A step's line is that of the file, whatever was skipped before it, with any line ends."""
    story = parse('\ufeff// hello\r\n\r\n  // too\r\n{"at": 1, "stall": 1}\r\n', "s")
    assert [step.line for step in story.steps] == [4]
    assert parse(EVERY_LINE, "s").header_line == 2


def test_nothing_is_a_story() -> None:
    """An empty file, and one of comments alone, is a story in which nothing happens."""
    assert parse("", "s") == Story() == parse("// nothing\n\n", "s")


def test_times_are_exact() -> None:
    """Seconds are taken as written and not as the nearest binary fraction; finer than a ns is rounded."""
    (first, second) = steps(
        '{"at": 0.1, "stall": 0.000000001}', '{"at": 0.30000000000000004, "stall": 31622400}'
    )
    assert (first.at, second.at) == (100_000_000, 300_000_000)
    assert isinstance(first, Stall)
    assert first.duration == 1
    (late,) = steps('{"at": 31622399.123456789, "stall": 1}')
    assert late.at == 31_622_399_123_456_789


def test_keys_of_press_and_edge_may_stand_beside_them() -> None:
    """`for`, both kinds of bounce and `delivered` mean the same inside the action and beside it."""
    inside = steps(
        '{"at": 1, "press": {"seat": 2, "button": "pen", "for": 1, "bounce": [[0.1, 0], [0.2, 1]]}}',
        '{"at": 3, "press": {"seat": 2, "button": "pen", "open_bounce": [[0.1, 1], [0.2, 0]]}}',
        '{"at": 4, "edge": {"seat": 2, "button": "pen", "closed": true, "delivered": 5}}',
    )
    beside = steps(
        '{"at": 1, "press": {"seat": 2, "button": "pen"}, "for": 1, "bounce": [[0.1, 0], [0.2, 1]]}',
        '{"at": 3, "press": {"seat": 2, "button": "pen"}, "open_bounce": [[0.1, 1], [0.2, 0]]}',
        '{"at": 4, "edge": {"seat": 2, "button": "pen", "closed": true}, "delivered": 5}',
    )
    assert inside == beside


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_can_be_expected(pattern: str) -> None:
    """No pattern of the LED is missing from what a story may name."""
    line = json.dumps({"at": 1, "expect": {"lamp": {"seat": 1, "pattern": pattern}}})
    assert steps(line) == (Expect(at=SECOND, lamp=(1, pattern)),)


@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_can_be_expected(screen: str) -> None:
    """No screen of the OLED is missing from what a story may name."""
    assert steps(json.dumps({"at": 1, "expect": {"screen": screen}})) == (Expect(at=SECOND, screen=screen),)


@pytest.mark.parametrize("name", EVENT_FIELDS)
def test_every_event_can_be_expected_with_its_fields(name: str) -> None:
    """Each event of the spec may be expected with each of its fields."""
    event = {"event": name, "seq": 1, "at": 1, **dict.fromkeys(EVENT_FIELDS[name], 1)}
    assert steps(json.dumps({"at": 1, "expect": event})) == (Expect(at=SECOND, event=event),)


def test_fields_that_events_may_get_later_can_be_expected() -> None:
    """A field that resembles none of the known ones is not taken for a slip."""
    assert len(steps('{"at": 1, "expect": {"event": "round_revealed", "flagged": true}}')) == 1


def test_unicode_line_separators_do_not_end_a_line() -> None:
    """Only a newline ends a line: U+2028 may stand inside a string."""
    (step,) = steps('{"at": 1, "expect": {"event": "seat_claimed", "name": "a\u2028b"}}')
    assert isinstance(step, Expect)
    assert step.event == {"event": "seat_claimed", "name": "a\u2028b"}


def test_a_list_of_stations_that_makes_no_sense_is_left_to_the_configuration() -> None:
    """The parser takes all five seats as present then, and keeps the list for others to refuse."""
    story = parse(
        '{"story": 1, "table": {"station": [{"seat": [1]}, 2]}}\n'
        '{"at": 1, "press": {"seat": 5, "button": "pen"}}',
        "s",
    )
    assert story.table == {"station": [{"seat": [1]}, 2]}
    assert len(story.steps) == 1


@pytest.mark.parametrize(
    ("text", "wall_s"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2038-01-19t03:14:08.25z", 2_147_483_648.25),
        ("2031-01-01 00:00:00+00:00", 1_924_992_000.0),
        ("0001-01-01T00:00:00Z", -62_135_596_800.0),
        ("9999-12-31T23:59:59Z", 253_402_300_799.0),
    ],
)
def test_wall_clocks(text: str, wall_s: float) -> None:
    """RFC 3339 in UTC in its several spellings, over all its years."""
    assert steps(json.dumps({"at": 0, "wall_clock": text})) == (WallClock(at=0, wall_s=wall_s),)


# -- edges --------------------------------------------------------------------------------------


def told(edges: list[ContactEdge]) -> list[tuple[float, float, int, str, int]]:
    return [(e.at / SECOND, e.delivered / SECOND, e.seat, e.button.value, int(e.closed)) for e in edges]


def test_a_press_with_bounce_becomes_its_raw_edges() -> None:
    """Bounce counts from the closing, open bounce from the opening, and all carry their own stamps."""
    story = parse(
        '{"at": 1, "press": {"seat": 3, "button": "page", "for": 0.1,'
        ' "bounce": [[0.002, 0], [0.004, 1]], "open_bounce": [[0.001, 1], [0.003, 0]]}}',
        "s",
    )
    assert told(contact_edges(story)) == [
        (1.0, 1.0, 3, "page", 1),
        (1.002, 1.002, 3, "page", 0),
        (1.004, 1.004, 3, "page", 1),
        (1.1, 1.1, 3, "page", 0),
        (1.101, 1.101, 3, "page", 1),
        (1.103, 1.103, 3, "page", 0),
    ]


def test_edges_come_in_the_order_of_delivery_and_then_of_the_file() -> None:
    """A late edge comes after edges of other contacts stamped later; equal ones keep the file's order."""
    story = parse(
        "\n".join(
            [
                '{"at": 1, "edge": {"seat": 1, "button": "pen", "closed": true}, "delivered": 2}',
                '{"at": 1, "press": {"seat": 2, "button": "pen", "for": 1}}',
                '{"at": 2, "edge": {"seat": 1, "button": "pen", "closed": false}}',
                '{"at": 2, "edge": {"seat": 3, "button": "pen", "closed": true}}',
            ]
        ),
        "s",
    )
    assert [(e.line, e.at // SECOND, e.closed) for e in contact_edges(story)] == [
        (2, 1, True),
        (1, 1, True),
        (2, 2, False),
        (3, 2, False),
        (4, 2, True),
    ]


def test_what_is_closed_at_0_is_the_state_at_start_up() -> None:
    """An edge and a press at 0 are marked as the initial state, and nothing later is."""
    story = parse(
        '{"at": 0, "edge": {"seat": 1, "button": "pen", "closed": true}}\n'
        '{"at": 0, "press": {"seat": 2, "button": "pen"}}\n'
        '{"at": 1, "edge": {"seat": 1, "button": "pen", "closed": false}}\n',
        "s",
    )
    assert [(e.seat, e.closed, e.initial) for e in contact_edges(story)] == [
        (1, True, True),
        (2, True, True),
        (2, False, False),
        (1, False, False),
    ]


def test_presses_that_only_touch_do_not_overlap() -> None:
    """A press may begin at the very instant at which the last one of its contact ended."""
    story = parse(
        '{"at": 1, "press": {"seat": 1, "button": "pen", "for": 0.5}}\n'
        '{"at": 1.5, "press": {"seat": 1, "button": "pen"}}',
        "s",
    )
    assert [(e.line, e.closed) for e in contact_edges(story)] == [
        (1, True),
        (1, False),
        (2, True),
        (2, False),
    ]


@pytest.mark.parametrize("seed", range(60))
def test_random_stories_are_valid_and_their_edges_are_what_a_contact_can_do(seed: int) -> None:
    """Every generated story parses; each contact alternates, in order of stamps and of delivery."""
    text = random_story(seed)
    assert text == random_story(seed)
    story = parse(text, f"seed {seed}")
    edges = contact_edges(story)
    assert [e.delivered for e in edges] == sorted(e.delivered for e in edges)
    for seat in range(1, 6):
        for kind in KINDS:
            mine = [e for e in edges if (e.seat, e.button) == (seat, kind)]
            assert [e.closed for e in mine] == [index % 2 == 0 for index in range(len(mine))]
            assert [e.at for e in mine] == sorted(e.at for e in mine)
    assert all(e.delivered >= e.at for e in edges)
    assert max(e.delivered for e in edges) <= 20 * SECOND
    assert parse(to_text(story), "again") == story


@pytest.mark.parametrize("seconds", [2.0, 5.0])
def test_short_random_stories_stay_within_their_time(seconds: float) -> None:
    """The generator keeps to the time it is given."""
    for seed in range(30):
        story = parse(random_story(seed, seconds), "s")
        assert max(step.at for step in story.steps) <= seconds * SECOND


# -- refusing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_stories_are_refused_with_one_clear_line(path: Path) -> None:
    """Each file of the corpus gives exactly the message in its first line, after file and line number."""
    text = path.read_text(encoding="utf-8")
    expected = text.splitlines()[0].removeprefix("// ")
    with pytest.raises(StoryError) as caught:
        read(path)
    assert str(caught.value) == f"{path}:{expected}"


def test_the_corpus_is_there() -> None:
    """The corpus was found, so the test above is not one of nothing."""
    assert len(INVALID) >= 116


def test_messages_stay_short_and_plain() -> None:
    """What a message quotes of a story is cut, and shows no control characters."""
    assert mistake(json.dumps({"at": 1, "\x1b[2J" + "x" * 9999: 1})) == (
        f'story.jsonl:1: unknown key "\\u001b[2J{"x" * 27}...; use at, press, edge, claim, stall, '
        "wall_clock, display, ki, power, operator, expect or end"
    )


def test_a_line_may_have_64_kib_and_no_more() -> None:
    """The limit is in bytes and exact."""
    shell = '{"at": 1, "expect": {"event": "seat_claimed", "name": ""}}'
    fits = shell.replace('""', '"' + "é" * ((65_536 - len(shell)) // 2) + '"')
    assert len(fits.encode()) == 65_536
    assert len(steps(fits)) == 1
    assert mistake("", fits.replace('"é', '"éé')) == (
        "story.jsonl:2: the line is longer than 64 KiB; split it into several steps"
    )


def test_a_file_may_have_4_mib_and_no_more(tmp_path: Path) -> None:
    """A file of 4 MiB is read, one byte more is refused with the line where it grew too large."""
    path = tmp_path / "large.jsonl"
    comment = "//" + "x" * 1021 + "\n"
    path.write_text(comment * 4096, encoding="utf-8")
    assert read(path) == Story()
    path.write_text(comment * 4096 + "\n", encoding="utf-8")
    message = f"{path}:4097: the file is larger than 4 MiB; split the story into several"
    with pytest.raises(StoryError) as caught:
        read(path)
    assert str(caught.value) == message
    with pytest.raises(StoryError, match=r"^s:4097: the file is larger"):
        parse(comment * 4096 + "\n", "s")


def test_a_file_that_is_not_utf_8_is_refused_with_the_line_of_its_bad_byte(tmp_path: Path) -> None:
    """The message names the byte, and the line it stands in."""
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b"// fine\n// na\xefve\n")
    with pytest.raises(StoryError) as caught:
        read(path)
    assert str(caught.value) == f"{path}:2: byte 0xef is not UTF-8; save the file as UTF-8"


@pytest.mark.parametrize("name", ["", "missing.jsonl", "nul\0.jsonl"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    """A folder, a missing file and an impossible name give a StoryError with the file and a reason."""
    with pytest.raises(StoryError, match=r"cannot be read \(.+\); name a story file"):
        read(tmp_path / name)


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads standard input, and messages call it so."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"at": 1, "stall": 1}\n')))
    assert read("-").steps == (Stall(at=SECOND, duration=SECOND),)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n[]\n")))
    with pytest.raises(StoryError, match=r"^<stdin>:2: a list is not an object"):
        read("-")


# -- properties ---------------------------------------------------------------------------------

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    [
        *("at", "story", "table", "press", "edge", "claim", "stall", "wall_clock", "display", "ki", "power"),
        *("operator", "expect", "end", "for", "bounce", "open_bounce", "delivered", "not", "within", "x"),
    ]
)


@given(st.lists(st.dictionaries(_KEYS, _VALUES, max_size=4), max_size=4))
def test_any_objects_give_a_story_or_a_mistake(lines: list[dict[str, Any]]) -> None:
    """Whatever the values are, nothing but a StoryError with file and line comes out."""
    text = "\n".join(json.dumps(line) for line in lines)
    try:
        parse(text, "s")
    except StoryError as error:
        assert str(error).startswith("s:")  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        assert "; " in str(error)  # noqa: PT017


@given(st.text() | st.text(string.printable))
def test_any_text_gives_a_story_or_a_mistake(text: str) -> None:
    """Rubbish is refused, never more than that."""
    try:
        parse(text, "s")
    except StoryError as error:
        assert str(error).startswith("s:")  # noqa: PT017


@given(st.integers(0, 400), st.data())
@settings(max_examples=60)
def test_any_damage_to_a_story_gives_a_story_or_a_mistake(seed: int, data: st.DataObject) -> None:
    """A valid story with one line cut, doubled or spliced is valid or refused, and never crashes."""
    lines = random_story(seed, 3.0).splitlines()
    index = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(0, len(lines[index])))
    other = data.draw(st.sampled_from(lines))
    lines[index] = data.draw(
        st.sampled_from([lines[index][:at], lines[index][:at] + other[at:], f"{other}\n{other}"])
    )
    try:
        story = parse("\n".join(lines), "s")
    except StoryError as error:
        assert str(error).startswith("s:")  # noqa: PT017
    else:
        assert parse(to_text(story), "s") == story


_NS = st.integers(1, 10**18) | st.integers(1, 2 * SECOND)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab._", max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def bounces(draw: st.DrawFn, first: bool, limit: int) -> tuple[tuple[int, bool], ...]:
    """Offsets below `limit` ns whose levels alternate, an even number of them."""
    offsets = sorted(draw(st.sets(st.integers(1, limit - 1), max_size=6))) if limit > 1 else []
    pairs = offsets[: len(offsets) // 2 * 2]
    return tuple((offset, first ^ (index % 2 == 1)) for index, offset in enumerate(pairs))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Any valid story: every kind of step, any times, contacts that never overlap."""
    table = draw(st.dictionaries(st.text("abc._", max_size=9), _JSON, max_size=4))
    made: list[Step] = []
    now, lit = 0, True
    level: dict[tuple[int, Kind], tuple[bool, int]] = {}
    for _ in range(draw(st.integers(0, 12))):
        now += draw(st.just(0) | st.integers(0, 3 * SECOND) | st.integers(0, 10**14))
        seat, button = draw(st.integers(1, 5)), draw(st.sampled_from(KINDS))
        closed, free_from = level.get((seat, button), (False, 0))
        match draw(st.integers(0, 10)):
            case 0 | 1 if not closed and free_from <= now:
                duration = draw(_NS.filter(lambda ns: ns < 10**15))
                bounce = draw(bounces(False, duration))
                after = draw(bounces(True, SECOND))
                end = now + duration + (after[-1][0] if after else 0)
                level[seat, button] = (False, end)
                made.append(
                    Press(
                        at=now, seat=seat, button=button, duration=duration, bounce=bounce, open_bounce=after
                    )
                )
            case 2 if free_from <= now and (now > 0 or (seat, button) not in level):
                delivered = draw(st.none() | st.integers(now, now + SECOND)) if now else None
                level[seat, button] = (not closed, now if delivered is None else delivered)
                made.append(RawEdge(at=now, seat=seat, button=button, closed=not closed, delivered=delivered))
            case 3 if lit:
                name = draw(
                    st.text(
                        st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=24
                    )
                )
                made.append(
                    Claim(at=now, seat=seat, player=f"{draw(st.integers(0, 99_999_999)):08d}", name=name)
                )
            case 4:
                made.append(Stall(at=now, duration=draw(st.integers(1, 10**15))))
            case 5:
                ms = draw(st.integers(-62_135_596_800_000, 253_402_300_799_999))
                made.append(WallClock(at=now, wall_s=ms / 1000))
            case 6:
                made.append(draw(st.builds(Display, at=st.just(now), ok=st.booleans())))
            case 7:
                made.append(draw(st.builds(Ki, at=st.just(now), up=st.booleans())))
            case 8:
                lit = not lit
                made.append(Power(at=now, on=lit))
            case 9 if lit:
                made.append(Operator(at=now))
            case _:
                looked_at: dict[str, Any] = draw(
                    st.sampled_from(sorted(EVENT_FIELDS))
                    .flatmap(lambda event: st.fixed_dictionaries({"event": st.just(event), "flagged": _JSON}))
                    .map(lambda event: {"event": event})
                    | st.sampled_from(PATTERNS).map(lambda pattern: {"lamp": (seat, pattern)})  # noqa: B023
                    | st.sampled_from(SCREENS).map(lambda screen: {"screen": screen})
                )
                negated, within = draw(st.booleans()), draw(st.integers(0, 10**15))
                made.append(Expect(at=now, negated=negated, within=within, **looked_at))
    if draw(st.booleans()):
        made.append(End(at=now))
    return Story(table, tuple(made))


@given(stories())
def test_any_story_is_read_back_as_it_was_written(story: Story) -> None:
    """Writing and reading gives the same story, to the nanosecond and to the last character."""
    assert parse(to_text(story), "s") == story


def test_edges_of_one_contact_are_handed_over_in_their_order() -> None:
    """An opening waits for its closing that comes late, as it does in the kernel's queue of a line."""
    story = parse(
        '{"at": 1, "edge": {"seat": 1, "button": "pen", "closed": true}, "delivered": 1.5}\n'
        '{"at": 1.08, "edge": {"seat": 1, "button": "pen", "closed": false}}\n'
        '{"at": 1.2, "press": {"seat": 2, "button": "pen"}}\n',
        "s",
    )
    assert [
        (e.seat, e.closed, e.at // MILLISECOND, e.delivered // MILLISECOND) for e in contact_edges(story)
    ] == [
        (2, True, 1200, 1200),
        (2, False, 1280, 1280),
        (1, True, 1000, 1500),
        (1, False, 1080, 1500),
    ]
