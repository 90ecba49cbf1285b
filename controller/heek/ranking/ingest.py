"""A batch of envelopes: each is judged on its own, and all are answered after one commit.

Every record has a savepoint, so whatever is wrong with one, the rest counts. What becomes of it:

* `accepted`: it counts from now on.
* `duplicate`: these very bytes count already; a success for the table.
* `conflict`: the match counts already with other bytes. The first one goes on counting, both are kept, and
  the operator is told by the log.
* `rejected`: it does not count, and the reason says why. If the signature is right it is set aside, up to
  `MOST_SET_ASIDE` of one table; what nobody known has signed is not kept, or anybody could fill the disk.

A stake that is too high for what is known of a player is the one reason that may go away by itself: the
matches in which the points were won may be on their way. So such a record is looked at again as soon as the
player has gained, also within the batch, as long as anything changes. Since that bound only ever rises, the
records that count in the end, and with them all points, are the same in whatever order they come.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Row, func, select
from sqlalchemy.exc import IntegrityError

from heek.errors import RankingRefusal, RecordError
from heek.games.ranking_points import stake
from heek.ki.answers import BatchAnswer, RecordAnswer, Verdict
from heek.ki.envelope import Envelope, split_batch, verify_record
from heek.ki.record import Record, decode_record, record_hash
from heek.ranking.accounts import Account, look_up, make_account, move, points_of
from heek.ranking.chains import add_link
from heek.ranking.enrolling import replaced_by
from heek.ranking.erased_records import NO_SIGNATURE, scrubbed
from heek.ranking.findings import REPLACED, find
from heek.ranking.invariant import AWARD, Moves, moves, staking, winner_place
from heek.ranking.replay import replay
from heek.ranking.schema import boards, entries, matches, players, records, set_aside, tables, transfers

log: Final = logging.getLogger("heek")

MOST_SET_ASIDE: Final = 1000
"""Records of one table that are kept without counting."""

MOST_REASON: Final = 160
"""Characters: two hundred reasons must fit into one answer over a serial line."""


@dataclass(slots=True)
class _Table:
    """A table that is known, and what it holds after this batch."""

    id: int
    public: bytes
    name: str
    held: int
    held_xor: bytes
    changed: bool = False

    def hold(self, match: bytes, name: str) -> None:
        self.held += 1
        self.held_xor = bytes(one ^ other for one, other in zip(self.held_xor, match, strict=True))
        self.name = name
        self.changed = True


@dataclass(slots=True)
class _Judged:
    """What became of one record: the answer, and what follows from it."""

    answer: RecordAnswer
    waits_for: str | None = None
    gained: str | None = None
    """Who has more points than before."""


@dataclass(slots=True)
class Batch:
    """One request with records, within one transaction of the ledger; `take` is called once."""

    connection: Connection
    now_s: int
    changed: bool = False
    """Something counts, or is set aside, that did not before."""
    _by_key: dict[bytes, _Table | None] = field(default_factory=dict)
    _by_id: dict[int, _Table] = field(default_factory=dict)
    _players: dict[str, None] = field(default_factory=dict)
    """All players concerned, in the order in which they came up."""

    def take(self, body: bytes) -> BatchAnswer:
        """Judge all records of a request's body.

        Raises RankingRefusal if the body is no batch, or if not one of its envelopes is of a table that is
        known here.
        """
        try:
            envelopes = split_batch(body)
        except RecordError as error:
            raise RankingRefusal("malformed", f"the request {error}") from None
        self._look_up_tables([each for each in envelopes if isinstance(each, Envelope)])
        judged = [self._one(each) for each in envelopes]
        self._look_again({each.gained for each in judged if each.gained}, envelopes, judged)
        for table in self._by_id.values():
            if table.changed:
                self._tell_if_replaced(table)
                self.connection.execute(
                    tables.update()
                    .where(tables.c.id == table.id)
                    .values(held=table.held, held_xor=table.held_xor, name=table.name)
                )
        return BatchAnswer(
            tuple(each.answer for each in judged),
            points_of(self.connection, self._players),
            self._holds(envelopes),
        )

    def _tell_if_replaced(self, table: _Table) -> None:
        """Another table has its place, and it still reports."""
        by = replaced_by(self.connection, table.id)
        if by is not None:
            name = self.connection.execute(select(tables.c.name).where(tables.c.id == by)).scalar()
            words = f"{name} took its place, and it still reports; what it reports counts"
            find(self.connection, table.id, REPLACED, words, self.now_s)

    def _look_up_tables(self, envelopes: list[Envelope]) -> None:
        keys = list(dict.fromkeys(each.key_id for each in envelopes))
        for row in self.connection.execute(select(tables).where(tables.c.key_id.in_(keys))):
            self._by_key[row.key_id] = self._know(row)
        if keys and not self._by_key:
            raise RankingRefusal("unknown_table", f"the key {keys[0].hex()} is not known to this KI")

    def _know(self, row: Row[Any]) -> _Table:
        table = _Table(row.id, row.public, row.name, row.held, row.held_xor)
        return self._by_id.setdefault(row.id, table)

    def _holds(self, envelopes: Any) -> tuple[int, bytes]:
        """Of the table that sent this: the first one that is known, since a batch is one table's."""
        for each in envelopes:
            table = self._by_key.get(each.key_id) if isinstance(each, Envelope) else None
            if table is not None:
                return table.held, table.held_xor
        return 0, bytes(16)

    def _one(self, envelope: Envelope | RecordError) -> _Judged:
        if isinstance(envelope, RecordError):
            return _rejected(f"the envelope {envelope}")
        table = self._by_key.get(envelope.key_id)
        if table is None:
            return _rejected(f"the key {envelope.key_id.hex()} is not known to this KI")
        if not verify_record(envelope, table.public):
            return _rejected("the signature is not that of the table's key")
        return self._signed(table, envelope)

    def _signed(self, table: _Table, envelope: Envelope) -> _Judged:
        """Judge what a known table has signed, and keep it in any case."""
        record: Record | None = None
        try:
            with self.connection.begin_nested():
                record = decode_record(envelope.record)
                judged = self._judge(table, envelope, record)
        except RecordError as error:
            judged = _rejected(str(error), record)
        except IntegrityError as error:
            # What was checked before should have found it; the constraints are there for when it did not.
            log.error("%s: the ledger's constraints refuse a record: %s", table.name, error.orig)
            judged = _rejected("the ledger's constraints refuse it", record)
        verdict = judged.answer.verdict
        if verdict is Verdict.CONFLICT:
            log.warning(
                "%s: match %s came again with other bytes; the first counts, this one is set aside",
                table.name,
                record.match_id if record else "",
            )
        kept = verdict.success or self._set_aside(table, envelope, record, judged)
        if kept and record is not None and record.table == envelope.key_id:
            add_link(self.connection, table.id, record, record_hash(envelope.record), self.now_s)
        return judged

    def _judge(self, table: _Table, envelope: Envelope, record: Record) -> _Judged:
        """Accept, or say why not; raises RecordError, and the savepoint around it undoes what was done."""
        if record.table != envelope.key_id:
            raise RecordError("table: is not the one whose key has signed")
        signed = record_hash(envelope.record)
        known = self.connection.execute(
            select(matches.c.record_hash).where(matches.c.match == record.match)
        ).scalar()
        if known is not None:
            self._players.update(dict.fromkeys(each.player for each in record.seats if each.player))
            verdict = Verdict.DUPLICATE if known == signed else Verdict.CONFLICT
            reason = None if verdict.success else "the match counts already, with other bytes"
            return _Judged(RecordAnswer(verdict, reason, record.match))
        moved = moves(record)
        self._players.update(dict.fromkeys(each.player for each in record.seats if each.player))
        self._check_board(record)
        accounts = self._accounts(dict.fromkeys(each.player for each in record.seats if each.player))
        for each in staking(record):
            account = accounts[each.player or ""]
            if each.stake > account.highest_stake:
                judged = _rejected(
                    f"the stake of {account.number} is {each.stake}, more than one rank above what is known; "
                    "it counts once the matches before it are here",
                    record,
                )
                judged.waits_for = account.number
                return judged
        self._write(table, envelope, record, moved, accounts)
        table.hold(record.match, record.name)
        self.changed = True
        return _Judged(RecordAnswer(Verdict.ACCEPTED, None, record.match), gained=moved.receiver)

    def _accounts(self, numbers: dict[str, None]) -> dict[str, Account]:
        return look_up(self.connection, numbers)

    def _check_board(self, record: Record) -> str | None:
        """The rules version of the record's board, None if it is not settled; raises if it is another."""
        rules = self.connection.execute(select(boards.c.rules).where(boards.c.game == record.game)).scalar()
        if rules is not None and rules != record.rules:
            raise RecordError(f"rules: this board counts by {rules}, and by nothing else")
        return rules

    def _settle_board(self, record: Record) -> None:
        """A board takes one rules version: that of the first record that counts."""
        if self._check_board(record) is None:
            self.connection.execute(boards.insert().values(game=record.game, rules=record.rules))

    def _write(
        self, table: _Table, envelope: Envelope, record: Record, moved: Moves, accounts: dict[str, Account]
    ) -> None:
        ids = {
            number: make_account(self.connection, number, self.now_s) if account.id is None else account.id
            for number, account in accounts.items()
        }
        winner = record.seats[winner_place(record)]
        receiver = ids.get(moved.receiver or "")
        story = replay(record)
        self._settle_board(record)
        match: int = self.connection.execute(
            matches.insert()
            .values(
                match=record.match,
                table_id=table.id,
                table_name=record.name,
                game=record.game,
                rules=record.rules,
                rated=record.rated,
                receiver=receiver,
                winner=ids.get(winner.player or ""),
                winner_kind=winner.kind,
                winner_seat=winner.seat,
                ended_by=record.by,
                won_with=story.won_with.value if story.won_with else None,
                won_count=story.won_count,
                rounds=len(record.rounds),
                wall_s=record.t.wall_s,
                trust=record.t.trust,
                received_s=self.now_s,
                record_hash=record_hash(envelope.record),
            )
            .returning(matches.c.id)
        ).scalar_one()
        kept, signature = self._without_erased(envelope, accounts.values())
        self.connection.execute(records.insert().values(match=match, record=kept, signature=signature))
        self.connection.execute(
            entries.insert(),
            [
                {
                    "match": match,
                    "place": place,
                    "seat": each.seat,
                    "kind": each.kind,
                    "player": ids.get(each.player or ""),
                    "stake": each.stake,
                    "stale": _is_stale(each.stake, accounts.get(each.player or ""), record.rated),
                }
                for place, each in enumerate(record.seats)
            ],
        )
        if moved.lost:
            award = record.rules == AWARD
            self.connection.execute(
                transfers.insert(),
                [
                    {
                        "match": match,
                        "rules": record.rules,
                        "stake_of": ids[lost.player],
                        "from_player": None if award else ids[lost.player],
                        "to_player": receiver,
                        "amount": lost.amount,
                    }
                    for lost in moved.lost
                ],
            )
        if record.rated:
            deltas = {ids[each.player]: each.delta for each in record.seats if each.player is not None}
            move(self.connection, deltas, receiver)
        self.connection.execute(
            set_aside.delete().where(
                set_aside.c.table_id == table.id,
                set_aside.c.record_hash == record_hash(envelope.record),
            )
        )

    def _without_erased(self, envelope: Envelope, accounts: Iterable[Account]) -> tuple[bytes, bytes]:
        """Record and signature as they are kept: an identity that was erased does not come back with them."""
        erased = {each.id: each.number for each in accounts if each.erased}
        if not erased:
            return envelope.record, envelope.signature
        rows = self.connection.execute(select(players.c.id, players.c.number).where(players.c.id.in_(erased)))
        return scrubbed(envelope.record, {erased[row.id]: row.number for row in rows}), NO_SIGNATURE

    def _set_aside(self, table: _Table, envelope: Envelope, record: Record | None, judged: _Judged) -> bool:
        """Keep what does not count; False if there is too much of that from this table."""
        signed = record_hash(envelope.record)
        mine = set_aside.c.table_id == table.id
        answer = judged.answer
        told = {
            "status": answer.verdict.value,
            "reason": answer.reason or "",
            "match": answer.match,
            "waits_for": judged.waits_for,
        }
        there = self.connection.execute(
            select(set_aside.c.id).where(mine, set_aside.c.record_hash == signed)
        ).scalar()
        if there is not None:
            self.connection.execute(set_aside.update().where(set_aside.c.id == there).values(told))
            return True
        kept = self.connection.execute(select(func.count()).select_from(set_aside).where(mine)).scalar_one()
        if kept >= MOST_SET_ASIDE:
            log.warning("%s: more than %d records set aside; no more are kept", table.name, MOST_SET_ASIDE)
            return False
        self.changed = True
        kept_record, signature = envelope.record, envelope.signature
        if judged.waits_for is None and record is not None:
            accounts = self._accounts(dict.fromkeys(each.player for each in record.seats if each.player))
            kept_record, signature = self._without_erased(envelope, accounts.values())
        self.connection.execute(
            set_aside.insert().values(
                table_id=table.id,
                record=kept_record,
                signature=signature,
                record_hash=signed,
                received_s=self.now_s,
                **told,
            )
        )
        return True

    def _look_again(self, gained: set[str], envelopes: Any, judged: list[_Judged]) -> None:
        """Judge the records anew that waited for these players to have gained, until nothing changes."""
        here = {
            (each.key_id, record_hash(each.record)): place
            for place, each in reversed(list(enumerate(envelopes)))
            if isinstance(each, Envelope)
        }
        while gained:
            rows = self.connection.execute(
                select(set_aside, tables.c.key_id)
                .join(tables, tables.c.id == set_aside.c.table_id)
                .where(set_aside.c.waits_for.in_(gained))
                .order_by(set_aside.c.id)
            ).all()
            gained = set()
            for row in rows:
                envelope = Envelope(row.key_id, row.record, row.signature)
                again = self._signed(self._table(row.table_id), envelope)
                if again.gained:
                    gained.add(again.gained)
                place = here.get((row.key_id, row.record_hash))
                if place is not None:
                    judged[place] = again

    def _table(self, table: int) -> _Table:
        if table not in self._by_id:
            self._know(self.connection.execute(select(tables).where(tables.c.id == table)).one())
        return self._by_id[table]


def _is_stale(staked: int, account: Account | None, rated: bool) -> bool:
    """Would the ledger, as it stands now, have asked for another stake? Flagged, and accepted."""
    return rated and account is not None and staked != stake(account.points)


def _rejected(reason: str, record: Record | None = None) -> _Judged:
    cut = reason if len(reason) <= MOST_REASON else reason[: MOST_REASON - 1] + "…"
    return _Judged(RecordAnswer(Verdict.REJECTED, cut, record.match if record else None))
