"""Somebody who does what a self-test asks, as well as the table lets them; on a clock of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from heek.clock import MILLISECOND, Instant
from heek.kinds import Kind
from heek.selftest.asking import Answer, Ask, Conversation, Course, Input, Moved, Passed

Press = Sequence[tuple[int, Any, bool]]
"""Edges of one press: milliseconds after it begins, the contact, closed."""


def clean(where: Any, hold_ms: int = 120) -> Press:
    """A press without a bounce."""
    return [(0, where, True), (hold_ms, where, False)]


class Person:
    """Presses what is asked for by `presses` (default: clean), answers by `answers`; keeps what was asked."""

    def __init__(
        self,
        presses: Callable[[Any, int], Press | str] | None = None,
        answers: Callable[[Ask], str] = lambda _ask: "y",
        before: Press = (),
    ) -> None:
        self._presses = presses or (lambda where, _time: clean(where))
        self._answers = answers
        self._coming: deque[Moved] = deque(
            Moved(ms * MILLISECOND, where, closed) for ms, where, closed in before
        )
        self._asked: dict[Any, int] = {}
        self.now: Instant = 0
        self.asks: list[Ask] = []

    def take_part(self, course: Course) -> None:
        """Play a whole course, at most so many steps as no course of ours needs."""
        conversation = Conversation(course)
        for _ in range(20_000):
            if conversation.over:
                return
            self.asks.append(conversation.ask)
            conversation.tell(self._react(conversation.ask))
        raise AssertionError(f"the course does not end: {conversation.ask}")

    def _react(self, ask: Ask) -> Input:
        if not self._coming and ask.takes_answers:
            if "press" in ask.text:
                where = (int(ask.words[0][-1]), Kind(ask.words[2].lower()))
                self._asked[where] = self._asked.get(where, 0) + 1
                if self._asked[where] == 1 or "Once more" in ask.text or "already" in ask.text:
                    reaction = self._presses(where, self._asked[where])
                    if isinstance(reaction, str):
                        return Answer(self.now, reaction)
                    start = self.now + 500 * MILLISECOND
                    self._coming.extend(
                        Moved(start + ms * MILLISECOND, at, closed) for ms, at, closed in reaction
                    )
            elif "let go" not in ask.text:
                return Answer(self.now, self._answers(ask))
        if self._coming and (ask.until is None or self._coming[0].at <= ask.until):
            moved = self._coming.popleft()
            self.now = max(self.now, moved.at)
            return moved
        assert ask.until is not None, f"nobody will ever react to {ask.text}"
        self.now = max(self.now, ask.until)
        return Passed(self.now)
