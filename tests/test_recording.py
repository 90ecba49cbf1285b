"""What is recorded replays to the identical events; what is damaged is refused; what runs does not leak."""

from __future__ import annotations

import contextlib
import zlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import MILLISECOND, SECOND
from heek.errors import RecordingError
from heek.kinds import KINDS, Kind
from heek.recording import (
    BrokenOff,
    Drawn,
    PartEncoder,
    Rested,
    StandstillEnded,
    Turn,
    WasClaimed,
    WasReset,
    WasTold,
    WereAsked,
    decode,
)
from heek.replay import replay
from heek.stations.gestures import Edge
from tests.recorded_world import PLAYERS, RecordedWorld, quick

SEATS = st.sampled_from((1, 2, 3))
LATE = st.sampled_from((0, 0, 0, 1, 2, 3, 4, 20, 60, 700, 3000))
GAPS = st.sampled_from((0, 1, 3, 30, 300, 1000, 1600, 2500, 6000))

ACTS = st.one_of(
    st.tuples(
        st.just("press"), SEATS, st.sampled_from(KINDS), st.sampled_from((5, 80, 80, 1200, 3200, 6000)), LATE
    ),
    st.tuples(st.just("sit")),
    st.tuples(st.just("round"), LATE),
    st.tuples(st.just("round"), st.just(0)),
    st.tuples(st.just("bounce"), SEATS, st.integers(1, 8), LATE),
    st.tuples(st.just("chord"), SEATS, st.sampled_from((0, 1, 2, 3, 4)), LATE),
    st.tuples(
        st.just("swing"),
        SEATS,
        st.sampled_from(KINDS),
        st.sampled_from((1.5, 4, 24, 30)),
        st.sampled_from((400, 1500, 2500)),
        st.sampled_from((0, 0, 2, 40)),
    ),
    st.tuples(st.just("read"), SEATS, st.sampled_from(KINDS)),
    st.tuples(st.just("claim"), SEATS),
    st.tuples(st.just("points"), SEATS, st.integers(-5, 900)),
    st.tuples(st.just("bots"), st.booleans()),
    st.tuples(st.just("reset")),
    st.tuples(st.just("still"), st.sampled_from((300, 1200, 3000))),
    st.tuples(st.just("unsettled"), st.integers(1, 4)),
    st.tuples(st.just("cut"), st.booleans()),
    st.tuples(st.just("quiet")),
)
STORY = st.lists(st.tuples(ACTS, GAPS), min_size=3, max_size=24)


def act(world: RecordedWorld, what: Any) -> None:
    match what:
        case ("press", seat, button, lasts, late):
            world.press(seat, button, lasts=lasts, late=late)
        case ("sit",):
            for seat in (1, 2, 3):
                world.press(seat, Kind.PAGE, 10 * seat)
                world.press(seat, Kind.PAGE, 400 + 10 * seat)
        case ("round", late):
            world.round_of((1, 2, 3), late)
        case ("bounce", seat, bounces, late):
            world.press(seat, Kind.PEN, late=late, bounces=bounces)
        case ("chord", seat, apart, late):
            world.press(seat, Kind.PEN)
            world.press(seat, Kind.BEETLE, apart, late=late)
        case ("swing", seat, button, period, lasts, late):
            world.swing(seat, button, period, lasts, late)
        case ("read", seat, button):
            world.read(seat, button)
        case ("claim", seat):
            world.table.claim(world.now, seat, PLAYERS[seat], f"Player {seat}")
        case ("points", seat, points):
            world.table.tell_points(world.now, {PLAYERS[seat]: points}, {PLAYERS[seat]: 1})
        case ("bots", come):
            (world.table.fill_seats if come else world.table.dismiss_bots)(world.now)
        case ("reset",):
            world.table.reset(world.now)
        case ("still", lasts):
            world.stand_still(lasts)
        case ("unsettled", turns):
            world.unsettled = turns
        case ("cut", short):
            world.cut(short_cut=short)
        case ("quiet",):
            world.run(75_000)
        case _:
            raise AssertionError(what)


def played(story: list[Any], **how: Any) -> RecordedWorld:
    world = RecordedWorld(**how)
    for what, gap in story:
        act(world, what)
        world.run(gap)
    world.run(20_000)
    return world


def same(world: RecordedWorld) -> int:
    """Every recording gives the world's own lines, as far as it covers them; how many those are."""
    lines = 0
    for recording, last_seq in world.recordings():
        replayed = replay(recording)
        first = replayed.first_seq
        assert replayed.lines()[: last_seq - first + 1] == world.lines[first - 1 : last_seq]
        lines += last_seq - first + 1
    return lines


