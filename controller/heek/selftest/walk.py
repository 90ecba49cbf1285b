"""The walk round the table: every button pressed, every LED looked at, the panel read; a verdict for each.

Contacts are judged by their raw edges. First nobody touches anything: what is closed or moves then is stuck
or chatters by itself. Then each button is asked for in turn, and three things are told apart. Nothing came:
never seen. Another one came, twice: swapped (once is the person's mistake and is asked again). The right one
came: its edges are looked at. Edges that lie no further apart than the table's debounce time are one movement
of the contact, and a movement that takes longer than that in all is a worn switch's. One that is open for
longer than that and closes again sooner than a finger can would be taken for a second press.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import pairwise
from typing import Final

from heek.clock import MILLISECOND, SECOND, Duration, Instant
from heek.kinds import KINDS, Kind, Seat
from heek.selftest.asking import (
    PATIENCE,
    PLACES,
    SETTLED,
    Answer,
    Ask,
    Course,
    Input,
    Moved,
    Passed,
    Result,
    Verdict,
    name_of,
)

QUIET: Final[Duration] = 2 * SECOND
TWO_TAPS: Final[Duration] = 60 * MILLISECOND
"""No finger is off a button for less than this between two taps."""
HELD: Final[Duration] = 10 * SECOND
"""Closed for longer although it shall be let go of: stuck."""
TOGETHER: Final[Duration] = 5 * MILLISECOND
"""Another contact that closes so near to the one that is pressed was not pressed by a second finger."""

YES: Final = ("y", "yes")
NO: Final = ("n", "no", "0")
SKIP: Final = ("s", "skip")
QUIT: Final = ("q", "quit")


class Walk:
    """One walk over these seats; `closed` are the contacts that are closed when it begins.

    `panels` are the panels there are, by name, each with a function that says what is wrong with it (empty:
    nothing). `results` grow while `course` goes on.
    """

    def __init__(
        self,
        seats: Sequence[Seat],
        *,
        debounce: Duration,
        now: Instant,
        closed: Iterable[tuple[Seat, Kind]] = (),
        panels: Sequence[tuple[str, Callable[[], str]]] = (),
    ) -> None:
        self._seats = tuple(seats)
        self._debounce = debounce
        self._now = now
        self._closed = set(closed)
        self._panels = panels
        self._came: dict[tuple[Seat, Kind], tuple[Seat, Kind]] = {}
        """Which contact came where another was asked for."""
        self._noisy: dict[tuple[Seat, Kind], int] = {}
        self._quit = False
        self.results: list[Result] = []
        self.finished = False
        """Whether everything was asked: nobody said quit."""

    def course(self) -> Course:
        """The whole walk."""
        yield from self._silence()
        for seat in self._seats:
            for kind in KINDS:
                if not self._quit:
                    yield from self._button((seat, kind))
        self._pair_up()
        for look in (self._lamps, self._panel):
            if not self._quit:
                yield from look()
        self.finished = not self._quit

    # Contacts

    def _next(self, ask: Ask) -> Generator[Ask, Input, Input]:
        """What comes next; keeps in mind what is closed and what time it is."""
        what = yield ask
        self._now = max(self._now, what.at)
        if isinstance(what, Moved):
            (self._closed.add if what.closed else self._closed.discard)(what.where)
        elif isinstance(what, Answer) and what.text.strip().lower() in QUIT:
            self._quit = True
        return what

    def _silence(self) -> Course:
        ask = Ask(
            "Hands off the table for two seconds: nobody touches a button.",
            ("HANDS OFF",),
            takes_answers=False,
            until=self._now + QUIET,
        )
        while ask.until is not None and self._now < ask.until:
            what = yield from self._next(ask)
            if isinstance(what, Moved):
                self._noisy[what.where] = self._noisy.get(what.where, 0) + 1

    def _button(self, where: tuple[Seat, Kind]) -> Course:
        part = name_of(where)
        if where in self._closed:
            yield from self._let_go(where)
            if where in self._closed:
                self._add(
                    part, Verdict.STUCK, "closed although nobody presses it: look for a bridge to ground"
                )
                return
        before = ""
        wrong: list[tuple[Seat, Kind]] = []
        while not self._quit:
            seat, kind = where
            ask = Ask(
                f"{before}Seat {seat}: press {kind.value} (the {PLACES[kind]} button) once, and let it go. "
                "[s: skip]",
                (f"SEAT {seat}", "PRESS", kind.value.upper()),
                lit=frozenset({seat}),
                until=self._now + PATIENCE,
            )
            what = yield from self._press(ask)
            if what is None:
                if self._quit:
                    return
                text = f"no edge came in {PATIENCE // SECOND} s: check its wire, its ground and its pin"
                self._add(part, Verdict.NEVER_SEEN, text)
                return
            if isinstance(what, Answer):
                self._add(part, Verdict.SKIPPED)
                return
            if what.where == where:
                yield from self._judge(where, what)
                return
            if what.where in wrong:
                self._came[where] = what.where
                self._add(part, Verdict.SWAPPED, f"{name_of(what.where)} came instead, twice")
                yield from self._open_again(what.where)
                return
            wrong.append(what.where)
            before = f"That was {name_of(what.where)}. Once more, please. "
            yield from self._open_again(what.where)

    def _press(self, ask: Ask) -> Generator[Ask, Input, Moved | Answer | None]:
        """The first contact that closes, or the word to skip; None: nothing in time, or quit."""
        while ask.until is not None and self._now < ask.until and not self._quit:
            what = yield from self._next(ask)
            if isinstance(what, Moved) and what.closed:
                return what
            if isinstance(what, Answer) and what.text.strip().lower() in SKIP:
                return what
        return None

    def _let_go(self, where: tuple[Seat, Kind]) -> Course:
        ask = Ask(
            f"Seat {where[0]}: let go of {where[1].value}, which is closed. [s: skip]",
            (f"SEAT {where[0]}", "LET GO", where[1].value.upper()),
            until=self._now + HELD,
        )
        while where in self._closed and ask.until is not None and self._now < ask.until and not self._quit:
            what = yield from self._next(ask)
            if isinstance(what, Answer) and what.text.strip().lower() in SKIP:
                return

    def _open_again(self, where: tuple[Seat, Kind]) -> Course:
        """Wait until a contact that was pressed is open and still."""
        ask = Ask(
            f"That was {name_of(where)}; let it go.",
            (f"SEAT {where[0]}", "LET GO"),
            takes_answers=False,
            until=self._now + HELD,
        )
        quiet_at = self._now + SETTLED
        while (
            ask.until is not None
            and self._now < ask.until
            and (where in self._closed or self._now < quiet_at)
        ):
            what = yield from self._next(
                Ask(
                    ask.text,
                    ask.words,
                    takes_answers=False,
                    until=min(ask.until, max(quiet_at, self._now + 1)),
                )
                if where not in self._closed
                else ask
            )
            if isinstance(what, Moved):
                quiet_at = self._now + SETTLED

    def _judge(self, where: tuple[Seat, Kind], first: Moved) -> Course:
        """The edges of one press, from its first on, to a verdict."""
        edges = [first]
        joined: set[tuple[Seat, Kind]] = set()
        give_up = self._now + HELD
        quiet_at = self._now + SETTLED
        words = (f"SEAT {where[0]}", "LET GO")
        text = f"Seat {where[0]}: {where[1].value} is seen; let it go."
        while self._now < give_up and (where in self._closed or self._now < quiet_at):
            until = give_up if where in self._closed else min(give_up, quiet_at)
            what = yield from self._next(
                Ask(text, words, takes_answers=False, lit=frozenset({where[0]}), until=until)
            )
            if isinstance(what, Passed):
                continue
            if isinstance(what, Moved) and what.where == where:
                edges.append(what)
                quiet_at = self._now + SETTLED
            elif isinstance(what, Moved) and what.closed and abs(what.at - first.at) <= TOGETHER:
                joined.add(what.where)
        part = name_of(where)
        longest = _chatter(sorted(edges, key=lambda edge: edge.at), self._debounce)
        if where in self._closed:
            self._add(part, Verdict.STUCK, f"it closed and did not open again in {HELD // SECOND} s")
        elif joined:
            others = ", ".join(name_of(other) for other in sorted(joined, key=name_of))
            self._add(
                part, Verdict.JOINED, f"{others} closes with it: two wires touch, or a ground is missing"
            )
        elif longest > self._debounce or where in self._noisy:
            moved = (
                f"it bounces for {longest // MILLISECOND} ms, and stations.debounce_s is "
                f"{self._debounce // MILLISECOND} ms"
                if longest > self._debounce
                else f"it moved {self._noisy[where]} times while nobody touched it"
            )
            self._add(part, Verdict.CHATTERING, f"{moved}: a worn switch or a loose wire")
        else:
            self._add(part, Verdict.OK)

    def _pair_up(self) -> None:
        """Say of two that came for each other that they are the two ends of one mistake."""
        for number, result in enumerate(self.results):
            for asked, came in self._came.items():
                if result.part == name_of(asked) and self._came.get(came) == asked:
                    text = f"{name_of(came)} and it are the wrong way round: swap their wires or their pins"
                    self.results[number] = Result(result.part, Verdict.SWAPPED, text)

    # LEDs and panel

    def _answer(self, ask: Ask) -> Generator[Ask, Input, str]:
        """A word that was typed, in small letters; empty if the end was asked for."""
        while True:
            what = yield from self._next(ask)
            if self._quit:
                return ""
            if isinstance(what, Answer):
                return what.text.strip().lower()

    def _lamps(self) -> Course:
        dark = Ask("Are all LEDs dark now? [y/n, s: skip]", ("ALL DARK?",))
        while True:
            said = yield from self._answer(dark)
            if said in (*YES, *NO, *SKIP) or self._quit:
                break
        if self._quit:
            return
        if said in NO:
            text = "lit when it shall be dark: turn stations.led_active_high round, or look for a short"
            self._add("LEDs", Verdict.LIT, text)
        for seat in self._seats:
            yield from self._lamp(seat)
            if self._quit:
                return

    def _lamp(self, seat: Seat) -> Course:
        part = f"seat {seat} LED"
        ask = Ask(
            f"Is the LED of seat {seat} lit, and no other? [y/n, or the seat whose LED is lit; s: skip]",
            (f"SEAT {seat}", "LIT?"),
            lit=frozenset({seat}),
        )
        while True:
            said = yield from self._answer(ask)
            if self._quit:
                return
            if said in YES or said == str(seat):
                self._add(part, Verdict.OK)
            elif said in NO:
                self._add(
                    part, Verdict.DARK, "check which way round it is, its resistor, its wire and its pin"
                )
            elif said.isdecimal() and int(said) in self._seats:
                self._add(
                    part, Verdict.SWAPPED, f"that of seat {said} is lit instead: swap their wires or pins"
                )
            elif said in SKIP:
                self._add(part, Verdict.SKIPPED)
            else:
                continue
            return

    def _panel(self) -> Course:
        for name, trouble in self._panels:
            wrong = trouble()
            if wrong:
                self._add(name, Verdict.NEVER_SEEN, wrong)
                continue
            ask = Ask(
                f"Does the {name} show a whole frame, a cross in its middle and TOP above it? [y/n, s: skip]",
                ("HEEK",),
                pattern=True,
            )
            said = yield from self._answer(ask)
            while said not in (*YES, *NO, *SKIP) and not self._quit:
                said = yield from self._answer(ask)
            if self._quit:
                return
            if said in SKIP:
                self._add(name, Verdict.SKIPPED)
            elif said in YES:
                self._add(name, Verdict.OK)
            else:
                text = (
                    "check driver (shifted by two columns: the other one), rotate and address in [[display]]"
                )
                self._add(name, Verdict.DARK, text)

    def _add(self, part: str, verdict: Verdict, text: str = "") -> None:
        self.results.append(Result(part, verdict, text))


def _chatter(edges: Sequence[Moved], debounce: Duration) -> Duration:
    """How long a contact takes at most to come to rest, by the edges of one press, which ascend."""
    longest = 0
    began: Instant = edges[0].at
    for last, edge in pairwise(edges):
        apart = edge.at - last.at
        if edge.closed and debounce < apart < TWO_TAPS:
            longest = max(longest, edge.at - began)
        elif apart > debounce:
            began = edge.at
        longest = max(longest, edge.at - began)
    return longest
