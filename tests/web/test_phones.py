"""Phones: who may join, and which of two phones has the seat."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.clock import SECOND
from heek.errors import PageRefusal
from heek.web.pace import MOST_REMEMBERED, Pace
from heek.web.phones import ALIVE, JOINS_AT_ONCE, KEEPS_SEAT, LAPSES, MOST_PHONES, Phone, Phones

TOKEN = "f" * 32


def phones(seats: tuple[int, ...] = (1, 2, 3)) -> Phones:
    """Phones at a table, with cookies that can be told apart."""
    count = itertools.count()
    return Phones(TOKEN, seats, lambda size: next(count).to_bytes(size))


def join(table: Phones, now: int = 0, peer: str = "") -> Phone:
    return table.join(TOKEN, peer or f"peer{len(table)}", now)


def test_the_token_lets_in() -> None:
    """The right token gives a session that its cookie brings back, and no seat yet."""
    table = phones()
    phone = join(table)
    assert table.known(phone.cookie, 1) is phone
    assert (phone.seat, table.held(1)) == (None, ())


@pytest.mark.parametrize("token", ["", "f" * 31, "f" * 33, "F" * 32, "é", "\ud800"])
def test_a_wrong_token_does_not(token: str) -> None:
    """Any other token is refused, whatever is in it."""
    with pytest.raises(PageRefusal) as caught:
        phones().join(token, "peer", 0)
    assert caught.value.status == 403


def test_guessing_is_slow() -> None:
    """After twenty attempts an address may try every three seconds; another address is not held up by it."""
    table = phones()
    for _ in range(JOINS_AT_ONCE):
        with pytest.raises(PageRefusal, match="scan"):
            table.join("wrong", "guesser", 0)
    with pytest.raises(PageRefusal) as caught:
        table.join(TOKEN, "guesser", 0)
    assert (caught.value.status, caught.value.retry_s) == (429, 3)
    assert table.join(TOKEN, "guest", 0)
    assert table.join(TOKEN, "guesser", 3 * SECOND)


def test_two_phones_and_one_seat() -> None:
    """The first keeps the seat while it is alive; a minute after the last word of it the next may have it."""
    table = phones()
    first, second = join(table), join(table)
    assert table.sit(first, 3, 0) == []
    with pytest.raises(PageRefusal, match="seat 3 is held by another phone") as caught:
        table.sit(second, 3, ALIVE - 1)
    assert caught.value.status == 409
    assert table.sit(second, 3, ALIVE) == [first]
    assert (first.seat, second.seat) == (None, 3)


def test_an_open_stream_keeps_the_seat() -> None:
    """A phone that only looks on is there, however long it says nothing else."""
    table = phones()
    first, second = join(table), join(table)
    table.sit(first, 3, 0)
    first.streams = 1
    with pytest.raises(PageRefusal, match="held"):
        table.sit(second, 3, 10 * ALIVE)
    assert table.held(10 * KEEPS_SEAT) == (3,)


def test_a_phone_changes_and_leaves_its_seat() -> None:
    """One seat at a time: taking another lets go of the first, and none is a choice, too."""
    table = phones()
    phone, other = join(table), join(table)
    table.sit(phone, 1, 0)
    assert table.sit(phone, 1, 0) == []
    assert table.sit(phone, 2, 0) == [phone]
    assert table.sit(other, 1, 0) == []
    assert table.sit(phone, None, 0) == [phone]
    assert table.held(0) == (1,)


def test_a_seat_that_is_not_there() -> None:
    """A table of three seats has no fourth."""
    table = phones()
    phone = join(table)
    with pytest.raises(PageRefusal, match="no seat 4") as caught:
        table.sit(phone, 4, 0)
    assert caught.value.status == 404


def test_a_phone_that_stays_away_loses_its_seat() -> None:
    """After ten minutes it plays nobody's seat any more, after twelve hours it has to scan again."""
    table = phones()
    phone = join(table)
    table.sit(phone, 3, 0)
    assert table.known(phone.cookie, KEEPS_SEAT - 1) is phone
    assert phone.seat == 3
    back = KEEPS_SEAT - 1 + KEEPS_SEAT
    assert table.known(phone.cookie, back) is phone
    assert phone.seat is None
    assert table.known(phone.cookie, back + LAPSES) is None


def test_previews_do_not_crowd_out_players() -> None:
    """Sessions are bounded: a new one takes the place of the idlest without a seat, never of a player."""
    table = phones()
    player = join(table)
    table.sit(player, 1, 0)
    for number in range(2 * MOST_PHONES):
        join(table, now=number * SECOND, peer=f"preview{number}")
    assert len(table) == MOST_PHONES
    assert table.known(player.cookie, 2 * MOST_PHONES * SECOND) is player


def test_a_full_house_says_so() -> None:
    """When every session is at play the next is told to wait."""
    table = phones()
    for _ in range(MOST_PHONES):
        join(table).streams = 1
    with pytest.raises(PageRefusal, match="wait") as caught:
        join(table)
    assert caught.value.status == 503


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, 1, 2, 3]), st.integers(0, 2 * ALIVE))))
def test_no_seat_is_ever_doubled(moves: list[tuple[int, int | None, int]]) -> None:
    """Whatever four phones try, no two have one seat, and a live one never loses it to another."""
    table = phones()
    four = [join(table) for _ in range(4)]
    now = 0
    for who, seat, passed in moves:
        now += passed
        phone = table.known(four[who].cookie, now)
        assert phone is not None
        before = {each: each.seat for each in four if each.alive(now) and each is not phone}
        try:
            table.sit(phone, seat, now)
        except PageRefusal:
            assert seat in before.values()
        assert all(each.seat == had for each, had in before.items())
        taken = [each.seat for each in four if each.seat is not None]
        assert len(taken) == len(set(taken))


def test_a_pace() -> None:
    """Three at once, then one each second; what was saved up is never more than three."""
    pace = Pace(3, SECOND)
    assert [pace.take("a", 0) for _ in range(4)] == [0, 0, 0, 1]
    assert pace.take("b", 0) == 0
    assert pace.take("a", SECOND - 1) == 1
    assert pace.take("a", SECOND) == 0
    assert [pace.take("a", 100 * SECOND) for _ in range(4)] == [0, 0, 0, 1]


def test_a_pace_remembers_only_so_many() -> None:
    """Strangers without end cost no memory without end."""
    pace = Pace(1, SECOND)
    for number in range(2 * MOST_REMEMBERED):
        pace.take(str(number), 0)
    assert pace.take(str(2 * MOST_REMEMBERED - 1), 0) == 1
    assert pace.take("0", 0) == 0


@given(st.lists(st.integers(0, SECOND), max_size=60))
def test_a_pace_holds_over_any_span(gaps: list[int]) -> None:
    """Over any span no more is let through than at once and one for each second of it."""
    pace = Pace(3, SECOND)
    let: list[int] = []
    now = 0
    for gap in gaps:
        now += gap
        if not pace.take("a", now):
            let.append(now)
    for first, start in enumerate(let):
        for last, end in enumerate(let[first:], first):
            assert last - first + 1 <= 3 + (end - start) // SECOND
