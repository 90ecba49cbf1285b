"""What players hold, as far as the table knows: what the KI told, and on top what it has not answered for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heek.games.ranking_points import GRANT
from heek.session.points import KnownPoints
from tests.session.at_table import AtTable

PLAYERS = ["11111111", "22222222"]


def test_stakes_follow_what_the_ki_told() -> None:
    """A player who was told to hold 500 points stakes rank 3; one never seen stakes the grant's rank."""
    table = AtTable(told_points={"22222222": 0})
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.press(3, 1.0)
    table.claim(1.2, 1, "11111111", "Atrus")
    table.claim(1.2, 2, "22222222", "Yeesha")
    table.claim(1.2, 3, "33333333", "Sirrus")
    table.tell_points(1.5, {"11111111": 500})
    table.run(20.0)
    (started,) = table.told("match_started")
    assert started["stakes"] == {"1": 3, "2": 0, "3": 1}


@given(
    st.lists(st.tuples(st.sampled_from(PLAYERS), st.integers(-5, 5)), max_size=12),
    st.data(),
)
def test_however_answers_come_the_points_are_the_kis_and_ours(
    deltas: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Records are answered for in any order; at each moment a player holds the grant and all that was won."""
    known = KnownPoints({})
    ki = dict.fromkeys(PLAYERS, GRANT)
    waiting: list[tuple[str, int]] = []
    total = dict.fromkeys(PLAYERS, GRANT)
    for player, delta in deltas:
        # As the session does at a match's end.
        known.tell({}, {player: -delta})
        waiting.append((player, delta))
        total[player] += delta
        if data.draw(st.booleans()):
            who, answered = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
            ki[who] += answered
            known.tell({who: ki[who]}, {who: answered})
        assert {each: known.points(each) for each in PLAYERS} == total
