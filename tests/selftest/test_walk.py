"""The walk gives each contact, LED and panel the verdict that it deserves, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.clock import MILLISECOND
from heek.kinds import KINDS, SEATS, Kind
from heek.selftest.asking import Ask, Verdict
from heek.selftest.report import document, passed, text_lines
from heek.selftest.walk import Walk
from tests.selftest.person import Person, Press, clean

PEN_1, PAGE_1, BEETLE_2 = (1, Kind.PEN), (1, Kind.PAGE), (2, Kind.BEETLE)
DEBOUNCE_MS = 15


def walked(person: Person, **more: Any) -> Walk:
    walk = Walk((1, 2), debounce=DEBOUNCE_MS * MILLISECOND, now=0, **more)
    person.take_part(walk.course())
    return walk


def verdicts(walk: Walk) -> dict[str, Verdict]:
    """Parts that are not fine; each part stands there once."""
    assert len({result.part for result in walk.results}) == len(walk.results)
    return {result.part: result.verdict for result in walk.results if result.verdict is not Verdict.OK}


def pressing(where: Any, press: Press | str) -> Person:
    """Somebody whose press of one contact comes out like this, and every other one clean."""
    return Person(lambda asked, _time: press if asked == where else clean(asked))


def test_a_sound_table_passes() -> None:
    """Every button, LED and panel is ok; each seat's LED alone is lit while it is asked after."""
    walk = Walk(SEATS, debounce=DEBOUNCE_MS * MILLISECOND, now=0, panels=[("panel", lambda: "")])
    person = Person()
    person.take_part(walk.course())
    assert verdicts(walk) == {}
    assert len(walk.results) == 15 + 5 + 1
    assert passed(walk.results, finished=walk.finished)
    asked = [ask.lit for ask in person.asks if ask.words[-1] == "LIT?"]
    assert asked == [frozenset({seat}) for seat in SEATS]
    assert [ask.pattern for ask in person.asks if "cross" in ask.text] == [True]


# F001: chatter when it closes, and when it opens.
BOUNCE: Press = [(ms, PEN_1, n % 2 == 0) for n, ms in enumerate([0, 2, 4, 6, 8])] + [
    (ms, PEN_1, n % 2 == 1) for n, ms in enumerate([400, 403, 405, 409, 412])
]


@pytest.mark.parametrize(
    ("press", "verdict"),
    [
        (clean(PEN_1), None),
        (clean(PEN_1, 8), None),
        (clean(PEN_1, 30), None),
        (BOUNCE, None),
        ([(0, PEN_1, True), (100, PEN_1, False), (190, PEN_1, True), (300, PEN_1, False)], None),
        ([(n * 2, PEN_1, n % 2 == 0) for n in range(152)], Verdict.CHATTERING),
        (
            [(0, PEN_1, True), (200, PEN_1, False), (230, PEN_1, True), (260, PEN_1, False)],
            Verdict.CHATTERING,
        ),
        ([(0, PEN_1, True)], Verdict.STUCK),
        ([(0, PEN_1, True), (10_500, PEN_1, False)], Verdict.STUCK),
        ([], Verdict.NEVER_SEEN),
        ("s", Verdict.SKIPPED),
        (
            [(0, PEN_1, True), (2, BEETLE_2, True), (90, PEN_1, False), (91, BEETLE_2, False)],
            Verdict.JOINED,
        ),
        (
            [(0, PEN_1, True), (60, BEETLE_2, True), (90, PEN_1, False), (160, BEETLE_2, False)],
            None,
        ),
    ],
    ids=[
        "clean",
        "shorter than the debounce time",
        "a quick tap",
        "bounces at both ends",
        "two taps",
        "a worn switch",
        "would count twice",
        "held",
        "too long",
        "nothing",
        "skipped",
        "two wires touch",
        "a second finger",
    ],
)
def test_one_button(press: Press | str, verdict: Verdict | None) -> None:
    """One press as it comes over the wire, and what is said of that contact and of no other."""
    found = verdicts(walked(pressing(PEN_1, press)))
    assert found == ({} if verdict is None else {"seat 1 pen": verdict})


def test_two_that_are_swapped() -> None:
    """Each comes for the other, twice: both are swapped, and each names the other."""
    other = {PEN_1: PAGE_1, PAGE_1: PEN_1}
    walk = walked(Person(lambda asked, _time: clean(other.get(asked, asked))))
    assert verdicts(walk) == {"seat 1 pen": Verdict.SWAPPED, "seat 1 page": Verdict.SWAPPED}
    texts = {result.part: result.text for result in walk.results}
    assert texts["seat 1 pen"].startswith("seat 1 page and it are the wrong way round")


