"""A round's picture: what each press came to, by how much, in text and on the page, the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.errors import RecordingError
from heek.journal import read_journal
from heek.kept_matches import find_match, kept_matches, replay_match
from heek.kinds import Kind
from heek.photo_finish.text import NARROWEST, WIDEST, WIDTH, drawable_in, photo_finish_text
from heek.photo_finish.values import PhotoFinish, Sitting, photo_finish, rounds_of
from heek.photo_finish.words import close_words, distance, line_words
from heek.simulator.runner import simulate
from heek.simulator.story import parse
from heek.web.photo_pages import DrawnMatch, round_html
from tests.story_generator import random_story

HERE = Path(__file__).parent
RENEW = False
"""Set to True by hand, once, to write the golden files anew; then look at them."""


def sittings(story: str, folder: Path, seed: int = 1) -> Iterator[tuple[str, list[Sitting]]]:
    """Every match that a story plays to its end."""
    simulate(parse(story, "story"), seed=seed, state_dir=folder)
    with read_journal(folder) as journal:
        for each in kept_matches(journal):
            kept = find_match(journal, each.match)
            yield each.match, [replayed.sitting for replayed in replay_match(kept)]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Sitting]]:
    folder = tmp_path_factory.mktemp("photo")
    return next(sittings((HERE / "round.jsonl").read_text(), folder))


def marks(finish: PhotoFinish) -> list[tuple[int, str, str]]:
    return [
        (lane.seat, "?" if mark.button is None else mark.button.value, mark.fate)
        for lane in finish.lanes
        for mark in lane.marks
    ]


def test_every_press_says_what_it_came_to(drawn: tuple[str, list[Sitting]]) -> None:
    """Guard, change of throw, bounce, close, chord, late delivery and an empty seat, each by its name."""
    finish = photo_finish(drawn[0], 2, drawn[1])
    assert marks(finish) == [
        (1, "page", "guard"),
        (1, "page", "replaced"),
        (1, "page", "bounce"),
        (1, "page", "bounce"),
        (1, "pen", "thrown"),
        (1, "beetle", "late"),
        (2, "pen", "chord"),
        (2, "beetle", "chord"),
        (2, "page", "thrown"),
        (3, "beetle", "late_delivery"),
        (4, "page", "not_seated"),
    ]
    assert finish.late
    seat_1 = finish.lanes[0]
    in_guard, _, _, _, _, late = seat_1.marks
    assert finish.margins(in_guard)[0] == -130_000_000
    assert finish.margins(late)[1] == -4_000_000
    assert (seat_1.throw, seat_1.points, seat_1.won) == (Kind.PEN, 1, True)
    assert finish.lanes[1].name == "Shorah <b>"
    assert [lane.throws for lane in finish.lanes] == [True, True, True, False]


def test_a_round_that_was_never_revealed_names_no_button(drawn: tuple[str, list[Sitting]]) -> None:
    """The single throw of a void round stays hidden in the picture as it did at the table."""
    finish = photo_finish(drawn[0], 1, drawn[1])
    assert finish.ending == "throws"
    assert marks(finish) == [(1, "?", "hidden"), (3, "?", "seated")]
    said = photo_finish_text(finish) + round_html("T", page_of(drawn), finish).decode()
    assert "beetle" not in said


def test_a_round_that_there_is_not(drawn: tuple[str, list[Sitting]]) -> None:
    """It is said which there are."""
    with pytest.raises(RecordingError, match="there is no round 7; it has rounds 1 to 2"):
        photo_finish(drawn[0], 7, drawn[1])
    with pytest.raises(RecordingError, match="there is no round 1; it has rounds none"):
        photo_finish("another", 1, drawn[1])


def page_of(drawn: tuple[str, list[Sitting]]) -> DrawnMatch:
    rounds = tuple(rounds_of(*drawn))
    return DrawnMatch(
        drawn[0], rounds, tuple(photo_finish(drawn[0], each.number, drawn[1]) for each in rounds)
    )


def golden(name: str, text: str) -> None:
    file = HERE / "golden" / name
    if RENEW:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [1, 2])
def test_golden_text(drawn: tuple[str, list[Sitting]], number: int) -> None:
    """The drawing for a terminal, letter by letter; and in ASCII, no wider than 80 columns."""
    finish = photo_finish(drawn[0], number, drawn[1])
    golden(f"round-{number}.txt", photo_finish_text(finish) + "\n")
    plain = photo_finish_text(finish, plain=True)
    golden(f"round-{number}.ascii.txt", plain + "\n")
    assert plain.isascii()


def test_golden_page(drawn: tuple[str, list[Sitting]]) -> None:
    """The page with its SVG, byte by byte; a name that would be markup is text."""
    page = page_of(drawn)
    html = round_html("Table 7", page, page.finishes[1]).decode()
    golden("round-2.html", html.replace("><", ">\n<"))
    assert "Shorah &lt;b&gt;" in html
    assert "<b>" not in html
    assert "style=" not in html
    assert "<script" not in html


def test_a_terminal_without_the_signs_is_told_apart() -> None:
    """UTF-8 has them, ASCII and Latin-1 have not, and nobody knows of an encoding that there is not."""
    assert [drawable_in(each) for each in ("utf-8", "ascii", "latin-1", None, "no-such")] == [
        True,
        False,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("span", "said"),
    [(0, "0.000 ms"), (999_999_999, "999.999 ms"), (1_234_567_890, "1.234 s"), (-1_500_000, "-1.500 ms")],
)
def test_distances(span: int, said: str) -> None:
    """Three digits, cut and never rounded up, on both sides of zero and of a second."""
    assert distance(span) == said


QUARREL = """
{"story": 1, "table": {"ahyoheek.target": 1, "station": [{"seat": 1}, {"seat": 2}]}}
{"at": 1.0, "press": {"seat": 1, "button": "pen"}}
{"at": 1.1, "press": {"seat": 2, "button": "pen"}}
{"at": 2.0, "press": {"seat": 1, "button": "pen"}}
{"at": 2.1, "press": {"seat": 2, "button": "pen"}}
{"at": 4, "press": {"seat": 2, "button": "page", "bounce": [[1e-3, 0], [2e-3, 1], [3e-3, 0], [5e-3, 1]]}}
{"at": 4.7, "press": {"seat": 1, "button": "pen"}}
{"at": 30, "end": true}
"""


def test_who_pressed_first_and_why_the_round_closed(tmp_path: Path) -> None:
    """All seats' presses are one list by time, bounces in a line of their own; all had thrown before 5 s."""
    match, listed = next(sittings(QUARREL, tmp_path))
    finish = photo_finish(match, 1, listed)
    assert [
        (line.lane.seat, line.mark.fate, line.count)
        for line in finish.by_time()
        if line.mark.at > finish.opened
    ] == [(2, "thrown", 1), (2, "bounce", 2), (1, "thrown", 1)]
    bounces = next(line for line in finish.by_time() if line.count > 1)
    assert line_words(finish, bounces)[0].startswith("2 × bounce")
    assert close_words(finish) == "all had thrown, with 4.300 s of the countdown left"


