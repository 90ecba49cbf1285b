"""The examples in the plugin's README do what the page says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import heek.testing.stories
from heek.testing.table import SeatHands, Table

assert heek.testing.stories, "loaded before a run inside this one, which forgets what it loaded"

README = Path(heek.testing.stories.__file__).parent / "README.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(
        text, BLOCKS[number + 1][1] if BLOCKS[number + 1 : number + 2] and failing else "", id=name[1]
    )
    for number, (kind, text) in enumerate(BLOCKS)
    if kind == "python" and (name := re.search(r"^def (test_\w+)", text, re.MULTILINE))
    for failing in [BLOCKS[number + 1 : number + 2] and BLOCKS[number + 1][0] == "text"]
]


@pytest.mark.parametrize(("text", "told"), EXAMPLES)
def test_an_example_does_what_it_says(pytester: pytest.Pytester, text: str, told: str) -> None:
    """Each example passes; one with an output below it fails, with those lines in that order."""
    pytester.makepyfile(test_example=text)
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1) if told else result.assert_outcomes(passed=1)
    rest = result.stdout.str()
    for line in told.splitlines():
        assert line in rest
        rest = rest.partition(line)[2]


def test_the_example_of_a_story_is_a_test(pytester: pytest.Pytester) -> None:
    """Settings and story of the page make one test, which passes."""
    settings = next(text for kind, text in BLOCKS if kind == "toml")
    story = next(text for kind, text in BLOCKS if kind == "jsonl")
    pytester.makepyprojecttoml(settings)
    (pytester.mkdir("stories") / "mine.jsonl").write_text(story)
    pytester.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_example_of_a_table_of_ones_own(pytester: pytest.Pytester) -> None:
    """The page's conftest.py makes its kind of table known."""
    pytester.makeconftest(next(text for _, text in BLOCKS if text.startswith("# conftest.py")))
    pytester.makepyfile("def test_it(table):\n    assert table.screen == 'attract'")
    pytester.runpytest("-p", "no:cacheprovider", "--table=workshop").assert_outcomes(passed=1)


def test_the_page_has_every_word() -> None:
    """Each public word of the fixture stands on the page, and the page has more than a few examples."""
    text = README.read_text(encoding="utf-8")
    of_the_plugin = {"told", "rig", "story", "finish"}
    words = {
        name
        for each in (Table, SeatHands)
        for name, _ in inspect.getmembers(each)
        if not name.startswith("_") and name not in of_the_plugin
    }
    assert {word for word in words if not re.search(rf"\b{word}\b", text)} == set()
    assert len(EXAMPLES) >= 6
