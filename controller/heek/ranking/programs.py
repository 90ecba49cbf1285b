"""Board and players as JSON, for programs."""

from __future__ import annotations

from typing import Any

import msgspec

from heek.ranking.board import Board, Person, PlayerPage
from heek.ranking.rulings import Ruling
from heek.ranking.words import reason


def board_json(board: Board) -> bytes:
    """A page of the board; `next` is what to ask for as `after`, null at the end."""
    return msgspec.json.encode(
        {
            "ki": 1,
            "game": "ahyoheek",
            "rules": board.rules,
            "ranked": board.ranked,
            "players": [
                {
                    "place": line.place,
                    **_person(line.person),
                    "rank": line.rank,
                    "points": line.points,
                    "total": line.total,
                    "won": line.won,
                    "played": line.played,
                }
                for line in board.lines
            ],
            "next": board.following,
        }
    )


def player_json(page: PlayerPage) -> bytes:
    """A player; `next` is what to ask for as `before`, null at the end."""
    return msgspec.json.encode(
        {
            "ki": 1,
            **_person(page.person),
            "place": page.place,
            "ranked": page.ranked,
            "rank": page.rank,
            "points": page.points,
            "total": page.total,
            "to_next_rank": page.to_next,
            "won": page.won,
            "played": page.played,
            "changes": [
                {
                    "match": change.played.match,
                    "table": change.played.table,
                    "rated": change.played.rated,
                    "won": change.mine,
                    "void": change.played.void,
                    "ruling": None if change.ruling is None else _ruling(change.ruling),
                    "stake": change.stake,
                    "stale": change.stale,
                    "delta": change.delta,
                    "total": change.total,
                    "reason": str(reason(change)),
                }
                for change in page.changes
            ],
            "next": page.following,
        }
    )


def _ruling(ruling: Ruling) -> dict[str, Any]:
    return {"voids": ruling.voids, "actor": ruling.actor, "reason": ruling.reason}


def _person(person: Person) -> dict[str, Any]:
    return {"player": person.number, "name": person.name, "unverified": person.unverified}