def test_a_line_that_was_read_does_not_stand_for_its_last_edge() -> None:
    """A contact that floods and is read as open, which it was, heals in the replay when it healed."""
    world = RecordedWorld()
    act(world, ("sit",))
    world.swing(1, Kind.PEN, 1.5, 1500)
    world.run(1600)
    world.read(1, Kind.PEN)
    world.run(20_000)
    assert sum("contact_healed" in line for line in world.lines) == 1
    assert same(world) == len(world.lines)


def test_a_line_that_swings_takes_no_room_and_replays() -> None:
    """A contact that floods for a minute leaves an edge a second; all that is told replays to the byte."""
    world = RecordedWorld()
    act(world, ("sit",))
    world.run(500)
    world.swing(3, Kind.PEN, 1, 60_000)
    for _ in range(30):
        world.round_of((1, 2))
        world.run(2000)
    world.run(90_000)
    assert sum('"fault":"flood"' in line.replace(" ", "") for line in world.lines) == 1
    assert sum("contact_healed" in line for line in world.lines) == 1
    assert sum(len(part.inputs) for part in world.parts) < 30_000
    assert same(world) > 60


@settings(max_examples=250, deadline=None)
@given(story=STORY, seed=st.integers(0, 999), fixed=st.booleans(), late_join=st.booleans())
def test_random_play_replays_to_the_same_bytes(
    story: list[Any], seed: int, fixed: bool, late_join: bool
) -> None:
    """Late edges, stalls, unsettled turns, bots, claims, resets, cuts and pauses: the lines are the same."""
    timer = "fixed" if fixed else "first_throw"
    same(played(story, seed=seed, settings=quick(timer=timer, late_join=late_join)))


def test_random_play_reaches_what_it_is_for() -> None:
    """The property above is no empty exercise: a long story replays thousands of bytes, from a rest, too."""
    world = RecordedWorld()
    for _ in range(3):
        act(world, ("sit",))
        world.table.claim(world.now + 700 * MILLISECOND, 1, PLAYERS[1], "Shorah")
        world.run(3000)
        for _ in range(8):
            act(world, ("round", 0))
            world.run(1700)
        world.run(60_000)
    assert same(world) > 60
    assert [type(each.beginning.start).__name__ for each, _ in world.recordings()] == [
        "Started",
        "Rested",
        "Rested",
    ]
    said = "".join(world.lines)
    assert said.count('"match_won"') >= 2
    assert '"seat_claimed"' in said


@settings(max_examples=60, deadline=None)
@given(story=STORY, seed=st.integers(0, 99))
def test_a_recording_that_stops_early_gives_the_events_up_to_there(story: list[Any], seed: int) -> None:
    """After each part, as after a pulled plug, what is there replays to exactly what it covers."""
    world = played(story, seed=seed)
    for number, part in enumerate(world.parts):
        parts = [each for each in world.parts[: number + 1] if each.recording == part.recording]
        replayed = replay(decode(parts[0].beginning or b"", [each.inputs for each in parts]))
        assert replayed.lines() == world.lines[part.recording - 1 : part.last_seq]


@settings(max_examples=60, deadline=None)
@given(story=STORY, seed=st.integers(0, 99))
def test_nothing_is_given_out_while_a_round_is_open(story: list[Any], seed: int) -> None:
    """No part leaves in a running round, and none has an edge that the rules have not come to."""
    world = played(story, seed=seed)
    assert not {phase for _, phase in world.taken} & {"throw", "countdown", "settle"}
    for recording, _ in world.recordings():
        now = 0
        waiting: list[int] = []
        for item in recording.items:
            if isinstance(item, Edge):
                waiting.append(item.at)
            elif isinstance(item, Turn):
                now = item.now
        assert all(at <= now - world.gestures.chord for at in waiting)


def whole() -> tuple[RecordedWorld, bytes, list[bytes]]:
    """A match with some of everything, and its recording's blocks."""
    world = RecordedWorld()
    act(world, ("sit",))
    world.run(3000)
    act(world, ("chord", 1, 2, 0))
    for late in (0, 700, 0, 0, 0, 0):
        act(world, ("round", late))
        world.run(1700)
    world.table.tell_points(world.now, {PLAYERS[1]: 300}, {})
    world.run(5000)
    first = world.parts[0].recording
    parts = [each for each in world.parts if each.recording == first]
    assert len(parts) > 3
    return world, parts[0].beginning or b"", [each.inputs for each in parts]


