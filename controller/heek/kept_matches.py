"""A match as it is kept: its events, and the recordings from which they can be replayed anywhere.

A match lies in one recording, or in two or more if the power was cut in it: each start of the daemon begins
one. What the power cut took is the round that it broke off, from the last part that had been written; those
events stand in the journal, and nothing is claimed about them.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from heek.errors import RecordingError
from heek.journal import RecordedPart
from heek.journal.kept import KeptRecords
from heek.photo_finish.words import void_words
from heek.recording import MOST_BYTES, decode, without_identities
from heek.replay import Replayed, replay

EXPORT_VERSION: Final = 1
MOST_EXPORTED: Final = 64 * 1024 * 1024
"""Bytes of a file: the events of MOST_BYTES of play, with room to spare."""


class KeptMatch(msgspec.Struct, frozen=True):
    """One match that is over, with everything in the sitting before it."""

    match: str
    first_seq: int
    """Of its `match_started`."""
    last_seq: int
    """Of its `match_won` or `match_void`."""
    parts: list[RecordedPart]
    lines: list[str]
    """The journal's events from the beginning of the first recording, or of the match, to the match's end and
    what came late for it."""
    lines_from: int
    """The number of the first of these events."""
    void: str | None = None
    """Why an operator of the KI has declared it void (may be empty); None: nobody has, as far as is known."""


class _Exported(msgspec.Struct, frozen=True, tag_field="kind", tag="heek match"):
    version: int
    crc: int
    """Of the match as JSON: a file that was cut or changed on the way shows."""
    match: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event that is not as the journal has it."""

    seq: int
    journal: str | None
    replayed: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a replay showed."""

    compared: int
    """Events that came out and were held against the journal's."""
    of_match: int
    """Those of them that are the match's own."""
    not_kept: int
    """The match's events in the journal whose edges a power cut took."""
    difference: Difference | None
    replays: tuple[Replayed, ...]

    @property
    def same(self) -> bool:
        """Every event that could be replayed is the journal's, byte for byte."""
        return self.difference is None


def find_match(journal: KeptRecords, words: str) -> KeptMatch:
    """The match of that UUID, of a unique beginning of one, or `last`.

    Raises RecordingError if there is none, or more than one, or it is not kept; JournalError.
    """
    ends = journal.match_ends(1 if words == "last" else None)
    if words == "last":
        if not ends:
            raise RecordingError(
                f"{journal.file}: no match is kept that could be replayed; play one to its end first"
            )
        end = ends[0]
    else:
        prefix = words.lower()
        found = [each for each in ends if _match(each.body).startswith(prefix)]
        if len({_match(each.body) for each in found}) > 1:
            raise _ambiguous(journal, words, [_match(each.body) for each in found])
        if not found:
            raise _not_there(journal, words, prefix)
        end = found[0]
    match = _match(end.body)
    start = journal.match_start(end.seq)
    if start is None or _match(start.body) != match:
        raise RecordingError(
            f"match {match} {_DAMAGED}: its match_started is missing; see heek journal verify"
        )
    # Edges of the match can be delivered after its end; what the next match has is not its business.
    following = journal.next_match_start(end.seq)
    until = journal.last_seq() if following is None else following - 1
    parts = _without_identities(journal.recorded_parts(start.seq, end.seq, until), journal.erased())
    if not parts:
        raise _given_up(match)
    lines_from = min(parts[0].recording, start.seq)
    until = min(until, max(end.seq, parts[-1].last_seq))
    entries = list(journal.events(lines_from - 1, until - lines_from + 1))
    lines = [entry.body for entry in entries]
    kept = KeptMatch(match, start.seq, end.seq, parts, lines, lines_from, journal.voids().get(match))
    if not _from_its_beginning(kept):
        raise _given_up(match)
    return kept


def _without_identities(parts: list[RecordedPart], erased: Mapping[str, str]) -> list[RecordedPart]:
    """The recordings without the identities that the KI has erased.

    One that is damaged or has a hole comes back as it is: whoever replays it says so, and it is not exported.
    """
    if not erased:
        return parts
    without: list[RecordedPart] = []
    for _, group in groupby(parts, key=lambda part: part.recording):
        recording = list(group)
        with contextlib.suppress(RecordingError):
            beginning, inputs = without_identities(
                recording[0].beginning or b"", [part.inputs for part in recording], erased
            )
            recording = [
                replace(part, inputs=block, beginning=beginning if part.beginning else None)
                for part, block in zip(recording, inputs, strict=True)
            ]
        without += recording
    return without


def _from_its_beginning(kept: KeptMatch) -> bool:
    """What comes before the first recording, if anything of the match does, was taken by a power cut."""
    first = kept.parts[0].recording
    return first <= kept.first_seq or _event(_line(kept, first) or "").get("event") == "table_started"


class OverMatch(msgspec.Struct, frozen=True):
    """A match that is over and kept, for a list."""

    match: str
    last_seq: int
    rounds: int | None
    """Revealed ones; None of a void match, whose last event does not say."""
    ending: str
    void: str | None = None
    """Why an operator of the KI has declared it void (may be empty); None: nobody has."""


