"""What is going to happen in a world, drawn from its seed: tables, links, and acts one after the other.

A plan is a value. The same seed gives the same plan, a plan with some acts left out is a plan again (that is
how a failing one is made small), and everything a world draws while it runs comes from the seed as well.

Each world has only some kinds of fault, many of each: where everything can fail at any time, little that is
deep ever happens.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from heek.ki.numbers import ki_number

PLAYERS: Final = tuple(ki_number(each) for each in range(4022010, 4022018))
KI: Final = -1
"""The service, where an act names a machine."""


class Kind(Enum):
    """What an act does."""

    MATCH = "match"
    """A match is won at the table; `amount` is the seed of who plays and wins."""
    PASS = "pass"
    """`amount` seconds go by."""
    LINK = "link"
    """The table's link becomes `word` from now on."""
    CUT = "cut"
    """The power goes at the machine's step that is `amount` steps from now, and comes back soon."""
    OFF = "off"
    """The machine is shut down properly and starts `amount` seconds later."""
    NIGHT = "night"
    """Everything is off for `amount` seconds, by switch."""
    BACKUP = "backup"
    """The machine's card is copied."""
    PUT_BACK = "put_back"
    """The power goes, and the card that starts is the newest copy."""
    CLONE = "clone"
    """The table's card is copied, and the copy begins to play as well."""
    LOSE_KEY = "lose_key"
    """The table starts with its journal and without its key."""
    FULL = "full"
    """The machine's card takes writes only now and then, for `amount` seconds."""
    WALL = "wall"
    """The machine's wall clock is wrong by `amount` seconds from now on."""
    POISON = "poison"
    """A match whose record the KI cannot take, in the way that `word` says."""
    VOID = "void"
    """The operator declares a match void; `amount` draws which."""
    RESTORE = "restore"
    """The operator takes a void back."""
    RENAME = "rename"
    """The operator names a player."""
    ERASE = "erase"
    """The operator erases a player's identity."""


LINKS: Final = ("good", "down", "lossy", "late", "double", "damaged", "portal", "playback")
FORGED: Final = ("portal", "playback")
"""Links on which somebody else answers."""
POISONS: Final = ("delta", "stake", "rules", "rubbish", "large")

FAULTS: Final = {
    Kind.LINK: 8,
    Kind.CUT: 10,
    Kind.OFF: 3,
    Kind.NIGHT: 1,
    Kind.BACKUP: 3,
    Kind.PUT_BACK: 4,
    Kind.CLONE: 1,
    Kind.LOSE_KEY: 1,
    Kind.FULL: 3,
    Kind.WALL: 2,
    Kind.POISON: 4,
    Kind.VOID: 4,
    Kind.RESTORE: 2,
    Kind.RENAME: 2,
    Kind.ERASE: 1,
}
"""How often each comes, against the others of its world."""

NEEDS: Final = {Kind.PUT_BACK: Kind.BACKUP, Kind.RESTORE: Kind.VOID}
"""What is of no use without another."""

NEVER_KI: Final = (Kind.LINK, Kind.CLONE, Kind.LOSE_KEY, Kind.POISON)
OPERATORS: Final = (Kind.VOID, Kind.RESTORE, Kind.RENAME, Kind.ERASE)
MOST_CLONES: Final = 2


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that happens; `who` is a table from 0, or `KI`."""

    number: int
    """Its place in the whole plan of its seed."""
    kind: Kind
    who: int
    amount: float = 0.0
    word: str = ""

    def __str__(self) -> str:
        who = "the KI" if self.who == KI else f"table {self.who + 1}"
        detail = f" {self.word}" if self.word else f" {self.amount:g}" if self.amount else ""
        return f"{self.number}: {who} {self.kind.value}{detail}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A world before it begins."""

    seed: int
    tables: int
    serial: tuple[bool, ...]
    """By table: its link is a serial line with a gateway; else it is HTTP."""
    by_code: tuple[bool, ...]
    """By table: the KI is on another machine, and the table is enrolled by its code."""
    acts: tuple[Act, ...]

    def only(self, numbers: Collection[int]) -> Plan:
        """The same world, in which of all acts only these happen."""
        return replace(self, acts=tuple(each for each in self.acts if each.number in numbers))


def draw_plan(seed: int, kinds: Collection[Kind] = tuple(FAULTS)) -> Plan:
    """The plan of a seed; `kinds` are the faults that may come at all."""
    dice = random.Random(f"plan {seed}")
    tables = min(dice.choice((1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5, 7, 10)), 10)
    possible = sorted(kinds, key=lambda kind: kind.value)
    chosen = {kind for kind in possible if dice.random() < 0.35}
    chosen |= {NEEDS[kind] for kind in chosen if kind in NEEDS} & set(kinds)
    weights = {kind: FAULTS[kind] for kind in possible if kind in chosen}
    quiet = {Kind.MATCH: 20, Kind.PASS: 10}
    names = [*weights, *quiet]
    odds = [*(2 * weight for weight in weights.values()), *quiet.values()]
    acts: list[Act] = []
    clones = 0
    for number in range(dice.randint(6, 20) + tables):
        kind = dice.choices(names, odds)[0]
        if kind is Kind.CLONE:
            clones += 1
            if clones > MOST_CLONES:
                kind = Kind.MATCH
        acts.append(_act(dice, number, kind, tables + min(clones, MOST_CLONES)))
    serial = tuple(dice.random() < 0.25 for _ in range(tables + MOST_CLONES))
    by_code = tuple(dice.random() < 0.2 for _ in range(tables + MOST_CLONES))
    return Plan(seed, tables, serial, by_code, tuple(acts))


def _act(dice: random.Random, number: int, kind: Kind, tables: int) -> Act:
    who = dice.randrange(tables)
    if kind in OPERATORS or (kind not in (*NEVER_KI, Kind.MATCH) and dice.random() < 0.25):
        who = KI
    amount, word = 0.0, ""
    match kind:
        case Kind.MATCH | Kind.VOID | Kind.RESTORE | Kind.RENAME | Kind.ERASE:
            amount = dice.randrange(1 << 30)
        case Kind.PASS:
            amount = round(dice.choice((1, 5, 20, 60)) * dice.random(), 1)
        case Kind.LINK:
            word = dice.choice(LINKS)
        case Kind.CUT:
            amount = round(10 ** dice.uniform(0, 2.5))
        case Kind.OFF:
            amount = round(10 ** dice.uniform(0, 2), 1)
        case Kind.NIGHT:
            amount = round(10 ** dice.uniform(3, 5.5))
        case Kind.FULL:
            amount = round(10 ** dice.uniform(0, 2), 1)
        case Kind.WALL:
            amount = dice.choice((-1.9e9, -86400.0 * 14, -7200.0, 7200.0, 1.0, 3.2e8))
        case Kind.POISON:
            word = dice.choice(POISONS)
            amount = dice.randrange(1 << 30)
    return Act(number, kind, who, amount, word)
