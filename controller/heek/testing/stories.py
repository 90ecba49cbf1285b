"""Story files as tests: one item for each, which tells every expectation that did not hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heek.errors import StoryError
from heek.simulator.steps import Expect
from heek.simulator.story import read
from heek.testing.levels import CANNOT, level
from heek.testing.showing import event_table


class StoryFailed(Exception):
    """Some expectations of a story did not hold; the text tells which, and what came instead."""


class StoryFile(pytest.File):
    """A file that holds one story."""

    def collect(self) -> Iterator[StoryItem]:
        yield StoryItem.from_parent(self, name=self.path.stem)


class StoryItem(pytest.Item):
    """One story, played on the kind of table that `--table` names."""

    def runtest(self) -> None:
        here = Path.cwd()
        story = read(self.path.relative_to(here) if self.path.is_relative_to(here) else self.path)
        if not any(isinstance(step, Expect) for step in story.steps):
            raise StoryError(
                f"{story.source}: the story expects nothing, so it proves nothing; add an expect"
            )
        lines, report = level(self.config).play(story)
        name = self.config.getoption("--table")
        for skipped in report.skipped:
            self.user_properties.append((CANNOT, skipped))
            self.add_report_section("call", f"not on --table={name}", f"{skipped}\n")
        if report.failures:
            events = event_table([json.loads(line) for line in lines])
            again = f"see it: heek simulate {story.source} --frames FOLDER"
            raise StoryFailed("\n".join([*report.failures, "", *events, again]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is wrong with the story needs no traceback; what is wrong with the table does."""
        if isinstance(excinfo.value, StoryFailed | StoryError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"story {self.name}"
