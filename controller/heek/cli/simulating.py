"""`heek simulate`: a story on the real daemon under virtual time; its events on standard output."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from heek.cli import NOT_AS_EXPECTED, OK, machine_output
from heek.errors import StoryError

if TYPE_CHECKING:
    from heek.simulator.expectations import Verdict


def add_to(commands: Any) -> None:
    """Add `simulate` to the commands."""
    parser = commands.add_parser("simulate", help="play a story under virtual time")
    parser.add_argument("story", metavar="STORY", help="a story file, or - for standard input")
    parser.add_argument("--seed", type=int, default=0, help="of what the table draws (default 0)")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write a report of the expectations")
    parser.add_argument("--frames", type=Path, metavar="DIR", help="keep the OLED's pictures there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Play the story; 0, or 3 if an expectation failed. Raises StoryError if it is not valid."""
    from heek.simulator.runner import Simulation
    from heek.simulator.story import read

    if arguments.story == "-" and sys.stdin is None:
        raise StoryError("<stdin>: is closed; name a story file, or send one there")
    story = read(arguments.story)
    machine_output()
    if arguments.frames is not None:
        try:
            arguments.frames.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoryError(
                f"--frames {arguments.frames}: cannot be made ({error.strerror}); name another folder"
            ) from None
    simulation = Simulation(story, seed=arguments.seed, say=print, frames=arguments.frames)
    report = simulation.run()
    for line in (*report.skipped, *report.failures):
        print(line, file=sys.stderr)
    if arguments.junit is not None:
        _write_junit(arguments.junit, story.source, report.verdicts)
    return NOT_AS_EXPECTED if report.failures else OK


def _write_junit(file: Path, source: str, verdicts: tuple[Verdict, ...]) -> None:
    """One test case for each expectation, in the order in which they were judged."""
    failures = sum(bool(verdict.failure) for verdict in verdicts)
    suite = ElementTree.Element(
        "testsuite",
        {"name": _xml_text(source), "tests": str(len(verdicts)), "failures": str(failures), "errors": "0"},
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": _xml_text(source), "name": f"line {verdict.step.line}"}
        )
        if verdict.failure:
            ElementTree.SubElement(case, "failure", {"message": _xml_text(verdict.failure)})
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    try:
        ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise StoryError(f"--junit {file}: cannot be written ({error.strerror}); name another file") from None


def _xml_text(text: str) -> str:
    """Without what XML cannot hold: control characters, and halves of characters from file names."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)