MOST_LISTED: Final = 200


def kept_matches(journal: KeptRecords, limit: int = MOST_LISTED) -> list[OverMatch]:
    """The matches that are over and kept, newest first; raises JournalError."""
    listed, voids = [], journal.voids()
    for entry in journal.match_ends(limit):
        event = _event(entry.body)
        won = entry.event == "match_won"
        void = voids.get(str(event.get("match", "")))
        ending = (
            void_words(void)
            if void is not None
            else f"won by seat {event.get('seat')}{_with_throw(journal, entry.seq, event)}"
            if won
            else f"void ({event.get('reason')})"
        )
        rounds = event.get("rounds")
        listed.append(
            OverMatch(
                str(event.get("match", "")),
                entry.seq,
                rounds if isinstance(rounds, int) else None,
                ending,
                void,
            )
        )
    return listed


_NEAR: Final = 16
"""Events before a `match_won` among which the round that won it is looked for: it stands right before."""


def _with_throw(journal: KeptRecords, seq: int, won: dict[str, Any]) -> str:
    """` with pen`: what the winner of a match threw in its last round, if that is what won it."""
    for entry in reversed(list(journal.events(max(seq - 1 - _NEAR, 0), min(_NEAR, seq - 1)))):
        if entry.event != "round_revealed":
            continue
        shown = _event(entry.body)
        throws, winners = shown.get("throws"), shown.get("winners")
        if (
            shown.get("match") != won.get("match")
            or not isinstance(throws, dict)
            or winners != [won.get("seat")]
        ):
            return ""
        throw = throws.get(str(won.get("seat")))
        return f" with {throw}" if isinstance(throw, str) else ""
    return ""


_DAMAGED: Final = "cannot be replayed"


def _not_there(journal: KeptRecords, words: str, prefix: str) -> RecordingError:
    """Why a match is not among those that can be replayed."""
    known = [_match(each.body) for each in journal.match_events(prefix)]
    if len(set(known)) > 1:
        return _ambiguous(journal, words, known)
    if not known or not prefix:
        return RecordingError(
            f"{journal.file}: there is no match {words!r}; heek photofinish lists those that are kept"
        )
    start = journal.match_events(known[0])[0]
    ended = any(_match(each.body) == known[0] for each in journal.match_ends())
    newest = journal.match_start(journal.last_seq())
    if not ended and newest is not None and newest.seq == start.seq and not _has_ended(journal, start.seq):
        return RecordingError(f"match {known[0]} is not over; what is pressed in it is told when it is")
    return _given_up(known[0])


def _has_ended(journal: KeptRecords, seq: int) -> bool:
    return any(each.event in ("match_won", "match_void") for each in journal.events(seq))


def _given_up(match: str) -> RecordingError:
    return RecordingError(
        f"match {match}: its edges are not kept any more, or never were; its events stand in the journal"
    )


def _ambiguous(journal: KeptRecords, words: str, found: Sequence[str]) -> RecordingError:
    some = ", ".join(sorted(set(found))[:3])
    return RecordingError(
        f"{journal.file}: {len(set(found))} matches begin with {words!r} ({some} ...); write more of it"
    )


def replay_match(kept: KeptMatch) -> list[Replayed]:
    """What comes of a match's recordings; raises RecordingError if they cannot be replayed."""
    return [_replay(kept, parts) for parts in _by_recording(kept)]


def check_match(kept: KeptMatch) -> Verdict:
    """Replay a match and hold every event against the journal's; raises RecordingError if it cannot be."""
    groups = _by_recording(kept)
    replays = [_replay(kept, parts) for parts in groups]
    compared = of_match = 0
    difference: Difference | None = None
    for parts, replayed in zip(groups, replays, strict=True):
        until = min(parts[-1].last_seq, kept.lines_from + len(kept.lines) - 1)
        lines = replayed.lines()[: until - replayed.first_seq + 1]
        for seq in range(replayed.first_seq, until + 1):
            place = seq - replayed.first_seq
            line = lines[place] if place < len(lines) else None
            journals = _line(kept, seq)
            if line != journals:
                difference = difference or Difference(seq, journals, line)
                break
            compared += 1
            of_match += kept.first_seq <= seq <= kept.last_seq
        if difference is not None:
            break
    missing = kept.last_seq - kept.first_seq + 1 - of_match
    return Verdict(compared, of_match, missing if difference is None else 0, difference, tuple(replays))


def recording_faults(journal: KeptRecords) -> list[str]:
    """Every recording that is not as it was written, one line each; raises JournalError.

    A part that is missing, by its numbers, is none: the disk did not take it, or a power cut took it.
    """
    faults = []
    for recording, group in groupby(journal.all_parts(), key=lambda part: part.recording):
        parts = list(group)
        beginning = parts[0].beginning
        if beginning is None:
            continue
        hole = next(
            (
                number
                for number, (before, part) in enumerate(pairwise(parts), start=1)
                if part.after_seq != before.last_seq
            ),
            len(parts),
        )
        try:
            if decode(beginning, [part.inputs for part in parts[:hole]]).beginning.first_seq != recording:
                raise RecordingError("is damaged: its beginning is another recording's")
        except RecordingError as error:
            faults.append(f"recording from event {recording} on: {error}")
    return faults


