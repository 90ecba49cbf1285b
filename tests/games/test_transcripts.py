"""Whole matches as text: each transcript is replayed and must come out word for word.

A transcript's lines say what was done and what the rules made of it, told apart by `=>`. With the
environment variable HEEK_RENEW_GOLDEN=1 the test writes what the rules say now; then read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heek.games.ahyoheek import (
    Collection,
    MatchState,
    RoundClosed,
    Rules,
    SeatsLeft,
    Void,
    Won,
    apply,
    initial,
    may_throw,
    missed_out,
)
from heek.kinds import Kind, Seat

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


def collections(held: dict[Seat, Collection]) -> str:
    return "  ".join(f"{seat}:{each.pen}/{each.page}/{each.beetle}" for seat, each in held.items())


def signed(points: int) -> str:
    return f"{points:+d}" if points else "0"


def standing(state: MatchState) -> str:
    """What follows from an action: who must stand up, who is tied, how it ended."""
    said = [collections(dict(state.collections)) or "nobody sits"]
    if state.tied and state.outcome is None:
        said.append(f"tied {' '.join(map(str, state.tied))}")
    if missed_out(state):
        said.append(f"missed out {' '.join(map(str, missed_out(state)))}")
    if isinstance(state.outcome, Won):
        said.append(f"seat {state.outcome.seat} wins by {state.outcome.by}")
    elif isinstance(state.outcome, Void):
        said.append(f"void by {state.outcome.reason}")
    return " | ".join(said)


def replay(text: str) -> str:
    """The transcript as the rules tell it now, from what was done in `text`."""
    lines: list[str] = []
    state: MatchState | None = None
    for line in text.splitlines():
        done = line.split("=>")[0].strip()
        verb, *words = done.split() or [""]
        if verb in ("", "#"):
            lines.append(line)
            continue
        if verb == "match":
            seats = [int(word) for word in words if word.isdigit()]
            rules = {key: int(value) for key, value in (w.split("=") for w in words if "=" in w)}
            state = initial(seats, Rules(**rules))  # type: ignore[arg-type]
            lines.append(done)
            continue
        assert state is not None, "a transcript opens with its match"
        if verb == "throws":
            seats = list(may_throw(state))
            thrown = dict(zip(seats, words, strict=True))
            kinds = {seat: Kind(word) for seat, word in thrown.items() if word != "-"}
            state = apply(state, RoundClosed(kinds))
            score = state.score
            assert score is not None
            points = " ".join(signed(score.points[seat]) if seat in score.points else "." for seat in seats)
            winners = f"won by {' '.join(map(str, score.winners)) or 'nobody'}"
            result = "void" if score.void else f"{points} | {winners}"
        else:
            assert verb == "leave", f"a transcript knows no {verb!r}"
            state = apply(state, SeatsLeft(tuple(map(int, words))))
            result = "gone"
        lines.append(f"{done:<40} => {result} | {standing(state)}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    """The match comes out as the transcript says, line for line, and is over at its end."""
    text = path.read_text(encoding="utf-8")
    now = replay(text)
    if os.environ.get("HEEK_RENEW_GOLDEN"):
        path.write_text(now, encoding="utf-8")
    else:
        assert now == text
    assert " wins by " in now.splitlines()[-1] or " void by " in now.splitlines()[-1]


def test_there_are_transcripts() -> None:
    """The folder was found; an empty one would prove nothing."""
    assert len(TRANSCRIPTS) >= 8
