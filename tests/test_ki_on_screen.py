"""What a real reporting knows of the KI is what the OLED says: waiting, away, not enrolled, in trouble."""

from __future__ import annotations

from pathlib import Path

import pytest

from heek.display.faces import ClaimCode
from heek.display.ki_mark import KiMark, Reach
from heek.display.screens import screen
from heek.ki.claim import read_code
from heek.ki_on_screen import ki_mark
from heek.reporting import KiStatus
from heek.session.phases import Phase
from heek.session.view import SeatState
from tests.display.catalogue import T0, five, table
from tests.reporting_rig import Rig
from tests.signing_ki import SigningKi

FREE = table(Phase.ATTRACT, five(state=SeatState.FREE))


def test_a_link_that_goes_and_comes(tmp_path: Path) -> None:
    """Looked for, up, away with a result that waits, and up again with the time of the last answer."""
    rig = Rig(tmp_path)
    try:
        assert ki_mark(rig.reporting.status) == KiMark(Reach.UNKNOWN)
        rig.start()
        status = rig.run(2)
        assert ki_mark(status) == KiMark(Reach.UP, 0, status.last)
        rig.link.up = False
        rig.match(1)
        status = rig.run(2)
        assert ki_mark(status) == KiMark(Reach.DOWN, 1, status.last)
        rig.link.up = True
        assert ki_mark(rig.run(200)) == KiMark(Reach.UP, 0, rig.reporting.status.last)
    finally:
        rig.close()


def test_a_code_on_the_screen_is_the_one_that_enrols(tmp_path: Path) -> None:
    """What the free table shows large is taken by the KI; after that the screen is the usual one again."""
    rig = Rig(tmp_path, SigningKi(first_sight=False), first_sight=False)
    try:
        rig.start()
        shown = screen(FREE, T0, ki=ki_mark(rig.run(5)))
        assert isinstance(shown, ClaimCode)
        rig.ki.codes.append(read_code(shown.code))
        mark = ki_mark(rig.run(60))
        assert mark is not None
        assert (mark.reach, mark.claim, mark.trouble) == (Reach.UP, None, False)
        assert not isinstance(screen(FREE, T0, ki=mark), ClaimCode)
    finally:
        rig.close()


@pytest.mark.parametrize(
    ("status", "mark"),
    [
        (KiStatus("none", "off", 3, None), None),
        (KiStatus("http", "up", 0, None, trouble=("look",)), KiMark(Reach.UP, trouble=True)),
    ],
)
def test_no_link_and_trouble(status: KiStatus, mark: KiMark | None) -> None:
    """Without a link nothing is shown; trouble sends people to the page."""
    assert ki_mark(status) == mark