def _line(kept: KeptMatch, seq: int) -> str | None:
    place = seq - kept.lines_from
    return kept.lines[place] if 0 <= place < len(kept.lines) else None


def _by_recording(kept: KeptMatch) -> list[list[RecordedPart]]:
    """The parts of each recording; raises RecordingError where one is missing that no power cut explains."""
    groups: list[list[RecordedPart]] = []
    for part in kept.parts:
        if groups and groups[-1][-1].recording == part.recording:
            before = groups[-1][-1].last_seq
            if part.after_seq != before:
                raise _hole(kept, before + 1)
            groups[-1].append(part)
        else:
            if part.after_seq != part.recording - 1 or part.beginning is None:
                raise _hole(kept, part.recording)
            groups.append([part])
    if not groups or groups[-1][-1].last_seq < kept.last_seq:
        raise _hole(kept, groups[-1][-1].last_seq + 1 if groups else kept.first_seq)
    return groups


def _hole(kept: KeptMatch, seq: int) -> RecordingError:
    return RecordingError(
        f"match {kept.match} {_DAMAGED}: what was pressed from event {seq} on was not saved "
        "(the disk did not take it, or the power was cut just then)"
    )


def _replay(kept: KeptMatch, parts: list[RecordedPart]) -> Replayed:
    try:
        recording = decode(parts[0].beginning or b"", [part.inputs for part in parts])
        if recording.broken_off:
            covered = parts[-2].last_seq if len(parts) > 1 else parts[0].after_seq
            if covered < kept.last_seq:
                raise RecordingError(
                    f"is kept up to event {covered} alone: more was pressed without a pause than "
                    f"{MOST_BYTES // 1024 // 1024} MiB hold"
                )
        if recording.beginning.first_seq != parts[0].recording:
            raise RecordingError("is damaged: its beginning is another recording's")
        return replay(recording)
    except RecordingError as error:
        raise RecordingError(f"match {kept.match}: the recording {error}") from error


def export_match(kept: KeptMatch, file: Path) -> int:
    """Write a match into a new file that its owner alone may read, whole or not at all; its size in bytes.

    Raises OSError: FileExistsError if anything is there already, be it a link to nothing.
    """
    body = msgspec.json.encode(kept)
    text = msgspec.json.encode(_Exported(EXPORT_VERSION, zlib.crc32(body), msgspec.Raw(body))) + b"\n"
    # Not written beside and renamed: that would take the place of whatever is there, a pipe or a device, too.
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as writing:
            writing.write(text)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return len(text)


def import_match(file: Path) -> KeptMatch:
    """Read what `export_match` wrote; raises RecordingError if it did not."""
    try:
        with file.open("rb") as source:
            text = source.read(MOST_EXPORTED + 1)
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read ({error.strerror or error})") from None
    if len(text) > MOST_EXPORTED:
        raise RecordingError(f"{file}: is larger than any match that heek exports")
    try:
        exported = msgspec.json.decode(text, type=_Exported)
        if exported.version != EXPORT_VERSION:
            raise RecordingError(
                f"{file}: was exported by another version of heek (layout {exported.version}, this one reads "
                f"{EXPORT_VERSION}); use that version"
            )
        if zlib.crc32(bytes(exported.match)) != exported.crc:
            raise RecordingError(f"{file}: is damaged (its checksum is another); export the match again")
        kept = msgspec.json.decode(bytes(exported.match), type=KeptMatch)
        if not _fits_together(kept):
            raise RecordingError(
                f"{file}: is no match that heek exports (its numbers, events and recordings do not fit "
                "together); export the match again"
            )
        return kept
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(
            f"{file}: is no match that heek replay --export wrote, or is cut ({error})"
        ) from None


def _fits_together(kept: KeptMatch) -> bool:
    """Whether the events go from the match's start to its end, and the recordings over all of them.

    Only then does it say something about the match that every event which was replayed is the same.
    """
    if not kept.parts or not 0 < kept.first_seq < kept.last_seq:
        return False
    first, last = _event(_line(kept, kept.first_seq) or ""), _event(_line(kept, kept.last_seq) or "")
    return (
        kept.lines_from == min(kept.parts[0].recording, kept.first_seq) > 0
        and all(_event(line).get("seq") == seq for seq, line in enumerate(kept.lines, start=kept.lines_from))
        and (first.get("event"), first.get("match")) == ("match_started", kept.match)
        and last.get("event") in ("match_won", "match_void")
        and last.get("match") == kept.match
        and kept.parts[-1].recording <= kept.last_seq <= kept.parts[-1].last_seq
        and _from_its_beginning(kept)
    )


def _match(body: str) -> str:
    """The match that an event is about; empty if its line is damaged."""
    return str(_event(body).get("match", ""))


def _event(body: str) -> dict[str, Any]:
    try:
        event: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}
