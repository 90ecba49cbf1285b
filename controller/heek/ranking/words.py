"""What happened, in words: how a match was won, and the reason for every change of somebody's points."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Final

from heek.ranking.board import Change, Played
from heek.ranking.rulings import Ruling

KINDS: Final = {"pen": ("pen", "pens"), "page": ("page", "pages"), "beetle": ("beetle", "beetles")}
_COUNTS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def counted(count: int, one: str, many: str) -> str:
    """`7 rounds`, `1 round`."""
    return f"{count} {one if count == 1 else many}"


def time_words(wall_s: int) -> str | None:
    """`2 May 2026, 14:02 UTC`; None for what no calendar has, since a clock may say anything."""
    try:
        when = datetime.datetime.fromtimestamp(wall_s, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def signed(delta: int) -> str:
    """`+4`, `-1`, `0`."""
    return f"{delta:+d}" if delta else "0"


def of_a_kind(played: Played) -> str | None:
    """`three pens`, or `pens` where it cannot be told how many; None if the match was not won by that."""
    if played.won_with is None:
        return None
    one, many = KINDS[played.won_with]
    count = played.won_count
    if count is None or count < 1:
        return many
    said = _COUNTS[count] if count < len(_COUNTS) else str(count)
    return f"{said} {one if count == 1 else many}"


def how(played: Played) -> str:
    """How a match was won, after a comma: `three pens`, `in sudden death`."""
    collection = of_a_kind(played)
    match played.by:
        case "sudden_death":
            return "in sudden death"
        case "walkover":
            return "as the others stood up"
        case "total":
            return f"{collection} and the larger collection" if collection else "by the larger collection"
        case _:
            return collection or "by a collection"


def won_how(played: Played) -> str:
    """The same after `won`: `won with three pens`."""
    said = how(played)
    return f"won with {said}" if of_a_kind(played) else f"won {said}"


def winner_name(played: Played) -> str:
    """The generated name, or what else has won; no name that a table sends is shown."""
    if played.winner is not None:
        return played.winner.name
    return "a bot" if played.winner_kind == "bot" else "a guest"


def what_was_won(played: Played) -> str:
    """What the winner received, behind `won`: ` +4`; nothing for a guest, an unrated or a void match."""
    counts = played.rated and not played.void
    return f" {signed(played.gain)}" if counts and played.winner is not None else ""


def match_line(played: Played) -> str:
    """A match on one line, without its table: `Patient Scribe 41 won +4, three pens, 7 rounds`."""
    rounds = counted(played.rounds, "round", "rounds")
    said = f"{winner_name(played)} won{what_was_won(played)}, {how(played)}, {rounds}"
    return f"{said}{but(played)}"


def but(played: Played) -> str:
    """Why a match moves nothing, after a comma: `, void`, `, not rated`; nothing if it may."""
    if played.void:
        return ", void"
    return "" if played.rated else ", not rated"


def ruled(ruling: Ruling) -> str:
    """What an operator declared, and why: `match voided (operator: wrong seat)`."""
    what = "match voided" if ruling.voids else "match restored"
    return f"{what} ({ruling.actor}: {ruling.reason})"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why points changed, in three parts: `-1`, `stake`, `lost to Calm Guildsman 7 at Table 1`.

    What an operator declared says it all in the second, and has no third.
    """

    delta: str
    what: str
    why: str

    def __str__(self) -> str:
        """On one line; a change that moved nothing has no number before it."""
        said = f"{self.what}: {self.why}" if self.why else self.what
        return said if self.delta == "0" else f"{self.delta} {said}"


def reason(change: Change) -> Reason:
    """Why one match, or what an operator declared about it, changed somebody's points, or did not."""
    if change.ruling is not None:
        return Reason(signed(change.delta), ruled(change.ruling), "")
    return Reason(signed(change.delta), *_what_and_why(change))


def _what_and_why(change: Change) -> tuple[str, str]:
    played = change.played
    at = f" at {played.table}"
    lost_to = f"lost to {winner_name(played)}{at}"
    if not played.rated:
        return "not rated", f"{won_how(played)}{at}" if change.mine else lost_to
    if change.mine:
        return "from the others" if change.delta else "nobody else had a stake", f"{won_how(played)}{at}"
    if change.delta:
        return "stake", lost_to
    if played.winner is None:
        return "nothing moved", f"{winner_name(played)} won{at}"
    if change.stake == 0:
        return "played free", lost_to
    return "nobody pays on this board", lost_to
