"""`heek config`: a file that is fine, one that is not, and an example that is one."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from heek.cli import FAILED, MISTAKE, OK, main
from tests.cli.commands import shell

MOCK = '[table]\nname = "K\'veer"\n[stations]\nbackend = "mock"\n'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.toml"
    file.write_text(MOCK, encoding="utf-8")
    return file


def test_check_of_a_good_file(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without mistakes is called fine, with the table's name and seats."""
    assert main(["config", "check", str(table)]) == OK
    assert capsys.readouterr().out == f"{table}: fine; K'veer, seats 1, 2, 3, 4, 5\n"


def test_check_names_every_mistake(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two mistakes are two lines, each with file and line, and 2."""
    table.write_text(MOCK + "[ahyoheek]\ncountdwn_s = 3\ntarget = 10\n", encoding="utf-8")
    assert main(["config", "check", str(table)]) == MISTAKE
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.split(": ")[0] for line in said.err.splitlines()] == [f"{table}:6", f"{table}:7"]


@pytest.mark.parametrize("beside", ["", '[log]\nlevel = "warning"\n'])
def test_check_of_a_kis_own_file(beside: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A KI has no table: what `heek ki serve` takes is fine, and it is said that it is no table's."""
    file = tmp_path / "ki.toml"
    file.write_text(f'[service]\nname = "KI of the hall"\nport = 8700\n{beside}', encoding="utf-8")
    assert main(["config", "check", str(file)]) == OK
    assert capsys.readouterr().out == (
        f"{file}: fine; of a KI alone: KI of the hall, at port 8700 of 127.0.0.1; heek run wants a table\n"
    )


@pytest.mark.parametrize("command", [["config", "show"], ["config", "boot"], ["run", "--config"]])
def test_what_wants_a_table_says_whose_file_it_is(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A KI's own file lacks no key of a table's: it is not the file for that command."""
    file = tmp_path / "ki.toml"
    file.write_text('[service]\nname = "KI of the hall"\nport = 8700\n', encoding="utf-8")
    assert main([*command, str(file)]) == MISTAKE
    said = capsys.readouterr()
    assert (
        f"{file}: of a KI alone: KI of the hall, at port 8700 of 127.0.0.1; heek run wants a table, and "
        "heek ki serve --config takes this"
    ) in said.out + said.err
    assert "stations.backend" not in said.out + said.err


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[service]\nprt = 8700\n", 2, "did you mean service.port?"),
        ('[service]\nport = "8700"\n', 2, "service.port: must be a whole number"),
        ("[service]\n[stations]\ndebounce_s = 0.01\n", None, "stations.backend: must be given"),
        ('[log]\nlevel = "info"\n', None, "stations.backend: must be given"),
        ("", None, "stations.backend: must be given"),
    ],
)
def test_check_of_a_kis_file_with_a_mistake(
    text: str, line: int | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its mistakes are named, and what speaks of a table, or of nothing, is a table's file."""
    file = tmp_path / "ki.toml"
    file.write_text(text, encoding="utf-8")
    assert main(["config", "check", str(file)]) == MISTAKE
    err = capsys.readouterr().err
    assert said in err
    assert line is None or err.startswith(f"{file}:{line}: ")


@pytest.mark.parametrize("action", ["check", "show"])
def test_a_file_that_cannot_be_read(action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No file, a folder, and bytes that are no text are a line each that names the place, and 2."""
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    for place in (tmp_path / "none.toml", tmp_path, binary):
        assert main(["config", action, str(place)]) == MISTAKE
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith(str(place))
        assert "Traceback" not in said.err


def test_show_gives_the_whole_configuration_back(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is shown is TOML with all keys, and shown again it is the same."""
    assert main(["config", "show", str(table)]) == OK
    shown = capsys.readouterr().out
    assert tomllib.loads(shown)["ahyoheek"]["countdown_s"] == 5
    again = tmp_path / "again.toml"
    again.write_text(shown, encoding="utf-8")
    assert main(["config", "show", str(again)]) == OK
    assert capsys.readouterr().out == shown


def test_the_example_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example is a configuration that `config check` takes as it is."""
    assert main(["config", "example"]) == OK
    file = tmp_path / "example.toml"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["config", "check", str(file)]) == OK


def test_the_boot_settings_of_a_file(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What config.txt needs follows the file: its own pins, and LEDs that are lit by a low line kept high.

    And it says that the file is where to change it.
    """
    table.write_text(
        MOCK + "led_active_high = false\n[[station]]\nseat = 1\nled = 18\n[[station]]\nseat = 2\nled = 19\n"
    )
    assert main(["config", "boot", str(table)]) == OK
    said = capsys.readouterr().out
    assert "gpio=18-19=op,dh,pu\n" in said
    assert "gpio=4,8,17,24-25,27=ip,pu\n" in said
    assert "# Made from a table's configuration by `heek config boot FILE`; edit that.\n" in said
    assert "pin_map.py" not in said


def test_an_action_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    """`heek config` alone is a mistake that says so."""
    with pytest.raises(SystemExit) as stopped:
        main(["config"])
    assert stopped.value.code == MISTAKE
    assert "ACTION" in capsys.readouterr().err


def test_a_full_disk_is_one_line() -> None:
    """An example that does not fit is one line and 1."""
    run = shell("$HEEK config example > /dev/full")
    assert run.returncode == FAILED
    assert run.stderr.count(b"\n") == 1
    assert b"No space left" in run.stderr
