"""`heek replay` and `heek photofinish`: play a kept match again from its edges, and draw its rounds."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heek.cli import FAILED, MISTAKE, OK, machine_output
from heek.cli.journal_place import add_place, journal_of
from heek.errors import RecordingError

if TYPE_CHECKING:
    from heek.kept_matches import KeptMatch, Verdict

PATIENT: Final = 10
_MATCH: Final = "a match's UUID, the beginning of one, `last`, or a file that --export wrote"


def add_to(commands: Any) -> None:
    """Add `replay` and `photofinish` to the commands."""
    where = argparse.ArgumentParser(add_help=False)
    add_place(where).add_argument("--journal", type=Path, metavar="FILE", help="the journal's file")
    where.add_argument("--json", action="store_true", help="for programs")
    again = commands.add_parser(
        "replay",
        parents=[where],
        help="play a match again from its edges, and compare with its events",
        description="Runs the edges of a match through the rules and holds every event against the "
        "journal's; exits with 1 if one differs.",
    )
    again.add_argument("match", metavar="MATCH", help=_MATCH)
    again.add_argument(
        "--export",
        type=_new_file,
        metavar="FILE",
        help="write the match into a new file, to be replayed elsewhere; it holds what everybody pressed, in "
        "the matches before it in the same sitting, too, so you alone may read it",
    )
    again.add_argument("--events", action="store_true", help="print the events that came out, one a line")
    again.set_defaults(run=run_replay)
    finish = commands.add_parser(
        "photofinish",
        parents=[where],
        help="draw the time line of a round: who pressed when, what counted and why",
    )
    finish.add_argument("match", metavar="MATCH", nargs="?", help=f"{_MATCH}; without one: which there are")
    finish.add_argument("round", metavar="ROUND", nargs="?", type=_round, help="without one: which there are")
    # For the page: a table that plays in the same machine goes first.
    finish.add_argument("--patient", action="store_true", help=argparse.SUPPRESS)
    finish.set_defaults(run=run_photo_finish)


def _new_file(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("'' names no file")
    return Path(text)


def _round(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no round's number; rounds count from 1")
    return number


def _find(arguments: argparse.Namespace) -> KeptMatch:
    """The match that was asked for, out of a journal or a file."""
    from heek.journal import read_journal
    from heek.kept_matches import find_match, import_match

    named = Path(arguments.match)
    in_journal = arguments.config or arguments.state_dir or arguments.journal
    if not in_journal and (named.suffix or named.name != arguments.match) and not named.is_dir():
        return import_match(named)
    with read_journal(journal_of(arguments)) as journal:
        return find_match(journal, arguments.match)


def run_replay(arguments: argparse.Namespace) -> int:
    """Replay a match; 1 if an event differs, or if it cannot be replayed."""
    from heek.kept_matches import check_match, export_match

    kept = _find(arguments)
    verdict = check_match(kept)
    if arguments.events or arguments.json:
        machine_output()
    if arguments.events:
        for line in _events(kept, verdict):
            print(line)
    if arguments.json:
        _print_json(_verdict_json(kept, verdict))
    elif not arguments.events or not verdict.same:
        _tell(kept, verdict, sys.stderr if arguments.events else sys.stdout)
    if arguments.export is not None:
        try:
            size = export_match(kept, arguments.export)
        except FileExistsError:
            raise RecordingError(
                f"{arguments.export}: is there already, and is left as it is; name a file that is not"
            ) from None
        except OSError as error:
            raise RecordingError(
                f"{arguments.export}: cannot be written ({error.strerror or error}); name another file"
            ) from None
        print(
            f"{arguments.export}: {size} bytes; it holds what everybody pressed in this sitting",
            file=sys.stderr,
        )
    return OK if verdict.same else FAILED


def _events(kept: KeptMatch, verdict: Verdict) -> list[str]:
    return [
        line
        for replayed in verdict.replays
        for seq, line in enumerate(replayed.lines(), start=replayed.first_seq)
        if kept.first_seq <= seq <= kept.last_seq
    ]


def _tell(kept: KeptMatch, verdict: Verdict, to: Any) -> None:
    edges = sum(len(replayed.edges) for replayed in verdict.replays)
    if verdict.difference is not None:
        different = verdict.difference
        print(f"match {kept.match}: event {different.seq} is not what comes of its edges", file=to)
        print(f"  journal:  {different.journal or 'has no such event'}", file=to)
        print(f"  replayed: {different.replayed or 'nothing more happens'}", file=to)
        return
    print(
        f"match {kept.match}: {edges} edges give the identical events: {verdict.of_match} of the match, "
        f"{verdict.compared} with those before it in the same sitting",
        file=to,
    )
    if verdict.not_kept:
        print(
            f"  {verdict.not_kept} events of it cannot be replayed: "
            "a power cut took the edges of what it broke off",
            file=to,
        )


def _verdict_json(kept: KeptMatch, verdict: Verdict) -> dict[str, Any]:
    different = verdict.difference
    return {
        "match": kept.match,
        "same": verdict.same,
        "edges": sum(len(replayed.edges) for replayed in verdict.replays),
        "events": verdict.of_match,
        "compared": verdict.compared,
        "not_kept": verdict.not_kept,
        "difference": None
        if different is None
        else {"seq": different.seq, "journal": different.journal, "replayed": different.replayed},
    }


def _print_json(value: object) -> None:
    import msgspec

    print(msgspec.json.encode(value).decode())


def run_photo_finish(arguments: argparse.Namespace) -> int:
    """Draw a round, or say which there are; 1 if the journal tells of the match otherwise."""
    from heek.kept_matches import check_match
    from heek.photo_finish.text import drawable_in, photo_finish_text
    from heek.photo_finish.values import photo_finish, rounds_of
    from heek.photo_finish.words import contradiction_words, round_words, void_words

    if arguments.patient:
        # Not everywhere may a process do even that (systemd/heek.service).
        with contextlib.suppress(OSError):
            os.nice(PATIENT)
    if arguments.match is None:
        return _list_matches(arguments)
    kept = _find(arguments)
    verdict = check_match(kept)
    sittings = [replayed.sitting for replayed in verdict.replays]
    differs = None if verdict.difference is None else verdict.difference.seq
    code = OK if verdict.same else FAILED
    if arguments.json:
        machine_output()
    if differs is not None:
        said = f"{contradiction_words(differs)}; see heek replay {arguments.match}"
        print(said, file=sys.stderr if arguments.json else sys.stdout)
    void = None if kept.void is None else void_words(kept.void)
    if arguments.round is not None:
        finish = photo_finish(kept.match, arguments.round, sittings)
        if arguments.json:
            _print_json(finish)
        else:
            width = shutil.get_terminal_size().columns
            if void is not None:
                print(f"the match is {void}")
            print(photo_finish_text(finish, width=width, plain=not drawable_in(sys.stdout.encoding)))
        return code
    rounds = rounds_of(kept.match, sittings)
    if arguments.json:
        drawn = [photo_finish(kept.match, each.number, sittings) for each in rounds if each.drawable]
        _print_json(
            {
                "match": kept.match,
                "rounds": rounds,
                "finishes": drawn,
                "differs": differs,
                "void": kept.void,
            }
        )
        return code
    print(f"match {kept.match}:{'' if void is None else f' {void}'}")
    for each in rounds:
        lost = "" if each.drawable else "; its edges are lost"
        print(f"  round {each.number}: {round_words(each)}{lost}")
    return code


def _list_matches(arguments: argparse.Namespace) -> int:
    from heek.journal import read_journal
    from heek.kept_matches import kept_matches
    from heek.photo_finish.words import rounds_words

    if arguments.json:
        machine_output()
    with read_journal(journal_of(arguments)) as journal:
        matches = kept_matches(journal)
        if arguments.json:
            _print_json(matches)
            return OK
        if not matches:
            print("no match is kept that could be drawn; play one to its end first")
            return MISTAKE if arguments.round else OK
        for each in matches:
            print(f"{each.match}  {rounds_words(each.rounds):>10}  {each.ending}")
    return OK
