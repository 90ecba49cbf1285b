"""Every screen has a golden picture, exact to the dot."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageChops

from heek.display.drawing import draw
from heek.display.faces import SCREEN_NAMES
from tests.display.catalogue import moments, screen_of
from tests.display.contact_sheet import GLANCE, GLANCE_NAMES, SHEET, contact_sheet

GOLDEN = Path(__file__).parent / "golden"
FAILURES = Path(__file__).parents[2] / "build" / "golden-failures"


def compare(name: str, golden: Path, actual: Image.Image) -> None:
    """Fail, with the actual picture and the difference saved, unless `actual` is what `golden` holds."""
    expected = Image.open(golden).convert("1") if golden.exists() else Image.new("1", actual.size)
    if golden.exists() and expected.size == actual.size and expected.tobytes() == actual.tobytes():
        return
    FAILURES.mkdir(parents=True, exist_ok=True)
    actual.save(FAILURES / f"{name}.png")
    if expected.size == actual.size:
        ImageChops.logical_xor(expected, actual).save(FAILURES / f"{name}.difference.png")
    pytest.fail(
        f"{name} is not its golden picture: look at {FAILURES / name}.png (and .difference.png); "
        "if it is meant so, run pytest with --renew-golden"
    )


@pytest.mark.parametrize("name", moments())
def test_screen_is_its_golden_picture(name: str, pytestconfig: pytest.Config) -> None:
    """Proves that the screen looks exactly as it did when somebody last looked at it."""
    picture = draw(screen_of(name))
    golden = GOLDEN / f"{name}.png"
    if pytestconfig.getoption("--renew-golden"):
        GOLDEN.mkdir(exist_ok=True)
        picture.save(golden, optimize=True)
    compare(name, golden, picture)


def test_no_golden_picture_is_left_over() -> None:
    """Proves that each golden file belongs to a moment of the catalogue."""
    assert {path.stem for path in GOLDEN.glob("*.png")} == set(moments())


def test_every_screen_name_has_a_golden_picture() -> None:
    """Proves that no screen of the story format is without a picture."""
    assert {screen_of(name).name for name in moments()} == set(SCREEN_NAMES)


def test_moments_are_drawn_as_what_they_are_called() -> None:
    """Proves that each moment shows the screen that its name begins with."""
    for name in moments():
        assert name.replace("match-over", "match_over").startswith(screen_of(name).name), name


@pytest.mark.parametrize(("file", "names"), [(SHEET, None), (GLANCE, GLANCE_NAMES)])
def test_contact_sheet_is_up_to_date(
    pytestconfig: pytest.Config, file: Path, names: list[str] | None
) -> None:
    """Proves that the pictures beside the code show the screens as they are now."""
    sheet = contact_sheet(names)
    if pytestconfig.getoption("--renew-golden"):
        sheet.save(file, optimize=True)
    compare(file.stem, file, sheet)


def test_a_difference_is_saved_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that one wrong dot fails, and that picture and difference can be looked at afterwards."""
    monkeypatch.setattr(f"{__name__}.FAILURES", tmp_path)
    wrong = draw(screen_of("throw")).copy()
    wrong.putpixel((64, 40), 255 - wrong.getpixel((64, 40)))
    with pytest.raises(pytest.fail.Exception, match="throw is not its golden picture"):
        compare("throw", GOLDEN / "throw.png", wrong)
    assert Image.open(tmp_path / "throw.difference.png").getbbox() == (64, 40, 65, 41)
    assert Image.open(tmp_path / "throw.png").convert("1").tobytes() == wrong.tobytes()
