"""Names for players of whom nothing is known but a number: two plain words and a number.

A name is drawn from the KI number itself, so a ledger that is built again from the tables' records gives
everybody the same name; unless two numbers draw the same one, which goes to the first that comes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import count
from typing import Final

FIRST: Final = (
    "Amber", "Attentive", "Basalt", "Brave", "Bright", "Calm", "Careful", "Cheerful", "Clever", "Curious",
    "Daring", "Early", "Earnest", "Fearless", "Friendly", "Gentle", "Hopeful", "Humble", "Jovial", "Keen",
    "Kind", "Lantern", "Lucky", "Mellow", "Merry", "Modest", "Nimble", "Patient", "Polite", "Quick",
    "Quiet", "Silver", "Sincere", "Steady", "Stone", "Sunlit", "Thoughtful", "Tireless", "Wise", "Witty",
)  # fmt: skip
SECOND: Final = (
    "Analyst", "Archivist", "Artist", "Binder", "Builder", "Cartographer", "Caver", "Chemist", "Engineer",
    "Explorer", "Ferryman", "Gardener", "Geologist", "Glassblower", "Guildsman", "Healer", "Historian",
    "Inkmaker", "Keeper", "Lamplighter", "Legislator", "Librarian", "Linguist", "Maintainer", "Mason",
    "Messenger", "Miner", "Musician", "Navigator", "Painter", "Papermaker", "Reader", "Scribe", "Stonecutter",
    "Surveyor", "Teacher", "Traveller", "Wanderer", "Weaver", "Writer",
)  # fmt: skip

_SMALLEST: Final = 5
_NUMBERS: Final = 95
"""How many numbers there are at first; `_SMALLEST` to 99."""


def names_for(number: str) -> Iterator[str]:
    """Names for a KI number, the first one first; the next ones are for when it is taken.

    They never end, and there are more to choose from with every one, so one of them is free.
    """
    for attempt in count():
        seed = hashlib.sha256(f"heek-name-1 {number} {attempt}".encode()).digest()
        drawn = int.from_bytes(seed[:16], "big")
        drawn, first = divmod(drawn, len(FIRST))
        drawn, second = divmod(drawn, len(SECOND))
        last = _SMALLEST + drawn % (_NUMBERS * 4**attempt)
        yield f"{FIRST[first]} {SECOND[second]} {last}"
