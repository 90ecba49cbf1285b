"""A damaged journal is set aside whole, and a new one goes on with what can be read, whenever it is cut."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heek.errors import JournalDamaged, JournalError
from heek.journal import Journal, News, Salvaged, Synced, open_journal, open_or_salvage, read_journal
from heek.journal.carving import carve
from heek.journal.schema import APPLICATION_ID, FILE_NAME, MARKER_NAME, VERSION
from heek.journal.set_aside import BEGUN, MOVING, REPORT, SALVAGING, damaged_folders, unfinished
from tests.journal.damage import (
    DAMAGES,
    KEY,
    MATCHES,
    PIN,
    STATE,
    WAITING,
    emptied_with_log,
    kept_files,
    leaf,
    match,
    overwrite,
    root,
    season,
    told,
    without_log,
)
from tests.journal.scripts import batch, in_child
from tests.journal.test_kill import run_under_shim


def outcome(journal: Journal) -> tuple[object, ...]:
    """What matters of a journal."""
    return (
        [(each.match, each.record) for each in journal.results()],
        journal.waiting(),
        [(each.match, each.cbor, each.key) for each in journal.unsent(1000, 1 << 30)],
        journal.told_points(),
        journal.ki_notes(KEY),
        journal.player_deltas(),
        None if (kept := journal.snapshot()) is None else kept[0],
    )


@pytest.mark.fault("F046")
@pytest.mark.parametrize("name", DAMAGES)
def test_every_kind_of_damage(folder: Path, name: str) -> None:
    """The table starts; the damaged files lie aside byte for byte; what can be read came over, sound."""
    damage, share = DAMAGES[name]
    season(folder)
    damage(folder)
    before = kept_files(folder)
    with pytest.raises(JournalDamaged, match="nothing was changed or deleted"):
        open_journal(folder)
    assert kept_files(folder) == before
    with open_or_salvage(folder) as journal:
        salvaged = journal.salvaged
        assert salvaged is not None
        assert (salvaged.folder, salvaged.results) == ("damaged-1", len(list(journal.results())))
        assert share * MATCHES <= salvaged.results <= MATCHES
        assert salvaged.waiting == journal.waiting() >= min(WAITING, salvaged.results) * (share == 1.0)
        assert journal.verify() == []
        # And it goes on: numbers, results, answers.
        first = journal.last_seq() + 1
        journal.append(batch(first, 2, 1, sync=True, match="m-new"))
        assert journal.verify() == []
        assert journal.pin() == PIN
    aside = folder / "damaged-1"
    assert kept_files(aside) == before
    assert not {MOVING, SALVAGING, BEGUN} & {each.name for each in aside.iterdir()}
    assert (aside / REPORT).read_text().splitlines()[-1] == salvaged.sentence
    with open_or_salvage(folder) as journal:
        assert journal.salvaged is None
        assert [each.match for each in journal.results()][-1] == "m-new"
    assert damaged_folders(folder) == [aside]


def test_what_comes_over_of_a_page_lost_among_the_events(folder: Path) -> None:
    """Results with every answer, bytes for the KI, points and the state are the same as before."""
    season(folder)
    with open_journal(folder) as journal:
        before = outcome(journal)
        rows = "SELECT match, state, reason FROM outbox ORDER BY position"
        places = journal._db.execute(rows).fetchall()
    overwrite(folder, leaf(folder, "events"))
    with open_or_salvage(folder) as journal:
        assert outcome(journal) == before
        assert journal._db.execute(rows).fetchall() == places
        assert journal.salvaged == Salvaged("damaged-1", MATCHES, WAITING, 0, MATCHES, True)
        notes = journal.ki_notes(KEY)
        assert (notes.pin, notes.news, notes.settled[0]) == (PIN, 2, 3)
        assert journal.voids() == {match(1): "wrong seat"}
        assert journal.last_seq() == 10 * MATCHES + 1
        assert journal.snapshot() is not None
    assert told(folder)["event"] == "journal_salvaged"


def test_a_schema_whose_text_is_damaged(folder: Path) -> None:
    """A byte in it that is no UTF-8 is damage like any other, also to who only closes the file."""
    season(folder, matches=30, waiting=10)
    without_log(folder)
    content = bytearray((folder / FILE_NAME).read_bytes())
    content[1704] = 0x80
    (folder / FILE_NAME).write_bytes(content)
    with open_or_salvage(folder) as journal:
        assert journal.salvaged is not None
        assert journal.salvaged.results == 30


def test_lost_results_are_counted(folder: Path) -> None:
    """A page of the results: exactly those on it are missing, and the report says how many."""
    season(folder)
    without_log(folder)
    overwrite(folder, leaf(folder, "results"))
    with open_or_salvage(folder) as journal:
        salvaged = journal.salvaged
        assert salvaged is not None
        there = {each.match for each in journal.results()}
        assert 0 < salvaged.missing == MATCHES - len(there)
        assert f"{salvaged.missing} result" in salvaged.sentence
        numbers = [int(each.rsplit("-", 1)[1]) for each in there]
        lost = sorted(set(range(1, MATCHES + 1)) - set(numbers))
        assert lost == list(range(lost[0], lost[-1] + 1))


def test_an_emptied_file_whose_log_has_it_all(folder: Path) -> None:
    """A young journal lost its file and kept its log: every result comes out of the log."""
    season(folder)
    emptied_with_log(folder)
    log = (folder / f"{FILE_NAME}-wal").read_bytes()
    with open_or_salvage(folder) as journal:
        assert [each.match for each in journal.results()] == [match(number) for number in range(1, 31)]
        assert [each.match for each in journal.unsent(100, 1 << 30)] == [match(n) for n in range(21, 31)]
        assert journal.told_points() == {"00000001": 104, "00000002": 96}
        assert journal.verify() == []
    assert (folder / "damaged-1" / f"{FILE_NAME}-wal").read_bytes() == log


def test_a_result_whose_answer_is_lost_is_offered_again(folder: Path) -> None:
    """Without the outbox all results wait: twice told does no harm."""
    season(folder)
    DAMAGES["the outbox' root"][0](folder)
    with open_or_salvage(folder) as journal:
        assert journal.waiting() >= WAITING
        assert journal.waiting() + sum(1 for _ in journal.results()) <= 2 * MATCHES
        offered = {each.match for each in journal.unsent(1000, 1 << 30)}
        assert {match(number) for number in range(MATCHES - WAITING + 1, MATCHES + 1)} <= offered


@pytest.mark.parametrize("table", ["news", "voids", "names"])
def test_what_the_ki_told_and_cannot_be_read_is_to_be_told_again(folder: Path, table: str) -> None:
    """The pin stays, and the KI is asked for its news from the first one on."""
    season(folder)
    without_log(folder)
    overwrite(folder, root(folder, table))
    with open_or_salvage(folder) as journal:
        notes = journal.ki_notes(KEY)
        assert (notes.pin, notes.news, notes.mark, notes.settled[0]) == (PIN, 0, bytes(8), 3)
        again = (
            News(1, "voided", "{}", match(1), "wrong seat"),
            News(2, "named", "{}", "00000001", "Shorah"),
        )
        journal.sync(Synced({}, again, notes.settled), KEY)
        assert journal.voids() == {match(1): "wrong seat"}
        assert journal.names() == {"00000001": "Shorah"}


def test_what_is_no_damage_is_not_set_aside(folder: Path) -> None:
    """A newer version's file, another program's, and one that is locked: refused as ever, and left there."""
    season(folder, matches=2, waiting=1)
    without_log(folder)
    file = folder / FILE_NAME
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(JournalError, match="another program has it open"):
        open_or_salvage(folder)
    holder.execute("ROLLBACK")
    holder.close()
    for pragma, words in (
        (f"user_version = {VERSION + 1}", "newer heek"),
        ("application_id = 7", "another program's database"),
    ):
        db = sqlite3.connect(file)
        db.execute(f"PRAGMA {pragma}")
        db.close()
        with pytest.raises(JournalError, match=words) as caught:
            open_or_salvage(folder)
        assert not isinstance(caught.value, JournalDamaged)
    db = sqlite3.connect(file)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.close()
    with open_or_salvage(folder) as journal:
        assert journal.salvaged is None
    assert damaged_folders(folder) == []


def test_damage_twice_makes_two_folders(folder: Path) -> None:
    """The second one lies beside the first, and neither is touched any more."""
    season(folder, matches=4, waiting=2)
    for number in (1, 2):
        without_log(folder)
        (folder / FILE_NAME).write_bytes(b"x" * 5000 * number)
        with open_or_salvage(folder) as journal:
            assert journal.salvaged is not None
            assert journal.salvaged.folder == f"damaged-{number}"
    assert [(each / FILE_NAME).stat().st_size for each in damaged_folders(folder)] == [5000, 10000]


def test_without_room_nothing_is_lost(folder: Path) -> None:
    """No byte can be written: all is there, the words name the folder, and the next start goes on."""
    season(folder, matches=4, waiting=2)
    without_log(folder)
    (folder / FILE_NAME).write_bytes(b"x" * 5000)
    before = kept_files(folder)

    def no_room() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        with pytest.raises(JournalError, match="make room on the card"):
            open_or_salvage(folder)

    assert in_child(no_room) == 0
    there = kept_files(folder) | kept_files(folder / "damaged-1")
    assert there == before
    with open_or_salvage(folder) as journal:
        assert journal.salvaged is not None
        assert kept_files(folder / "damaged-1") == before


def test_an_older_program_does_not_begin_in_the_middle(folder: Path) -> None:
    """While setting aside is unfinished nobody else makes a journal in its place."""
    season(folder, matches=4, waiting=2)
    without_log(folder)
    aside = folder / "damaged-1"
    aside.mkdir()
    (aside / SALVAGING).write_text("why\n")
    for name in list(kept_files(folder)):
        (folder / name).rename(aside / name)
    with pytest.raises(JournalDamaged, match=r"was being set aside in damaged-1; start the table"):
        open_journal(folder)
    assert not (folder / FILE_NAME).exists()
    with open_or_salvage(folder) as journal:
        assert journal.waiting() == 2
    assert unfinished(folder) is None


def test_a_journal_that_somebody_brought_back_is_left_as_it_is(folder: Path) -> None:
    """Between cut and start a copy was put in its place: it is kept, and nothing is brought over."""
    season(folder, matches=4, waiting=2)
    without_log(folder)
    aside = folder / "damaged-1"
    aside.mkdir()
    (aside / SALVAGING).write_text("why\n")
    shutil.copy(folder / FILE_NAME, aside / FILE_NAME)
    with open_or_salvage(folder) as journal:
        assert journal.salvaged is None
        assert journal.last_seq() == 40
    assert "Another journal was put in its place" in (aside / REPORT).read_text()


def test_a_reader_reads_what_was_set_aside(folder: Path) -> None:
    """`heek journal` shows the events in the folder as far as they go."""
    season(folder)
    without_log(folder)
    overwrite(folder, leaf(folder, "results"))
    open_or_salvage(folder).close()
    with read_journal(folder / "damaged-1") as reader:
        assert len(list(reader.events())) == 10 * MATCHES


# Cuts

CUT_MATCHES = 30


def damaged_season(folder: Path) -> None:
    """Damaged in a page of the results, with a log that has not been carried over."""
    season(folder, matches=CUT_MATCHES, waiting=10)
    without_log(folder)
    overwrite(folder, leaf(folder, "results"))


def whole(folder: Path, done: tuple[object, ...], before: dict[str, bytes]) -> None:
    """After a cut the next start comes to the same end as one that was not cut."""
    with open_or_salvage(folder) as journal:
        assert outcome(journal) == done
        assert journal.verify() == []
        assert journal.last_seq() == 10 * CUT_MATCHES + 1
    aside = folder / "damaged-1"
    assert damaged_folders(folder) == [aside]
    assert kept_files(aside) == before
    assert unfinished(folder) is None
    assert not (aside / BEGUN).exists()
    assert (aside / REPORT).exists()
    assert (folder / MARKER_NAME).exists()


def uncut(folder: Path) -> tuple[tuple[object, ...], dict[str, bytes], Path]:
    """What comes out without a cut, the files before, and a copy of them to begin from."""
    damaged_season(folder)
    before = kept_files(folder)
    model = folder.with_name("model")
    shutil.copytree(folder, model)
    with open_or_salvage(folder) as journal:
        done = outcome(journal)
    return done, before, model


def test_killed_at_each_statement_of_setting_aside(folder: Path) -> None:
    """A process that dies before its n-th SQL statement, for every n, is gone on with by the next."""
    done, before, model = uncut(folder)
    real = sqlite3.connect
    left = 0

    def trace(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(*args: object, **options: object) -> sqlite3.Connection:
        db = real(*args, **options)  # type: ignore[arg-type]
        db.set_trace_callback(trace)
        return db

    def run() -> None:
        sqlite3.connect = connect  # type: ignore[assignment]
        open_or_salvage(folder).close()

    for nth in range(1, 5000, 3):
        shutil.rmtree(folder)
        shutil.copytree(model, folder)
        left = nth
        status = in_child(run)
        whole(folder, done, before)
        if not os.WIFSIGNALED(status):
            break
    assert nth > 50


@pytest.mark.parametrize("torn", [False, True], ids=["before the call", "half way through a write"])
def test_killed_at_each_system_call_of_setting_aside(folder: Path, tmp_path: Path, torn: bool) -> None:
    """A process that dies at its n-th write, sync, rename or removal is gone on with by the next."""
    report = run_under_shim(
        tmp_path, "tests.journal.test_set_aside", str(folder), str(int(torn)), timeout_s=120
    )
    assert report["calls"] > (15 if torn else 30)


def die_at_each_call(folder: Path, torn: bool) -> None:
    """The other end of the test above: runs under the shim, prints what it saw."""
    import ctypes

    arm: Callable[[int, int], None] = ctypes.CDLL(None).heek_die_at
    done, before, model = uncut(folder)
    nth = 0
    while True:
        nth += 1
        shutil.rmtree(folder)
        shutil.copytree(model, folder)

        def run(nth: int = nth) -> None:
            arm(nth, int(torn))
            open_or_salvage(folder).close()
            arm(0, 0)

        status = in_child(run)
        whole(folder, done, before)
        if not os.WIFSIGNALED(status):
            break
    print(json.dumps({"calls": nth}))


# Any damage at all


@given(st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_overwritten_anywhere(folder: Path, data: st.DataObject) -> None:
    """Whatever is written over whatever part, the start gives a sound journal with nothing made up in it."""
    shutil.rmtree(folder, ignore_errors=True)
    season(folder, matches=30, waiting=10)
    if data.draw(st.booleans()):
        without_log(folder)
    with read_journal(folder) as reader:
        true = {each.match: each.record for each in reader.results()}
    for name in (FILE_NAME, f"{FILE_NAME}-wal"):
        if not (folder / name).exists():
            continue
        content = bytearray((folder / name).read_bytes())
        if not content:
            continue
        for _ in range(data.draw(st.integers(0, 3))):
            at = data.draw(st.integers(0, len(content) - 1))
            rubbish = data.draw(st.one_of(st.binary(min_size=1, max_size=64), st.just(b"\0" * 4096)))
            content[at : at + len(rubbish)] = rubbish[: len(content) - at]
        (folder / name).write_bytes(content)
    try:
        journal = open_or_salvage(folder)
    except JournalError as error:
        # The place where the file says whose it is, or of which version, was hit.
        assert not isinstance(error, JournalDamaged)  # noqa: PT017
        return
    with journal:
        if journal.salvaged is not None:
            for each in journal.results():
                assert each.match in true
            assert journal.verify() == []
            assert journal.snapshot() is None or journal.snapshot()[0] == STATE  # type: ignore[index]


@given(st.binary(max_size=20_000), st.binary(max_size=20_000))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_carving_survives_anything(folder: Path, content: bytes, log: bytes) -> None:
    """Any bytes give rows or none, never an error."""
    folder.mkdir(exist_ok=True)
    (folder / "file").write_bytes(content)
    (folder / "log").write_bytes(log)
    for rowid, values in carve(folder / "file", folder / "log"):
        assert isinstance(rowid, int)
        assert isinstance(values, tuple)


if __name__ == "__main__":
    die_at_each_call(Path(sys.argv[1]), sys.argv[2] == "1")
