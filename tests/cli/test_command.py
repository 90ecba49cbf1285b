"""The command itself: help, version, and nothing but one line for what goes wrong; the demo."""

from __future__ import annotations

import signal
import subprocess

import pytest

from heek import __version__
from heek.cli import MISTAKE, OK, main
from tests.cli.commands import command, environment, heek


def test_without_a_command_it_says_which_there_are() -> None:
    """`python -m heek` shows the help and ends with 2."""
    run = heek()
    assert run.returncode == MISTAKE
    for name in (b"run", b"simulate", b"demo", b"ki", b"config", b"journal"):
        assert name in run.stdout


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """--help ends with 0, also for every command."""
    pairs = (["config", "check"], ["journal", "show"], ["ki", "serve"], ["ki", "serial-gateway"])
    for arguments in ([], ["run"], ["simulate"], ["demo"], *pairs):
        with pytest.raises(SystemExit) as stopped:
            main([*arguments, "--help"])
        assert stopped.value.code == OK
        assert capsys.readouterr().out.startswith("usage: heek")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """--version says the package's version."""
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == OK
    assert capsys.readouterr().out == f"heek {__version__}\n"


@pytest.mark.parametrize("words", [["play"], ["simulate"], ["journal"], ["--what"], ["simulate", "a", "b"]])
def test_what_it_does_not_know(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A word that is unknown, missing or too many is a mistake with a usage line."""
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == MISTAKE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("usage: heek")


def test_the_demo_plays_two_matches() -> None:
    """`heek demo --fast` tells the worked example and a whole match to its winner, and draws the OLED."""
    run = heek("demo", "--fast")
    said = run.stdout.decode()
    assert run.returncode == OK
    assert run.stderr == b""
    assert said.count("(SIMULATED)") == 2
    assert "seats 4 and 5 win with page" in said
    assert " wins the match" in said
    assert "▀" in said


def test_the_demo_says_the_same_each_time() -> None:
    """Nothing in the demo is left to chance."""
    assert heek("demo", "--fast").stdout == heek("demo", "--fast").stdout


def test_the_demo_on_a_terminal_without_these_letters() -> None:
    """Where the output cannot hold a half block the demo plays all the same."""
    run = heek("demo", "--fast", PYTHONIOENCODING="ascii")
    assert run.returncode == OK
    assert run.stderr == b""


@pytest.mark.parametrize(("stop", "codes"), [(signal.SIGTERM, {OK}), (signal.SIGINT, {OK, 130})])
def test_the_demo_can_be_stopped(stop: signal.Signals, codes: set[int]) -> None:
    """SIGTERM and Ctrl-C end the demo in the middle without a traceback."""
    with subprocess.Popen(
        command("demo", "--terminal"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as demo:
        assert demo.stdout is not None
        while b"The table starts" not in demo.stdout.readline():
            assert demo.poll() is None
        demo.send_signal(stop)
        _, errors = demo.communicate(timeout=20)
    assert demo.returncode in codes
    assert errors == b""
