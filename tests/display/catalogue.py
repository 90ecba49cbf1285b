"""Every state of the table that has a golden picture, by name, in the order of the contact sheet."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from heek.clock import MILLISECOND, SECOND, Instant
from heek.display import screens
from heek.display.faces import Screen
from heek.display.ki_mark import KiMark, Reach
from heek.kinds import KINDS, SEATS, Kind
from heek.session.phases import Phase
from heek.session.view import Collection, SeatState, SeatView, View

PEN, PAGE, BEETLE = KINDS
T0 = 100 * SECOND
"""When the phase of every view here began."""

TABLE = "The Cavern of Ae'gura"
HARD_NAMES = {
    1: "O’Neil ♥",
    2: "名前",
    3: "\u202eabc\ud800",
    4: "Zoë\nÄcädmü",
    5: "W" * 60,
}


def seats(**by_number: Any) -> tuple[SeatView, ...]:
    """Five seats; `s1=dict(...)` changes seat 1, the rest are free."""
    return tuple(
        SeatView(seat, **({"state": SeatState.FREE} | by_number.get(f"s{seat}", {}))) for seat in SEATS
    )


def five(*, state: SeatState = SeatState.TAKEN, **common: Any) -> tuple[SeatView, ...]:
    """Five seats alike."""
    return tuple(SeatView(seat, state=state, **common) for seat in SEATS)


def table(phase: Phase, rows: tuple[SeatView, ...], *, until_s: float | None = None, **rest: Any) -> View:
    """A view whose phase began at `T0` and ends `until_s` after that."""
    until = None if until_s is None else T0 + round(until_s * SECOND)
    return View(phase=phase, since=T0, until=until, seats=rows, **rest)


def but(rows: tuple[SeatView, ...], **by_number: dict[str, Any]) -> tuple[SeatView, ...]:
    """The same seats with some changed."""
    return tuple(replace(row, **by_number.get(f"s{row.seat}", {})) for row in rows)


HELD = (
    Collection(2, 1, 0),
    Collection(0, 2, 1),
    Collection(1, 1, 1),
    Collection(0, 0, 2),
    Collection(0, 0, 0),
)
PLAYING = tuple(SeatView(seat, SeatState.TAKEN, collection=HELD[seat - 1], in_round=True) for seat in SEATS)
WORKED_EXAMPLE = but(
    PLAYING,
    s1={"throw": PEN, "points": 0},
    s2={"throw": BEETLE, "points": -1},
    s3={"throw": BEETLE, "points": -1},
    s4={"throw": PAGE, "points": 1, "won_round": True, "collection": Collection(0, 1, 2)},
    s5={"throw": PAGE, "points": 1, "won_round": True, "collection": Collection(0, 1, 0)},
)
NAMES = {1: "Shorah", 2: "Atrus of D'ni", 3: "The Grower", 4: "Yeesha", 5: "Gehn, Lord of Ages 37 & 5"}
NAMED = tuple(replace(row, name=NAMES[row.seat]) for row in five())
DUEL = but(
    tuple(replace(row, in_round=row.seat in (2, 5), collection=Collection(3, 1, 0)) for row in PLAYING),
)
KI_UP = KiMark(Reach.UP, last="14:02")
KI_WAITING = KiMark(Reach.UP, 3, "14:02")
KI_AWAY = KiMark(Reach.DOWN, 12, "14:02")
KI_CLAIMS = KiMark(Reach.UP, 3, claim="BCDFGHJK")
KI_TROUBLED = KiMark(Reach.UP, last="14:02", trouble=True)
KI_MARKS: dict[str, KiMark] = {
    "attract-ki-up": KI_UP,
    "attract-ki-waiting": KI_WAITING,
    "attract-ki-no-link-turned": KI_AWAY,
    "attract-ki-trouble": KI_TROUBLED,
    "attract-ki-name": KI_UP,
    "attract-ki-mark": KI_UP,
    "attract-ki-mark-no-link": KI_AWAY,
    "attract-ki-mark-many-turned": KiMark(Reach.DOWN, 1234),
    "attract-ki-unknown": KiMark(Reach.UNKNOWN),
    "attract-ki-claim": KI_CLAIMS,
    "attract-ki-claim-wide": KiMark(Reach.UP, claim="MWQXZSRV"),
    "fault-ki": KI_WAITING,
    "fault-ki-not-saving": KI_AWAY,
    "fault-ki-journal-damaged": KiMark(Reach.DOWN, 1234),
    "lobby-ki-up": KI_UP,
    "lobby-ki-waiting": KI_WAITING,
    "lobby-ki-unknown": KiMark(Reach.UNKNOWN),
    "lobby-ki-ask": KI_AWAY,
    "lobby-ki-named": KI_WAITING,
    "lobby-ki-counting-up": KI_UP,
    "lobby-ki-counting-no-link": KI_AWAY,
    "lobby-ki-counting-long": KiMark(Reach.DOWN, 1234),
    "lobby-ki-not-enrolled": KI_CLAIMS,
    "lobby-ki-claim": KI_CLAIMS,
    "throw-ki-up": KI_UP,
    "throw-ki-waiting": KI_WAITING,
    "throw-ki-no-link": KI_AWAY,
    "throw-ki-many": KiMark(Reach.DOWN, 1234),
    "throw-ki-trouble": KI_TROUBLED,
    "throw-ki-not-enrolled": KI_CLAIMS,
    "throw-ki-sudden-death": KI_AWAY,
    "throw-ki-bots-troubles": KI_AWAY,
    "match-over-ki": KI_WAITING,
    "void-ki": KI_WAITING,
}
"""How it stands with the KI where a picture shows that."""
DAMAGED = "The journal was damaged. It was set aside in damaged-1."
ALL_STUCK = five(state=SeatState.FREE, stuck=KINDS)
EVERY_FAULT: dict[str, dict[str, Any]] = {
    "s1": {"stuck": (PEN,), "faults": ((PAGE, "flood"), (BEETLE, "chatter"))},
    "s4": {"faults": ((PEN, "chatter"),)},
}
TWO_STATIONS = seats(
    s2={"state": SeatState.ABSENT}, s3={"state": SeatState.ABSENT}, s5={"state": SeatState.ABSENT}
)


def won(by: str, seat: int = 3, **winner: Any) -> View:
    """Match over, `seat` the winner."""
    rows = but(WORKED_EXAMPLE, **{f"s{seat}": dict(won_match=True, **winner)})
    return table(Phase.MATCH_OVER, rows, until_s=8, winner=seat, by=by, round=7)


def stuck_everywhere(rows: tuple[SeatView, ...]) -> tuple[SeatView, ...]:
    return tuple(replace(row, stuck=(Kind.PEN,)) for row in rows)


def worn_everywhere(rows: tuple[SeatView, ...]) -> tuple[SeatView, ...]:
    return tuple(replace(row, faults=((Kind.PAGE, "chatter"),)) for row in rows)


@lru_cache(maxsize=1)
def moments() -> dict[str, tuple[View, Instant, str]]:
    """Each picture's view, its instant, and the cycle in force."""
    leave = {"leaves_at": T0 + 2 * SECOND}
    lobby_two = seats(s1={"state": SeatState.TAKEN}, s4={"state": SeatState.READY})
    rules = table(Phase.LOBBY, lobby_two, rules_since=T0)
    thrown = but(PLAYING, s2={"thrown": True}, s5={"thrown": True})
    counting = table(Phase.COUNTDOWN, thrown, until_s=5, round=3)
    throw = table(Phase.THROW, PLAYING, round=3)
    reveal = table(Phase.REVEAL, WORKED_EXAMPLE, until_s=4, round=3)
    duel_over = but(DUEL, s2={"throw": PEN, "won_round": True, "points": 1}, s5={"throw": PAGE, "points": -1})
    resume_rows = but(PLAYING, s2={"state": SeatState.UNCONFIRMED}, s5={"state": SeatState.UNCONFIRMED})
    resume = table(Phase.RESUME, resume_rows, until_s=15, round=4)
    attract = table(Phase.ATTRACT, five(state=SeatState.FREE))
    found: dict[str, tuple[View, float]] = {
        "attract-0": (attract, 0),
        "attract-7": (attract, 7),
        "attract-13-name": (attract, 13),
        "attract-32-turned": (attract, 32),
        "attract-40-name-turned": (attract, 40),
        "fault-stuck": (table(Phase.ATTRACT, seats(s3={"stuck": (BEETLE,)})), 0),
        "fault-all-stuck": (table(Phase.ATTRACT, ALL_STUCK), 6),
        "fault-flood": (table(Phase.ATTRACT, seats(s5={"faults": ((PAGE, "flood"),)})), 0),
        "fault-worn": (
            table(Phase.ATTRACT, seats(s2={"faults": ((PEN, "chatter"), (BEETLE, "chatter"))})),
            0,
        ),
        "fault-of-every-kind": (table(Phase.ATTRACT, seats(**EVERY_FAULT)), 6),
        "fault-not-saving": (table(Phase.ATTRACT, seats(), not_saving=True), 9),
        "fault-journal-damaged": (table(Phase.ATTRACT, seats(), journal=(DAMAGED,)), 0),
        "fault-both": (table(Phase.ATTRACT, seats(s1={"stuck": (PEN, PAGE)}), not_saving=True), 3),
        "lobby-one": (table(Phase.LOBBY, seats(s2={"state": SeatState.TAKEN})), 0),
        "lobby-two": (table(Phase.LOBBY, lobby_two, until_s=10), 2.5),
        "lobby-two-stations": (
            table(Phase.LOBBY, but(TWO_STATIONS, s1={"state": SeatState.TAKEN}), until_s=None),
            0,
        ),
        "lobby-unconfirmed": (
            table(
                Phase.LOBBY,
                but(five(state=SeatState.UNCONFIRMED), s1={"state": SeatState.READY}),
            ),
            0,
        ),
        "lobby-unconfirmed-dark": (table(Phase.LOBBY, five(state=SeatState.UNCONFIRMED)), 0.5),
        "lobby-long-names": (table(Phase.LOBBY, NAMED, until_s=10), 8),
        "lobby-named-alone": (table(Phase.LOBBY, seats(s2={"state": SeatState.TAKEN, "name": "Atrus"})), 0),
        "lobby-long-wait": (table(Phase.LOBBY, five(), until_s=120), 0),
        "lobby-troubles": (
            table(Phase.LOBBY, stuck_everywhere(five(state=SeatState.READY)), until_s=9, not_saving=True),
            0,
        ),
        **{
            f"lobby-hard-name-{seat}": (
                table(Phase.LOBBY, seats(**{f"s{seat}": {"state": SeatState.TAKEN, "name": name}})),
                0,
            )
            for seat, name in HARD_NAMES.items()
        },
        "rules-ring": (rules, 0),
        "rules-ring-other-cycle": (rules, 0),
        "rules-three": (rules, 4),
        "rules-four-of-a-kind": (replace(rules, target=4), 4),
        "rules-leave": (rules, 8),
        "rules-troubles": (
            table(Phase.LOBBY, stuck_everywhere(five()), rules_since=T0, not_saving=True),
            8,
        ),
        "throw-first-round": (
            table(Phase.THROW, tuple(replace(r, collection=Collection()) for r in PLAYING), round=1),
            0,
        ),
        "throw": (throw, 0),
        "throw-two-stations": (
            table(
                Phase.THROW,
                but(
                    TWO_STATIONS,
                    s1={"state": SeatState.TAKEN, "in_round": True, "collection": HELD[0]},
                    s4={"state": SeatState.TAKEN, "in_round": True, "collection": HELD[1]},
                ),
                round=104,
            ),
            0,
        ),
        "throw-target-nine": (replace(throw, target=9, round=23), 0),
        "throw-sudden-death": (table(Phase.THROW, DUEL, round=12, sudden_death=True), 0),
        "throw-worn": (replace(throw, seats=worn_everywhere(throw.seats)), 0),
        "throw-troubles": (replace(throw, seats=stuck_everywhere(throw.seats), not_saving=True), 0),
        "countdown-5": (counting, 0),
        "countdown-4": (counting, 1),
        "countdown-3": (replace(counting, seats=but(thrown, s1={"thrown": True})), 2),
        "countdown-2": (counting, 3),
        "countdown-1": (
            replace(counting, seats=but(PLAYING, **{f"s{s}": {"thrown": True} for s in SEATS})),
            4,
        ),
        "countdown-0": (replace(counting, phase=Phase.SETTLE, until=None), 5),
        "countdown-6": (replace(counting, until=T0 + 6 * SECOND), 0),
        "countdown-60": (replace(counting, until=T0 + 60 * SECOND), 0),
        "countdown-sudden-death": (
            replace(counting, seats=but(DUEL, s2={"thrown": True}), sudden_death=True),
            2,
        ),
        "countdown-leaving": (replace(counting, seats=but(thrown, s1=leave, s3=leave, s5=leave)), 0.5),
        "countdown-worn": (replace(counting, seats=worn_everywhere(thrown)), 0),
        "countdown-troubles": (replace(counting, seats=stuck_everywhere(thrown), not_saving=True), 0),
        "reveal": (reveal, 0),
        "reveal-no-winner": (
            replace(
                reveal,
                seats=but(
                    PLAYING,
                    s1={"throw": PEN, "points": 0},
                    s3={"throw": PAGE, "points": 0},
                    s5={"throw": BEETLE, "points": 0},
                ),
            ),
            0,
        ),
        "reveal-five-winners-less-one": (
            replace(
                reveal,
                seats=but(
                    PLAYING,
                    s1={"throw": BEETLE, "points": -4},
                    **{f"s{s}": {"throw": PAGE, "points": 1, "won_round": True} for s in (2, 3, 4, 5)},
                ),
            ),
            0,
        ),
        "reveal-collections": (reveal, 2),
        "reveal-collections-dark": (reveal, 2.5),
        "reveal-third": (
            replace(reveal, seats=but(WORKED_EXAMPLE, s4={"collection": Collection(0, 3, 2)})),
            2,
        ),
        "reveal-sudden-death": (replace(reveal, seats=duel_over, sudden_death=True), 0),
        "reveal-sudden-death-collections": (replace(reveal, seats=duel_over, sudden_death=True), 2),
        "reveal-leaving": (
            replace(reveal, seats=but(WORKED_EXAMPLE, **{f"s{s}": leave for s in SEATS})),
            0,
        ),
        "reveal-worn": (replace(reveal, seats=worn_everywhere(WORKED_EXAMPLE)), 0),
        "reveal-troubles": (replace(reveal, seats=stuck_everywhere(WORKED_EXAMPLE), not_saving=True), 0),
        "match-over-throws": (won("three", 4, collection=Collection(0, 3, 2)), 0),
        "match-over-three": (won("three", 4, collection=Collection(0, 3, 2)), 2.5),
        "match-over-three-dark": (won("three", 4, collection=Collection(0, 3, 2)), 3),
        "match-over-name": (won("three", 5, collection=Collection(0, 3, 2), name=NAMES[5]), 4.5),
        "match-over-hard-name": (won("three", 1, collection=Collection(3, 0, 2), name=HARD_NAMES[5]), 4.5),
        "match-over-total": (won("total", 1, collection=Collection(3, 2, 2)), 2.5),
        "match-over-target-nine": (
            replace(won("three", 2, collection=Collection(9, 2, 2)), target=9),
            2.5,
        ),
        "match-over-sudden-death": (won("sudden_death", 2), 2.5),
        "match-over-walkover": (won("walkover", 3), 2.5),
        "match-over-leaving": (
            replace(
                won("three", 4, collection=Collection(0, 3, 2)),
                seats=but(won("three", 4, collection=Collection(0, 3, 2)).seats, s1=leave, s2=leave),
            ),
            0.9,
        ),
        "match-over-troubles": (
            replace(won("walkover", 1), seats=stuck_everywhere(won("walkover", 1).seats), not_saving=True),
            2.5,
        ),
        "void-last-throws": (
            table(Phase.MATCH_OVER, WORKED_EXAMPLE, until_s=8, void="winnerless_limit", round=50),
            0,
        ),
        **{
            f"void-{reason.replace('_', '-')}": (
                table(Phase.MATCH_OVER, PLAYING, until_s=8, void=reason, round=2),
                0.0,
            )
            for reason in ("idle", "empty", "operator", "power", "sudden_death_limit", "winnerless_limit")
        },
        "void-reason-unknown": (table(Phase.MATCH_OVER, PLAYING, until_s=8, void="eclipse", round=2), 0),
        "void-troubles": (
            table(
                Phase.MATCH_OVER, stuck_everywhere(PLAYING), until_s=8, void="power", round=2, not_saving=True
            ),
            0,
        ),
        **{
            f"leaving-throw-{seat}": (replace(throw, seats=but(PLAYING, **{f"s{seat}": leave})), 0.0)
            for seat in SEATS
        },
        "leaving-lobby": (
            table(Phase.LOBBY, but(lobby_two, s1={"leaves_at": T0 + 2 * SECOND}), until_s=10),
            1,
        ),
        "leaving-resume": (replace(resume, seats=but(resume_rows, s3=leave)), 1),
        "leaving-troubles": (
            replace(throw, seats=stuck_everywhere(but(PLAYING, s2=leave)), not_saving=True),
            1,
        ),
        "resume": (resume, 0),
        "resume-dark": (resume, 5.5),
        "resume-troubles": (replace(resume, seats=stuck_everywhere(resume_rows), not_saving=True), 0),
    }
    bot = {"bot": True}
    bots = {f"s{seat}": bot for seat in (2, 3, 5)}
    alone = table(Phase.LOBBY, seats(s1={"state": SeatState.TAKEN}), bots_allowed=True)
    found |= {
        "lobby-alone-ask": (alone, 2),
        "lobby-alone-ask-named": (replace(alone, seats=but(alone.seats, s1={"name": NAMES[5]})), 2),
        "lobby-alone-fill": (replace(alone, bots_at=T0 + 10 * SECOND), 3),
        "lobby-alone-fill-long": (
            replace(
                alone,
                seats=but(alone.seats, s1={"name": NAMES[5]}),
                bots_at=T0 + 120 * SECOND,
            ),
            2,
        ),
        "rules-bots": (replace(rules, bots_allowed=True), 12),
        "lobby-bots": (
            table(
                Phase.LOBBY,
                but(five(state=SeatState.READY, bot=True), s1={"state": SeatState.TAKEN, "bot": False}),
                until_s=10,
                bots_allowed=True,
            ),
            0,
        ),
        "lobby-bots-unconfirmed": (
            table(Phase.LOBBY, but(five(state=SeatState.UNCONFIRMED, bot=True), s1={"bot": False})),
            0,
        ),
        "lobby-bots-troubles": (
            table(
                Phase.LOBBY,
                stuck_everywhere(five(state=SeatState.READY, bot=True)),
                until_s=9,
                not_saving=True,
            ),
            0,
        ),
        "throw-bots": (replace(throw, seats=but(PLAYING, **bots)), 0),
        "throw-bots-sudden-death": (
            table(
                Phase.THROW,
                but(DUEL, **{f"s{seat}": bot for seat in SEATS}),
                round=104,
                sudden_death=True,
            ),
            0,
        ),
        "throw-bots-troubles": (
            replace(
                throw, seats=stuck_everywhere(but(PLAYING, **{f"s{s}": bot for s in SEATS})), not_saving=True
            ),
            0,
        ),
        "countdown-bots": (replace(counting, seats=but(thrown, **bots)), 0),
        "countdown-bots-troubles": (
            replace(
                counting,
                seats=stuck_everywhere(but(thrown, **{f"s{s}": bot for s in SEATS})),
                not_saving=True,
            ),
            0,
        ),
        "reveal-bots": (replace(reveal, seats=but(WORKED_EXAMPLE, **bots)), 0),
        "reveal-bots-collections": (replace(reveal, seats=but(WORKED_EXAMPLE, **bots)), 2),
        "reveal-bots-troubles": (
            replace(
                reveal,
                seats=stuck_everywhere(but(WORKED_EXAMPLE, **{f"s{s}": bot for s in SEATS})),
                not_saving=True,
            ),
            0,
        ),
        "reveal-bots-leaving": (
            replace(reveal, seats=but(WORKED_EXAMPLE, **bots, s1=leave, s4=leave)),
            0,
        ),
        "match-over-bots": (
            replace(
                won("three", 3, collection=Collection(0, 3, 2)),
                seats=but(won("three", 3, collection=Collection(0, 3, 2)).seats, **bots),
            ),
            2.5,
        ),
        "void-bots": (
            table(Phase.MATCH_OVER, but(PLAYING, **bots), until_s=8, void="winnerless_limit", round=2),
            0,
        ),
        "leaving-bots": (replace(throw, seats=but(PLAYING, **bots, s1=leave)), 1),
        "resume-bots": (
            replace(
                resume,
                seats=but(
                    PLAYING,
                    s1={"state": SeatState.UNCONFIRMED},
                    **{f"s{seat}": bot for seat in (2, 3, 4, 5)},
                ),
            ),
            0,
        ),
    }
    lobby_one = table(Phase.LOBBY, seats(s2={"state": SeatState.TAKEN}))
    found |= {
        "attract-ki-up": (attract, 13),
        "attract-ki-waiting": (attract, 13),
        "attract-ki-no-link-turned": (attract, 43),
        "attract-ki-trouble": (attract, 12),
        "attract-ki-name": (attract, 8),
        "attract-ki-mark": (attract, 0),
        "attract-ki-mark-no-link": (attract, 5),
        "attract-ki-mark-many-turned": (attract, 36),
        "attract-ki-unknown": (attract, 13),
        "attract-ki-claim": (attract, 0),
        "attract-ki-claim-wide": (attract, 0),
        "fault-ki": (table(Phase.ATTRACT, seats(**EVERY_FAULT)), 6),
        "fault-ki-not-saving": (table(Phase.ATTRACT, seats(), not_saving=True), 9),
        "fault-ki-journal-damaged": (
            table(Phase.ATTRACT, ALL_STUCK, not_saving=True, journal=(DAMAGED,)),
            3,
        ),
        "lobby-ki-up": (lobby_one, 0),
        "lobby-ki-waiting": (lobby_one, 0),
        "lobby-ki-unknown": (lobby_one, 0),
        "lobby-ki-ask": (alone, 2),
        "lobby-ki-named": (table(Phase.LOBBY, NAMED, until_s=20), 10),
        "lobby-ki-counting-up": (table(Phase.LOBBY, lobby_two, until_s=10), 2.5),
        "lobby-ki-counting-no-link": (table(Phase.LOBBY, lobby_two, until_s=10), 0),
        "lobby-ki-counting-long": (table(Phase.LOBBY, five(), until_s=120), 0),
        "lobby-ki-not-enrolled": (lobby_one, 0),
        "lobby-ki-claim": (lobby_one, 5),
        "throw-ki-up": (throw, 0),
        "throw-ki-waiting": (throw, 0),
        "throw-ki-no-link": (throw, 0),
        "throw-ki-many": (throw, 0),
        "throw-ki-trouble": (throw, 0),
        "throw-ki-not-enrolled": (throw, 0),
        "throw-ki-sudden-death": found["throw-sudden-death"],
        "throw-ki-bots-troubles": found["throw-bots-troubles"],
        "match-over-ki": (won("three", 4, collection=Collection(0, 3, 2)), 6.5),
        "void-ki": (table(Phase.MATCH_OVER, PLAYING, until_s=8, void="idle", round=2), 0),
    }
    other = {"rules-ring-other-cycle": "pen-beetle-page"}
    return {
        name: (view, T0 + round(at_s * 1000) * MILLISECOND, other.get(name, "pen-page-beetle"))
        for name, (view, at_s) in found.items()
    }


def screen_of(name: str) -> Screen:
    """The screen of one of the moments."""
    view, now, cycle = moments()[name]
    return screens.screen(view, now, cycle, TABLE, KI_MARKS.get(name))