@pytest.fixture(scope="module")
def blocks() -> tuple[bytes, list[bytes]]:
    _, beginning, parts = whole()
    return beginning, parts


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_changed_or_cut_block_is_refused(blocks: tuple[bytes, list[bytes]], data: st.DataObject) -> None:
    """A byte changed, a block cut, missing, twice or in another's place: one clear error each time."""
    beginning, parts = blocks
    all_blocks = [beginning, *parts]
    which = data.draw(st.integers(0, len(all_blocks) - 1))
    block = all_blocks[which]
    how = data.draw(st.sampled_from(("byte", "cut", "missing", "twice")))
    if how == "byte":
        place = data.draw(st.integers(0, len(block) - 1))
        changed = bytearray(block)
        changed[place] ^= data.draw(st.integers(1, 255))
        all_blocks[which] = bytes(changed)
    elif how == "cut":
        all_blocks[which] = block[: data.draw(st.integers(0, len(block) - 1))]
    elif how == "missing" and which < len(all_blocks) - 1:
        del all_blocks[which]
    else:
        all_blocks.insert(which, block)
    with pytest.raises(RecordingError, match=r"is damaged|is no recording"):
        decode(all_blocks[0], all_blocks[1:])


def sealed(block: bytes, crc: int) -> bytes:
    return block + zlib.crc32(block, crc).to_bytes(4, "little")


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_rubbish_with_a_right_checksum_is_refused_or_replays(
    blocks: tuple[bytes, list[bytes]], data: st.DataObject
) -> None:
    """Whoever makes a file up gets one clear error or some events, never a traceback."""
    beginning, parts = blocks
    bodies = [beginning[:-4], *(part[:-4] for part in parts)]
    for _ in range(data.draw(st.integers(1, 3))):
        which = data.draw(st.integers(0, len(bodies) - 1))
        body = bytearray(bodies[which])
        if not body:
            continue
        place = data.draw(st.integers(0, len(body) - 1))
        how = data.draw(st.sampled_from(("byte", "cut", "insert")))
        if how == "byte":
            body[place] = data.draw(st.integers(0, 255))
        elif how == "cut":
            del body[place : place + data.draw(st.integers(1, 40))]
        else:
            body[place:place] = data.draw(st.binary(min_size=1, max_size=12))
        bodies[which] = bytes(body)
    made_up, crc = [], 0
    for body in bodies:
        made_up.append(sealed(body, crc))
        crc = int.from_bytes(made_up[-1][-4:], "little")
    with contextlib.suppress(RecordingError):
        replay(decode(made_up[0], made_up[1:]))


def test_another_version_says_so(blocks: tuple[bytes, list[bytes]]) -> None:
    """A recording of a later layout is refused with what to do."""
    beginning, _ = blocks
    later = beginning[:15] + bytes([9]) + beginning[16:-4]
    with pytest.raises(RecordingError, match=r"another version of heek \(layout 9, this one replays 1\)"):
        decode(sealed(later, 0), [])


def test_a_number_without_end_is_refused(blocks: tuple[bytes, list[bytes]]) -> None:
    """A stamp of a thousand bytes is no stamp: it is refused before it is computed."""
    beginning, _ = blocks
    crc = int.from_bytes(beginning[-4:], "little")
    with pytest.raises(RecordingError, match="no clock shows"):
        decode(beginning, [sealed(bytes([0]) + b"\xff" * 1000 + b"\x01", crc)])


STAMPS = st.integers(-SECOND, 10**17)
ITEMS = st.one_of(
    st.builds(Edge, STAMPS, SEATS, st.sampled_from(KINDS), st.booleans()),
    st.builds(Drawn, st.binary(max_size=40)),
    st.builds(WasReset, STAMPS),
    st.builds(WereAsked, STAMPS, st.booleans()),
    st.builds(
        WasClaimed, STAMPS, SEATS, st.text(max_size=9), st.text(max_size=9), st.none() | STAMPS, STAMPS
    ),
    st.builds(WasTold, STAMPS, st.dictionaries(st.text(max_size=9), STAMPS, max_size=3), st.just({})),
    st.builds(lambda at, lasts: StandstillEnded(at, at + lasts), STAMPS, st.integers(0, SECOND)),
)