def test_a_countdown_that_ran_out(drawn: tuple[str, list[Sitting]]) -> None:
    """Void or revealed: a seat had not thrown, and that is why the close is where it is."""
    for number in (1, 2):
        assert close_words(photo_finish(drawn[0], number, drawn[1])) == "the countdown ran out"


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 5000))
def test_any_round_can_be_drawn(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of random matches: whatever was revealed agrees with the marks, and fits in its columns."""
    folder = tmp_path_factory.mktemp("any")
    for match, listed in sittings(random_story(seed), folder, seed):
        page = []
        for each in rounds_of(match, listed):
            if not each.drawable:
                continue
            finish = photo_finish(match, each.number, listed)
            page.append(finish)
            for width in (NARROWEST, WIDTH, WIDEST):
                text = photo_finish_text(finish, width=width, plain=bool(seed % 2))
                assert all(len(line) <= width for line in text.splitlines())
            for lane in finish.lanes:
                thrown = [mark for mark in lane.marks if mark.fate == "thrown"]
                assert len(thrown) == (lane.throw is not None and not lane.bot)
                for mark in thrown:
                    assert mark.button is lane.throw
                    after_guard, before_close = finish.margins(mark)
                    assert after_guard >= 0
                    assert before_close is None or before_close >= 0
        drawing = DrawnMatch(match, tuple(rounds_of(match, listed)), tuple(page))
        assert msgspec.json.decode(msgspec.json.encode(drawing), type=DrawnMatch) == drawing
        for finish in page:
            round_html("T", drawing, finish)
