"""What the journal keeps of the KI: whom the table is enrolled at, what it told, what it holds.

Each function works within a transaction of the journal (`heek.journal.store`), on whose thread it runs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from heek.journal import erased
from heek.journal.checks import deltas_of
from heek.journal.records import NO_MATCHES, Acknowledgement, Digest, News, Pin, Ruling, SettledKey, Synced

UNANSWERED: Final = "state = 'waiting' AND again = 0 AND match NOT IN (SELECT match FROM voids)"
"""Results whose deltas are not in what the KI tells of points: those offered again were in it once, and a
void match has none."""

UNANSWERED_BEFORE: Final = "state = 'waiting'"
"""The same in a file of an older schema."""


def digest_of(matches: Iterable[str]) -> Digest:
    """Count and xor of match ids given as UUIDs; what is no UUID can be at no KI."""
    count, total = 0, 0
    for each in matches:
        try:
            number = int(each.replace("-", ""), 16)
        except ValueError:
            continue
        count += 1
        total ^= number
    return count, (total & (1 << 128) - 1).to_bytes(16, "big")


def joined(one: Digest, other: Digest) -> Digest:
    """The digest of both together."""
    return one[0] + other[0], bytes(a ^ b for a, b in zip(one[1], other[1], strict=True))


def expect(db: sqlite3.Connection, accepted: Iterable[tuple[bytes | None, str]]) -> None:
    """The KI has accepted these (key id, match): at the end of an offer it should hold them too."""
    accepted = list(accepted)
    rows = db.execute(
        "SELECT key, offered_count, offered_xor FROM digests WHERE offered_count IS NOT NULL"
    ).fetchall()
    for key, count, xor in rows:
        more = digest_of(match for of, match in accepted if of == key)
        db.execute(
            "UPDATE digests SET offered_count = ?, offered_xor = ? WHERE key = ?",
            (*joined((count, bytes(xor)), more), key),
        )


def settle(db: sqlite3.Connection, key: bytes, settled: Digest, offered: Digest | None) -> None:
    """Keep what a comparison of digests came to for this key id."""
    if (settled, offered) == (NO_MATCHES, None):
        db.execute("DELETE FROM digests WHERE key = ?", (key,))
        return
    db.execute(
        "INSERT OR REPLACE INTO digests(key, settled_count, settled_xor, offered_count, offered_xor)"
        " VALUES(?, ?, ?, ?, ?)",
        (key, *settled, *((None, None) if offered is None else offered)),
    )


def pin_service(db: sqlite3.Connection, pin: Pin, key: bytes) -> None:
    """Be enrolled there with this key id; what was kept of another KI is forgotten."""
    known = db.execute("SELECT service FROM ki").fetchone()
    if known is not None and bytes(known[0]) == pin.service:
        db.execute("UPDATE ki SET name = ?, found = ?", (pin.name, pin.found))
        meet_with_key(db, key)
    else:
        forget_service(db)
        db.execute(
            "INSERT INTO ki(id, service, name, found, key) VALUES(1, ?, ?, ?, ?)",
            (pin.service, pin.name, pin.found, key),
        )
    be_known(db, key)


def forget_service(db: sqlite3.Connection) -> None:
    """Be enrolled nowhere. What results became there stays; a KI that lacks them says so by its digest."""
    for table in ("ki", "news", "voids", "names", "digests", "known_as", "acknowledged"):
        db.execute(f"DELETE FROM {table}")


def be_known(db: sqlite3.Connection, key: bytes, *, yes: bool = True) -> None:
    """The KI has said that it knows the table by the key of this id, or that it does not."""
    if yes:
        db.execute("INSERT OR IGNORE INTO known_as(key) SELECT ? FROM ki", (key,))
    else:
        db.execute("DELETE FROM known_as WHERE key = ?", (key,))


def acknowledge_difference(db: sqlite3.Connection, key: bytes, known: Acknowledgement) -> None:
    """An operator knows of this difference; it takes the place of another that was acknowledged before."""
    db.execute(
        "INSERT OR REPLACE INTO acknowledged(key, count, xor, at_s, trust, by) VALUES(?, ?, ?, ?, ?, ?)",
        (key, *known.difference, known.at_s, known.trust, known.by),
    )


def meet_with_key(db: sqlite3.Connection, key: bytes) -> bytes | None:
    """News are of a key: with another one than before they begin anew. The key id before; None: the same."""
    row = db.execute("SELECT key FROM ki WHERE key IS NOT ?", (key,)).fetchone()
    db.execute("UPDATE ki SET key = ?, news = 0, mark = zeroblob(8) WHERE key IS NOT ?", (key, key))
    return None if row is None else bytes(row[0])


def take(db: sqlite3.Connection, synced: Synced, key: bytes) -> tuple[dict[str, int], tuple[Ruling, ...]]:
    """Write down how things stand.

    By KI number, what of our own unanswered deltas counts no more; and which of our matches are void or count
    otherwise than before.
    """
    before, voids = unanswered_deltas(db), _voids(db)
    if synced.news_anew:
        db.execute("UPDATE ki SET news = 0, mark = zeroblob(8)")
        for table in ("news", "voids", "names"):
            db.execute(f"DELETE FROM {table}")
    last = db.execute("SELECT news FROM ki").fetchone()
    for each in synced.news:
        if last is not None and each.number > last[0]:
            _apply(db, each)
    tell_points(db, synced.points)
    be_known(db, key)
    present = SettledKey(key, synced.settled, synced.offered, synced.offer)
    for compared in (present, *synced.formers):
        settle(db, compared.key, compared.settled, compared.offered)
        if compared.offer:
            offer(db, compared.key)
    after = unanswered_deltas(db)
    gone = {
        player: before.get(player, 0) - after.get(player, 0)
        for player in before | after
        if before.get(player, 0) != after.get(player, 0)
    }
    return gone, tuple(_rulings(db, synced.news, voids))


def _voids(db: sqlite3.Connection) -> dict[str, str]:
    return {str(match): str(reason) for match, reason in db.execute("SELECT match, reason FROM voids")}


def _rulings(db: sqlite3.Connection, news: Iterable[News], before: Mapping[str, str]) -> Iterator[Ruling]:
    """What the news have changed for matches whose results are here; of several on one the last counts."""
    after = _voids(db)
    for match, told in {each.about: each for each in news if each.kind in ("voided", "restored")}.items():
        if match is None or before.get(match) == after.get(match):
            continue
        row = db.execute("SELECT record FROM results WHERE match = ?", (match,)).fetchone()
        if row is not None:
            yield Ruling(match, match in after, after.get(match, told.text), _ended_s(row[0]))


def _ended_s(record: bytes) -> float | None:
    try:
        time = json.loads(record)["t"]
        return None if time["trust"] == "none" else float(time["wall_s"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def offer(db: sqlite3.Connection, key: bytes) -> None:
    """Have every result that is signed by the key of this id wait again."""
    db.execute(
        "UPDATE outbox SET state = 'waiting', again = 1 WHERE state != 'waiting'"
        " AND match IN (SELECT match FROM results WHERE key = ? AND cbor IS NOT NULL)",
        (key,),
    )


def tell_points(db: sqlite3.Connection, points: Mapping[str, int]) -> None:
    """Keep what the KI told of players."""
    db.executemany("INSERT OR REPLACE INTO players(player, points) VALUES(?, ?)", points.items())


def unanswered_deltas(db: sqlite3.Connection, which: str = UNANSWERED) -> dict[str, int]:
    """By KI number: our own deltas that are not in what the KI tells of points."""
    totals: dict[str, int] = {}
    rows = db.execute(f"SELECT record FROM results JOIN outbox USING(match) WHERE {which}")
    for (record,) in rows:
        for player, delta in deltas_of(record):
            totals[player] = totals.get(player, 0) + delta
    return totals


def _apply(db: sqlite3.Connection, news: News) -> None:
    understood = True
    match news.kind, news.about:
        case "voided", str(about):
            db.execute("INSERT OR REPLACE INTO voids(match, reason) VALUES(?, ?)", (about, news.text))
        case "restored", str(about):
            db.execute("DELETE FROM voids WHERE match = ?", (about,))
        case "named", str(about):
            db.execute("INSERT OR REPLACE INTO names(player, name) VALUES(?, ?)", (about, news.text))
        case "erased", str(about):
            _erase(db, about)
        case _:
            understood = False
    db.execute(
        "INSERT OR REPLACE INTO news(number, kind, body, understood) VALUES(?, ?, ?, ?)",
        (news.number, news.kind, news.body, understood),
    )
    db.execute("UPDATE ki SET news = ?, mark = ?", (news.number, news.mark))


def _erase(db: sqlite3.Connection, player: str) -> None:
    """Forget who that was, in what people read; the signed bytes stay, four others own them too."""
    erased.forget(db, player)
    db.execute("DELETE FROM players WHERE player = ?", (player,))
    db.execute("DELETE FROM names WHERE player = ?", (player,))
    # What was told under this number before names it.
    db.execute("DELETE FROM news WHERE kind = 'named' AND instr(body, ?)", (player,))
    rows = db.execute(
        "SELECT match, record FROM results WHERE instr(record, ?)", (player.encode(),)
    ).fetchall()
    for match, record in rows:
        without = erased.record_without(record, [player])
        if without != record:
            db.execute("UPDATE results SET record = ? WHERE match = ?", (without, match))