@settings(max_examples=200, deadline=None)
@given(
    items=st.lists(ITEMS, max_size=20), cuts=st.lists(st.integers(0, 20), max_size=3), broken=st.booleans()
)
def test_what_is_written_is_read_back(
    blocks: tuple[bytes, list[bytes]], items: list[Any], cuts: list[int], broken: bool
) -> None:
    """Every item comes back as it was, however the stream is cut into parts."""
    beginning, _ = blocks
    turns = [Turn(-1, 5), Turn(7, 7), Turn(7, 10**15)]
    items = [*items, *turns, *([BrokenOff()] if broken else [])]
    places = [0, *sorted(min(cut, len(items)) for cut in cuts), len(items)]
    encoder = PartEncoder(beginning)
    parts = [encoder.part(items[begin:end]) for begin, end in pairwise(places)]
    recording = decode(beginning, parts)
    # Edges compare by their stamps and seats alone.
    assert list(map(repr, recording.items)) == list(map(repr, items))
    assert recording.broken_off is broken


def test_an_edge_takes_few_bytes() -> None:
    """Ten thousand edges of ordinary play take eight bytes each at most."""
    encoder = PartEncoder(b"")
    edges = [
        Edge(number * 130_000_007, 1 + number % 5, KINDS[number % 3], number % 2 == 0)
        for number in range(10_000)
    ]
    assert len(encoder.part(edges)) < 8 * 10_000


def test_too_much_without_a_pause_is_given_up_and_said() -> None:
    """Past its bound a recording ends with a mark, and after a pause a new one begins."""
    world = RecordedWorld(most_bytes=600)
    act(world, ("sit",))
    world.run(3000)
    for _ in range(24):
        act(world, ("round", 0))
        world.run(1700)
    assert world.recordings()[0][0].broken_off
    given_up = len(world.parts)
    world.run(60_000)
    act(world, ("sit",))
    world.run(3000)
    for _ in range(6):
        act(world, ("round", 0))
        world.run(1700)
    assert len(world.parts) > given_up
    recording, last_seq = world.recordings()[-1]
    assert isinstance(recording.beginning.start, Rested)
    assert replay(recording).lines() == world.lines[recording.beginning.first_seq - 1 : last_seq]


def test_edges_of_long_ago_come_to_the_same_after_a_rest() -> None:
    """A minute late, from a round, from before a match's end, from before a newer edge: no seat is taken."""
    world = RecordedWorld()
    act(world, ("sit",))
    world.run(3000)
    world.edge(1, Kind.PEN, True, 500, late=61_000)  # in time for the round of then
    world.edge(2, Kind.PEN, True, 500)
    world.edge(2, Kind.PEN, False, 9000)
    world.edge(2, Kind.PEN, True, 600, late=62_000)  # older than what its contact did after it
    world.round_of((2, 3))
    world.run(60_000)
    world.run(5000)
    act(world, ("sit",))
    world.run(3000)
    for _ in range(6):
        act(world, ("round", 0))
        world.run(1700)
    recording, last_seq = world.recordings()[-1]
    assert isinstance(recording.beginning.start, Rested)
    assert (
        replay(recording).lines()[: last_seq - recording.beginning.first_seq + 1]
        == (world.lines[recording.beginning.first_seq - 1 : last_seq])
    )
    late = [each for each in replay(recording).edges if each.edge.at < recording.beginning.start.rest.until]
    assert [(each.edge.seat, each.fate) for each in late] == [(1, "late"), (2, "bounce")]
    # The contact of seat 1 stuck at once, and its press is what presses of before are since the rest.


def test_an_edge_that_the_rules_have_not_come_to_holds_the_part_back() -> None:
    """Pressed within chord_s of the reveal: the part comes a turn later, with the edge judged."""
    world = RecordedWorld()
    act(world, ("sit",))
    world.run(3000)
    for seat in (1, 2, 3):
        world.press(seat, Kind.PEN, 200)
    world.press(1, Kind.PAGE, 232)
    world.run(233.5)
    assert '"round_revealed"' in world.lines[-1]
    assert world.parts == []
    world.run(100)
    assert len(world.parts) == 1
    assert same(world) == len(world.lines)


def test_a_match_that_is_void_at_the_start_is_given_out_at_once() -> None:
    """After a power cut that ends the match nothing has to happen before its part is kept."""
    world = RecordedWorld(quick(resume=False))
    act(world, ("sit",))
    world.run(3000)
    world.cut(short_cut=True)
    assert '"match_void"' in "".join(world.lines)
    assert len(world.parts) == 1