def test_a_wrong_finger_is_asked_again() -> None:
    """The wrong button once and then the right one is the person's mistake, and the contact is fine."""
    person = Person(lambda asked, time: clean(BEETLE_2) if asked == PEN_1 and time == 1 else clean(asked))
    assert verdicts(walked(person)) == {}
    assert any(ask.text.startswith("That was seat 2 beetle. Once more") for ask in person.asks)


def test_a_button_that_is_down_from_the_beginning() -> None:
    """Closed at the start and for good: stuck (F007). Closed and let go of when told: asked for and fine."""
    assert verdicts(walked(pressing(PAGE_1, []), closed=[PAGE_1])) == {"seat 1 page": Verdict.STUCK}
    person = Person(before=[(4000, PEN_1, False)])
    assert verdicts(walked(person, closed=[PEN_1])) == {}
    assert any("let go of pen, which is closed" in ask.text for ask in person.asks)


def test_a_contact_that_moves_by_itself() -> None:
    """Edges while nobody touches anything are chatter of that contact, however clean its press is."""
    person = Person(before=[(700, BEETLE_2, True), (900, BEETLE_2, False)])
    walk = walked(person)
    assert verdicts(walk) == {"seat 2 beetle": Verdict.CHATTERING}
    assert "moved 2 times while nobody touched it" in next(r.text for r in walk.results if r.text)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [("n", Verdict.DARK), ("0", Verdict.DARK), ("1", Verdict.SWAPPED), ("2", None), ("s", Verdict.SKIPPED)],
)
def test_leds(answer: str, verdict: Verdict | None) -> None:
    """What the person says of seat 2's LED; a word that is no answer is asked again."""
    said: list[str] = []

    def answers(ask: Ask) -> str:
        if ask.words == ("SEAT 2", "LIT?"):
            said.append("")
            return "perhaps" if len(said) == 1 else answer
        return "yes"

    walk = walked(Person(answers=answers))
    assert verdicts(walk) == ({} if verdict is None else {"seat 2 LED": verdict})
    assert len(said) == 2


def test_leds_that_cannot_be_put_out() -> None:
    """Lit when all shall be dark: the polarity is named as the likely cause (F022)."""
    walk = walked(Person(answers=lambda ask: "n" if "dark" in ask.text else "y"))
    assert verdicts(walk) == {"LEDs": Verdict.LIT}
    assert "led_active_high" in next(r.text for r in walk.results if r.text)


def test_panels() -> None:
    """One that does not answer is not asked after; one that shows a wrong picture, and one that is fine."""
    asked: list[Ask] = []

    def answers(ask: Ask) -> str:
        if ask.pattern:
            asked.append(ask)
        return "n" if "panel 2" in ask.text else "y"

    panels = [("panel 1", lambda: "OLED on i2c-1 does not answer"), ("panel 2", str), ("panel 3", str)]
    walk = walked(Person(answers=answers), panels=panels)
    assert verdicts(walk) == {"panel 1": Verdict.NEVER_SEEN, "panel 2": Verdict.DARK}
    assert len(asked) == 2


@pytest.mark.parametrize("at", [0, 4, 7])
def test_quit(at: int) -> None:
    """`q` ends it at once wherever it stands, and it has not passed."""
    count = iter(range(99))

    def presses(asked: Any, _time: int) -> Press | str:
        return "q" if next(count) == at else clean(asked)

    walk = walked(Person(presses, answers=lambda _ask: "q"))
    assert not walk.finished
    assert not passed(walk.results, finished=walk.finished)
    assert len(walk.results) == min(at, 6)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 400), st.sampled_from([(s, k) for s in (1, 2) for k in KINDS]), st.booleans()
        )
    )
)
def test_any_edges_come_to_an_end(press: list[tuple[int, Any, bool]]) -> None:
    """Whatever a press comes out as, the walk ends and every button has one verdict."""
    walk = walked(pressing(PEN_1, sorted(press, key=lambda edge: edge[0])))
    assert len([result for result in walk.results if result.part.endswith(("pen", "page", "beetle"))]) == 6
    verdicts(walk)


def test_the_report() -> None:
    """A line for each part and one that counts; the same for programs in the documented form."""
    walk = walked(pressing(PEN_1, []))
    lines = text_lines(walk.results, finished=walk.finished)
    assert lines[0].startswith("never seen  seat 1 pen")
    assert lines[-1] == "8 parts: 7 ok, 1 not, 0 skipped"
    told = document(walk.results, finished=walk.finished)
    assert (told["form"], told["finished"], told["passed"]) == (1, True, False)
    assert told["parts"][0]["verdict"] == "never seen"
    assert set(told["parts"][0]) == {"part", "verdict", "text"}
