"""The generated documents say what the code says, and the command tells when they do not."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from heek.errors import DocumentsError
from heek.session.phases import TRANSITIONS
from heek.wiring.__main__ import main
from heek.wiring.documents import (
    BOOT_LINE_LIMIT,
    boot_settings,
    differences,
    documents,
    phase_diagram,
    pinout,
    write,
)
from heek.wiring.header_drawing import header_svg
from heek.wiring.pin_map import DEFAULT_STATIONS, HEADER, header_pin

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that looks like the project's, without documents."""
    (tmp_path / "controller" / "heek").mkdir(parents=True)
    return tmp_path


def _lines_of(setting: str, attributes: str) -> set[int]:
    """The GPIO numbers of the one gpio= line with these attributes."""
    (found,) = re.findall(rf"^gpio=(\S+)={attributes}$", setting, re.MULTILINE)
    lines: set[int] = set()
    for part in found.split(","):
        first, _, last = part.partition("-")
        lines.update(range(int(first), int(last or first) + 1))
    return lines


def test_committed_documents_are_what_the_code_says() -> None:
    """No generated document that stands in the project differs from the code."""
    assert differences(ROOT) == []


def test_boot_settings_pull_up_every_button_and_drive_every_led_low() -> None:
    """The gpio= lines name exactly the buttons as pulled-up inputs and the LEDs as low outputs."""
    text = boot_settings()
    assert _lines_of(text, "ip,pu") == {gpio for s in DEFAULT_STATIONS for gpio in s.buttons}
    assert _lines_of(text, "op,dl,pd") == {s.led for s in DEFAULT_STATIONS}


@pytest.mark.parametrize(("active_high", "attributes"), [(True, "op,dl,pd"), (False, "op,dh,pu")])
def test_boot_settings_keep_leds_dark_by_either_polarity(active_high: bool, attributes: str) -> None:
    """An LED that is lit by a low line is driven high before the daemon starts, and pulled up (F022)."""
    text = boot_settings(led_active_high=active_high)
    assert _lines_of(text, attributes) == {s.led for s in DEFAULT_STATIONS}
    assert len(re.findall(r"^gpio=", text, re.MULTILINE)) == 2


def test_boot_settings_fit_the_firmwares_parser() -> None:
    """No line is longer than the firmware reads, and the file ends in the section for all boards."""
    lines = boot_settings().splitlines()
    assert max(map(len, lines)) <= BOOT_LINE_LIMIT
    assert next(line for line in lines if line.startswith("[")) == "[all]"
    assert lines[-1] == "[all]"
    for needed in ("dtparam=i2c_arm=on", "dtparam=i2c_arm_baudrate=400000", "enable_uart=1"):
        assert needed in lines


def test_pinout_names_each_line_with_its_header_pin() -> None:
    """Each line of each station stands in the table with GPIO and header pin."""
    text = pinout()
    for station in DEFAULT_STATIONS:
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {station.seat} |")]
        for _, gpio in station.roles:
            assert f"GPIO{gpio} ({header_pin(gpio)})" in row
    assert "Left over: GPIO18 (pin 12) and GPIO19 (pin 35)." in text


def test_drawing_is_sound_and_names_every_place_in_words() -> None:
    """The SVG parses, has all 40 numbers, and says pen, page, beetle and LED five times each."""
    root = ElementTree.fromstring(header_svg(DEFAULT_STATIONS))
    words = [node.text for node in root.iter() if node.tag.endswith("}text")]
    for pin in HEADER:
        assert str(pin.number) in words
        assert pin.name in words
    for part in ("pen", "page", "beetle", "LED"):
        assert words.count(part) == 5


def test_documents_follow_another_pin_map() -> None:
    """A table of two stations gets documents of two stations."""
    two = DEFAULT_STATIONS[:2]
    assert "| 3 |" not in pinout(two).split("## Shared wires")[0]
    assert _lines_of(boot_settings(two), "ip,pu") == {gpio for s in two for gpio in s.buttons}
    assert header_svg(two).count(">pen<") == 2


def test_no_document_is_made_from_a_wrong_map() -> None:
    """A map with mistakes is refused with all of them before anything is drawn."""
    wrong = [replace(DEFAULT_STATIONS[0], led=2, pen=99), *DEFAULT_STATIONS[1:]]
    with pytest.raises(DocumentsError, match=r"(?s)seat 1 pen: 99.*seat 1 led: GPIO2 is reserved"):
        documents(wrong)


def test_phase_diagram_is_fenced_and_complete() -> None:
    """The diagram stands in one Mermaid fence and has a line for every transition."""
    text = phase_diagram()
    assert text.count("```") == 2
    assert "```mermaid\nstateDiagram-v2\n" in text
    for (phase, step), target in TRANSITIONS.items():
        assert f"    {phase.value} --> {target.value}: {step.value}\n" in text


def test_write_then_check_then_write_again(project: Path) -> None:
    """Writing makes all documents; after that nothing differs and nothing is written again."""
    assert [line.split(":")[0] for line in differences(project)] == list(documents())
    assert write(project) == list(documents())
    assert differences(project) == []
    assert write(project) == []


def test_a_changed_document_is_named_with_its_first_wrong_line(project: Path) -> None:
    """An edit by hand, a lost tail and foreign line ends are each found, with the line."""
    write(project)
    boot = project / "firmware" / "boot" / "heek.txt"
    text = boot.read_text()
    boot.write_text(text.replace("dtparam=spi=off", "dtparam=spi=on"))
    assert differences(project) == [
        "firmware/boot/heek.txt: line 8 is not what the code says; run `make documents` and commit it"
    ]
    boot.write_bytes(text.replace("\n", "\r\n").encode())
    assert "heek.txt: line 1 is not" in differences(project)[0]
    boot.write_text(text + "more\n")
    assert f"heek.txt: line {text.count(chr(10)) + 1} is not" in differences(project)[0]
    assert write(project) == ["firmware/boot/heek.txt"]


def test_command_checks_writes_and_answers_with_its_code(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """check says 1 while documents differ and 0 after write; each difference is a line of its own."""
    assert main(["check", "--root", str(project)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == len(documents())
    assert main(["write", "--root", str(project)]) == 0
    assert capsys.readouterr().out.startswith("written: hardware/pinout.md, ")
    assert main(["check", "--root", str(project)]) == 0
    assert main(["write", "--root", str(project)]) == 0
    assert capsys.readouterr().out.endswith("all documents were up to date\n")


def test_command_refuses_a_folder_that_is_not_the_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Started elsewhere it says so in one line, writes nothing and gives 2."""
    assert main(["write", "--root", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_document_that_cannot_be_written_is_one_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder where the file should be is told by name, without a traceback."""
    (project / "hardware" / "pinout.md").mkdir(parents=True)
    assert main(["check", "--root", str(project)]) == 2
    assert "pinout.md: cannot be read" in capsys.readouterr().err
    (project / "hardware" / "pinout.md").rmdir()
    (project / "hardware").rmdir()
    (project / "hardware").write_text("in the way")
    assert main(["write", "--root", str(project)]) == 2
    assert "cannot be" in capsys.readouterr().err
