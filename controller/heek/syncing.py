"""Asks the KI how things stand, and keeps what that comes to in one transaction of the journal.

Each asking compares the digests of the present key and of those that the table has lost since
(`heek.ki.sync`, `heek.ki.settlement`). What a KI has lost is offered again; what was signed by a lost key
that the KI does not know either is signed anew.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from heek.clock import MILLISECOND
from heek.errors import RecordError
from heek.journal import NOBODYS, Answered, FormerKey, Journal, KiNotes, Result, Ruling, SettledKey, Synced
from heek.ki.asking import Asking
from heek.ki.numbers import is_ki_number
from heek.ki.settlement import MOST_WAITING, OfferPace, Settlement, compare
from heek.ki.sync import MOST_FORMERS, MOST_PLAYERS, Holds, SyncAnswer, SyncQuestion
from heek.reporter import Reporter
from heek.told_news import kept_news

log: Final = logging.getLogger("heek")

MOST_BOUND: Final = 10
"""Results that are bound anew in one go: a hundredth of a second on a small computer."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What came of one asking; it is in the journal by then."""

    waiting: int
    """Results that the KI has not answered for."""
    points: Mapping[str, int]
    """What players hold at the KI."""
    deltas: Mapping[str, int]
    """Sums of our own deltas that are in the points, or count no more."""
    more: bool
    """Whether there is more to ask, or to send, at once."""
    unknown: tuple[bytes, ...]
    """Key ids that the table had before, and of which the KI knows nothing: `sign_anew`."""
    rulings: tuple[Ruling, ...]
    """What is new of the table's matches: void, or counted again."""


class Syncing:
    """The askings of one start of the daemon; on the table's loop, one after the other."""

    def __init__(self, who: Reporter, asking: Asking) -> None:
        self._who = who
        self._asking = asking
        self._pace = OfferPace()
        self._n = 0
        self._heard = b""
        """The mark of the KI's last answer."""

    async def ask(self, notes: KiNotes) -> Standing:
        """Ask, and keep what is answered; `notes` is what the journal knows just now.

        Raises LinkError if it comes to nothing, Refused if the KI refused, JournalError if the card does not
        take the answer: then nothing of it counts.
        """
        who, now = self._who, self._who.clock.now()
        formers = notes.formers[:MOST_FORMERS]
        keys = [who.key.id, *(each.key for each in formers)]
        recent, waiting = await who.ask_journal(
            lambda journal: (
                journal.recent_players(MOST_PLAYERS),
                {key: journal.unanswered(key, MOST_WAITING + 1) if notes.waiting else [] for key in keys},
            )
        )
        self._n += 1
        # One that is no KI number would have the whole question refused, for good.
        players = filter(is_ki_number, dict.fromkeys([*who.players(), *recent]))
        question = SyncQuestion(
            table=who.key.id,
            name=who.name,
            inc=who.incarnation,
            n=self._n,
            heard=self._heard,
            boot=who.boot.id,
            mono_ms=(who.clock.origin_ns + now) // MILLISECOND,
            holds=notes.holds,
            waiting=notes.waiting,
            news=notes.news,
            mark=notes.mark,
            players=tuple(players)[:MOST_PLAYERS],
            formers=tuple(each.key for each in formers),
        )
        answer = await self._asking.sync(question)
        self._heard = answer.mark
        who.tell_time(answer.now_s, now)
        synced = self._synced(notes, answer, waiting)
        kept = await who.ask_journal(lambda journal: journal.sync(synced, who.key.id))
        offer = synced.offer or any(each.offer for each in synced.formers)
        if offer:
            self._pace.begun(who.clock.now())
            log.warning(
                "the KI holds other matches than it has answered for; all %d are offered again", kept.waiting
            )
        unknown = () if notes.held else tuple(key for key in keys[1:] if answer.formers[key] is None)
        # Only if they went on: a KI that begins at the first one each time is asked with a pause.
        told = synced.news[-1].number if synced.news else 0
        more = offer or bool(unknown) or notes.news < told < answer.newest
        return Standing(kept.waiting, answer.points, kept.deltas, more, unknown, kept.rulings)

    async def sign_anew(self, key: bytes) -> None:
        """Have what is signed by a lost key that the KI does not know either wait under the present one.

        Raises JournalError if the card does not take it.
        """
        who = self._who
        log.warning(
            "the KI does not know the key %s that this table had before; its results are signed anew",
            key.hex(),
        )
        while results := await who.ask_journal(lambda journal: journal.signed_by(key, MOST_BOUND)):
            bound, hopeless = [], []
            for each in results:
                try:
                    bound.append(who.bind(each))
                except RecordError as error:
                    hopeless.append((each, f"the table's own journal: {error}"))
            # Asked for before anything else happens on this loop: the next match goes on from these.
            await who.ask_journal(lambda journal: _keep_bound(journal, bound, hopeless))  # noqa: B023

    def _synced(self, notes: KiNotes, answer: SyncAnswer, waiting: Mapping[bytes, list[str]]) -> Synced:
        key = self._who.key.id
        present = FormerKey(key, notes.holds, notes.settled, notes.offered)
        after = self._compared(notes, present, answer.holds, waiting[key])
        return Synced(
            answer.points,
            tuple(kept_news(each) for each in answer.news),
            after.settled,
            after.offered,
            after.offer,
            news_anew=answer.after != notes.news,
            formers=tuple(
                self._compared(notes, each, theirs, waiting[each.key])
                for each in notes.formers
                if (theirs := answer.formers.get(each.key)) is not None
            ),
        )

    def _compared(self, notes: KiNotes, ours: FormerKey, theirs: Holds, waiting: list[str]) -> SettledKey:
        before = Settlement(ours.settled, ours.offered)
        after, offer = before, False
        # An offer of what the file has would leave out what was answered for in memory alone.
        if not notes.held:
            ids = [uuid.UUID(each).bytes for each in waiting]
            compared = compare(before, theirs, ours.holds, ids)
            offer = compared.offer and self._pace.may(compared, self._who.clock.now())
            after = before if compared.offer and not offer else compared.after
        return SettledKey(ours.key, after.settled, after.offered, offer)


def _keep_bound(journal: Journal, bound: list[Result], hopeless: list[tuple[Result, str]]) -> None:
    """Write down what was bound anew, and that the rest is no record of anybody's."""
    if bound:
        journal.bind(bound)
    if hopeless:
        journal.acknowledge([Answered(each.match, "rejected", reason) for each, reason in hopeless], {})
        journal.write_cbor([replace(each, key=NOBODYS) for each, _ in hopeless])
