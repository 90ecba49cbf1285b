"""The journal as one daemon uses it: appending, refusing, opening again, and what stops an opening."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heek.errors import BatchRefused, JournalError
from heek.journal import Batch, Result, open_journal, read_journal
from heek.journal.schema import FILE_NAME, MARKER_NAME, VERSION
from tests.journal.scripts import SCRIPT, assert_prefix, batch, entry, in_child, label, result


def fill(folder: Path, count: int = len(SCRIPT)) -> None:
    with open_journal(folder) as journal:
        for one in SCRIPT[:count]:
            journal.append(one)


def refusal(folder: Path) -> str:
    with pytest.raises(JournalError) as caught:
        open_journal(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert str(folder) in text
    return text


def test_a_new_journal_is_empty_and_private(folder: Path) -> None:
    """A first opening makes the folder for its owner alone, and a journal with nothing in it."""
    with open_journal(folder / "deep" / "er") as journal:
        assert journal.last_seq() == 0
        assert journal.snapshot() is None
        assert list(journal.events()) == []
        assert list(journal.results()) == []
        assert (journal.waiting(), journal.player_deltas(), journal.verify()) == (0, {}, [])
    assert (folder / "deep" / "er").stat().st_mode & 0o777 == 0o700


def test_what_was_appended_is_there_after_opening_again(folder: Path) -> None:
    """Everything of every batch comes back after a clean end, which leaves one complete file."""
    fill(folder)
    assert not (folder / f"{FILE_NAME}-wal").exists()
    with open_journal(folder) as journal:
        assert assert_prefix(journal) == len(SCRIPT)
        assert journal.last_seq() == 13


def test_events_by_page(folder: Path) -> None:
    """Reading from a number on, with a limit or without, across pages, gives exactly those events."""
    with open_journal(folder) as journal:
        everything = [entry(seq) for seq in range(1, 1203)]
        journal.append(Batch(tuple(everything), False, None, label(0)))
        assert list(journal.events()) == everything
        assert list(journal.events(after_seq=1200)) == everything[1200:]
        for limit in (0, 1, 499, 500, 501, 1000, 5000):
            assert list(journal.events(after_seq=7, limit=limit)) == everything[7 : 7 + limit]


def test_a_batch_without_snapshot_leaves_the_one_before(folder: Path) -> None:
    """Snapshot and label belong together: without a new state neither changes."""
    with open_journal(folder) as journal:
        journal.append(batch(1, 1, 1))
        journal.append(Batch((entry(2),), True, None, label(2)))
        assert journal.snapshot() == (b'{"n": 1}', label(1))
        journal.append(Batch((), True, b"{}", label(3)))
        assert journal.snapshot() == (b"{}", label(3))
        assert journal.last_seq() == 2


@pytest.mark.parametrize("first", [1, 3, 5, 0, -1])
def test_numbers_that_do_not_go_on_are_refused(folder: Path, first: int) -> None:
    """An event that is not the next one is refused, and nothing of its batch is written."""
    with open_journal(folder) as journal:
        journal.append(batch(1, 3, 1))
        with pytest.raises(BatchRefused, match=f"event {first} cannot come after 3"):
            journal.append(batch(first, 2, 2, match="m"))
        with pytest.raises(BatchRefused, match="event 6 cannot come after 4"):
            journal.append(Batch((entry(4), entry(6)), True, b"{}", label(9)))
        assert_prefix(journal, (batch(1, 3, 1),), least=1)
        journal.append(batch(4, 1, 2))


def test_a_second_result_of_a_match_is_refused(folder: Path) -> None:
    """The same match twice, in two batches or in one, is refused, and nothing of the batch is written."""
    with open_journal(folder) as journal:
        first = batch(1, 2, 1, sync=True, match="m")
        journal.append(first)
        assert journal.player_deltas() == {"00000001": 4, "00000002": -4}
        with pytest.raises(BatchRefused, match=r"UNIQUE.*there already"):
            journal.append(batch(3, 2, 2, match="m"))
        twice = Batch((entry(3),), True, None, label(2), (result("n"), result("n")))
        with pytest.raises(BatchRefused, match="UNIQUE"):
            journal.append(twice)
        assert_prefix(journal, (first,), least=1)
        assert journal.player_deltas() == {"00000001": 4, "00000002": -4}


@pytest.mark.parametrize(
    "record", [b"", b"[]", b"{}", b'{"seats": 1}', b'{"seats": [1]}', b"\xff", b"[" * 9999]
)
def test_a_record_that_nobody_could_read_is_refused(folder: Path, record: bytes) -> None:
    """A result whose record is not JSON with a list of seats never gets in."""
    with open_journal(folder) as journal:
        with pytest.raises(BatchRefused, match="must be a JSON object with a list of seats"):
            journal.append(Batch((entry(1),), True, None, label(1), (Result("m", record),)))
        assert journal.last_seq() == 0


@pytest.mark.parametrize("body", ["\ud800", 2**64], ids=["lone surrogate", "number beyond 64 bits"])
def test_a_value_that_cannot_be_kept_is_refused(folder: Path, body: object) -> None:
    """What SQLite cannot hold is refused for good, and the next batch goes in."""
    from dataclasses import replace

    with open_journal(folder) as journal:
        wrong = replace(entry(2), body=body)  # type: ignore[arg-type]
        with pytest.raises(BatchRefused, match="cannot be kept"):
            journal.append(Batch((entry(1), wrong), False, None, label(1)))
        journal.append(batch(1, 2, 1))
        assert_prefix(journal, (batch(1, 2, 1),), least=1)


def test_deltas_of_players_add_up_over_matches(folder: Path) -> None:
    """Deltas sum by KI number over waiting results, guests left out, the same before and after opening."""
    guest = Result("g", b'{"seats": [{"seat": 1, "kind": "guest", "player": null, "delta": 0}]}')
    with open_journal(folder) as journal:
        journal.append(Batch((entry(1),), True, None, label(1), (result("a", (3, -2, -1)), guest)))
        asked_early = journal.player_deltas()
        journal.append(Batch((entry(2),), True, None, label(1), (result("b", (-1, 1)),)))
        expected = {"00000001": 2, "00000002": -1, "00000003": -1}
        assert asked_early == {"00000001": 3, "00000002": -2, "00000003": -1}
        assert journal.player_deltas() == expected
        journal.player_deltas()["00000001"] = 99
        assert journal.player_deltas() == expected
        assert journal.waiting() == 3
    with open_journal(folder) as journal:
        assert journal.player_deltas() == expected
        journal._db.execute("UPDATE outbox SET state = 'acknowledged' WHERE match = 'a'")
    with open_journal(folder) as journal:
        assert journal.player_deltas() == {"00000001": -1, "00000002": 1}
        assert journal.waiting() == 2


def test_sync_commits_are_full_and_others_are_not(folder: Path) -> None:
    """PRAGMA synchronous is FULL (2) at a batch that asks for it and NORMAL (1) at one that does not."""
    with open_journal(folder) as journal:
        for first, sync, level in ((1, True, 2), (2, False, 1), (3, False, 1), (4, True, 2), (5, True, 2)):
            journal.append(batch(first, 1, first, sync=sync))
            assert journal._db.execute("PRAGMA synchronous").fetchone() == (level,)
        assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.fault("F052")
def test_the_journal_belongs_to_its_thread(folder: Path) -> None:
    """Another thread is refused, and the journal goes on working in its own."""
    caught: list[BaseException] = []
    with open_journal(folder) as journal:

        def meddle() -> None:
            try:
                journal.append(batch(1, 1, 1))
            except JournalError as error:
                caught.append(error)

        thread = threading.Thread(target=meddle)
        thread.start()
        thread.join()
        assert len(caught) == 1
        assert "same thread" in str(caught[0])
        journal.append(batch(1, 1, 1))
        assert_prefix(journal, (batch(1, 1, 1),), least=1)


def test_abandoning_is_like_dying(folder: Path) -> None:
    """What was committed survives, an open transaction vanishes, the log stays, the lock is free."""
    journal = open_journal(folder)
    journal.append(batch(1, 3, 1))
    journal._db.execute("BEGIN IMMEDIATE")
    journal._db.execute("INSERT INTO events VALUES(4, 0, 'x', '{}')")
    log = folder / f"{FILE_NAME}-wal"
    size = log.stat().st_size
    journal.abandon()
    assert log.stat().st_size >= size > 0
    with open_journal(folder) as again:
        assert_prefix(again, (batch(1, 3, 1),), least=1)


def test_abandoning_a_journal_whose_files_are_gone_frees_the_lock(folder: Path) -> None:
    """Even when the folder was emptied under it, letting go works."""
    journal = open_journal(folder)
    for file in folder.iterdir():
        file.unlink()
    journal.abandon()
    open_journal(folder).close()


def test_closing_twice_is_harmless(folder: Path) -> None:
    """A second close does nothing."""
    journal = open_journal(folder)
    journal.close()
    journal.close()


def test_checkpoint_carries_the_log_over(folder: Path) -> None:
    """After a checkpoint the file alone, copied, holds everything; the log's size is told."""
    with open_journal(folder) as journal:
        journal.append(SCRIPT[0])
        assert journal.log_bytes() > 0
        journal.checkpoint()
        copy = folder.parent / "copy"
        copy.mkdir()
        shutil.copy(folder / FILE_NAME, copy)
        with read_journal(copy) as reader:
            assert_prefix(reader, least=1)


def test_a_second_daemon_is_refused_with_the_first_ones_number(folder: Path) -> None:
    """While one process has the folder another is refused by pid, and let in when the first was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        open_journal(folder).append(SCRIPT[0])
        os.write(writing, b"x")
        signal.pause()
        os._exit(1)
    try:
        assert os.read(reading, 1) == b"x"
        assert f"another heek runs on this state folder (pid {child})" in refusal(folder)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)
    with open_journal(folder) as journal:
        assert_prefix(journal, least=1)


def test_two_openers_in_one_process_are_refused_too(folder: Path) -> None:
    """The lock is on the opening, not on the process."""
    with open_journal(folder):
        assert f"(pid {os.getpid()})" in refusal(folder)
    open_journal(folder).close()


def test_a_folder_that_cannot_be_made_or_written(tmp_path: Path) -> None:
    """A path through a file, a file in the folder's place, and kernel folders that nobody writes."""
    (tmp_path / "file").write_text("x")
    assert "set table.state_dir to a folder" in refusal(tmp_path / "file")
    assert "set table.state_dir to a folder" in refusal(tmp_path / "file" / "state")
    for kernel in (Path("/sys/kernel"), Path("/sys/kernel/heek"), Path("/proc/heek")):
        if Path("/sys/kernel").exists():
            assert "cannot be written" in refusal(kernel)


def test_another_program_holds_the_file(folder: Path) -> None:
    """A foreign transaction on the file is named as such when opening, and when appending."""
    fill(folder, 1)
    foreign = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
    with open_journal(folder) as journal:
        foreign.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match=r"locked; another program has it open") as caught:
            journal.append(SCRIPT[1])
        assert not isinstance(caught.value, BatchRefused)
        foreign.execute("ROLLBACK")
        journal.append(SCRIPT[1])
        assert_prefix(journal, least=2)
    foreign.execute("PRAGMA locking_mode = EXCLUSIVE")
    foreign.execute("CREATE TABLE x(y)")
    assert "locked; another program has it open" in refusal(folder)
    foreign.close()


@pytest.mark.fault("F046")
@pytest.mark.parametrize(
    "damage",
    [b"\0" * 4096, b"<html>Log in to the Wi-Fi</html>" * 200, b"SQLite format 3\0" + b"\xff" * 4080],
    ids=["zeros", "text", "header only"],
)
def test_a_file_that_is_no_database(folder: Path, damage: bytes) -> None:
    """A file of something else is refused and left byte for byte as it is."""
    fill(folder)
    file = folder / FILE_NAME
    file.write_bytes(damage)
    text = refusal(folder)
    assert "is damaged" in text
    assert "nothing was changed or deleted" in text
    assert file.read_bytes() == damage
    assert "is damaged" in refusal(folder)


@pytest.mark.fault("F046")
@pytest.mark.parametrize("damage", ["rubbish", "the page after it"])
def test_one_bad_page_in_the_middle(folder: Path, damage: str) -> None:
    """A page of the history that was overwritten, even with a sound one, is found; nothing is changed."""
    with open_journal(folder) as journal:
        journal.append(Batch(tuple(entry(seq) for seq in range(1, 2001)), True, b"{}", label(1)))
    file = folder / FILE_NAME
    data = bytearray(file.read_bytes())
    middle = len(data) // 4096 // 2 * 4096
    if damage == "rubbish":
        data[middle : middle + 4096] = b"\xa5" * 4096
    else:
        data[middle : middle + 4096] = data[middle + 4096 : middle + 8192]
    file.write_bytes(data)
    assert "is damaged" in refusal(folder)
    assert file.read_bytes() == data


@pytest.mark.fault("F046")
def test_an_emptied_or_removed_file_is_not_taken_for_a_new_one(folder: Path) -> None:
    """With the mark beside it a file that is empty, gone or without tables is refused, by name."""
    fill(folder)
    file = folder / FILE_NAME
    file.write_bytes(b"")
    assert f"is empty, though {MARKER_NAME} beside it says that a journal was kept here" in refusal(folder)
    assert file.stat().st_size == 0
    file.unlink()
    assert f"is gone, though {MARKER_NAME} beside it says" in refusal(folder)
    assert not file.exists()
    empty = sqlite3.connect(file)
    empty.execute("PRAGMA journal_mode = WAL")
    empty.close()
    assert "is damaged (it has no tables)" in refusal(folder)
    file.unlink()
    (folder / MARKER_NAME).unlink()
    with open_journal(folder) as journal:
        assert journal.last_seq() == 0


def test_the_log_of_an_emptied_file_is_not_deleted(folder: Path) -> None:
    """Without the mark, too, a log beside an empty file stops the start, and stays."""
    journal = open_journal(folder)
    journal.append(SCRIPT[0])
    journal.abandon()
    (folder / MARKER_NAME).unlink()
    (folder / FILE_NAME).write_bytes(b"")
    log = (folder / f"{FILE_NAME}-wal").read_bytes()
    assert f"is empty, though {FILE_NAME}-wal beside it says" in refusal(folder)
    assert (folder / f"{FILE_NAME}-wal").read_bytes() == log


def test_a_newer_schema_and_another_programs_database(folder: Path) -> None:
    """A file of a later version and a database of something else are refused, not written."""
    fill(folder)
    file = folder / FILE_NAME
    db = sqlite3.connect(file)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    assert f"newer heek (schema {VERSION + 1}, this one knows {VERSION})" in refusal(folder)
    db = sqlite3.connect(file)
    db.execute("PRAGMA application_id = 7")
    db.close()
    assert "is another program's database" in refusal(folder)


def test_a_file_system_without_a_log_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SQLite cannot keep a write-ahead log (some network folders) the start stops with a remedy."""
    real = sqlite3.connect

    class Stubborn(sqlite3.Connection):
        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:  # type: ignore[override]
            return super().execute(sql.replace("journal_mode = WAL", "journal_mode = DELETE"), *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: real(*args, factory=Stubborn, **options))
    assert "cannot keep a write-ahead log (journal mode delete)" in refusal(folder)


@pytest.mark.fault("F050")
def test_a_read_only_database_is_named(folder: Path) -> None:
    """A card that turned read-only gives an error that may pass, and nothing is half written."""
    with open_journal(folder) as journal:
        journal.append(SCRIPT[0])
        journal._db.execute("PRAGMA query_only = ON")
        with pytest.raises(JournalError, match=r"readonly database; check that the user") as caught:
            journal.append(SCRIPT[1])
        assert not isinstance(caught.value, BatchRefused)
        journal._db.execute("PRAGMA query_only = OFF")
        journal.append(SCRIPT[1])
        assert_prefix(journal, least=2)


def test_verify_finds_each_kind_of_fault(folder: Path) -> None:
    """Every promise that is broken by hand is found and named by number or match."""
    fill(folder)
    db = sqlite3.connect(folder / FILE_NAME)
    for statement in (
        "DELETE FROM events WHERE seq IN (1, 7)",
        "UPDATE events SET body = 'x' WHERE seq = 2",
        'UPDATE events SET body = \'{"seq": 4, "event": "seat_ready"}\' WHERE seq = 3',
        "UPDATE events SET event = 'round_revealed', "
        'body = \'{"seq": 4, "event": "round_revealed", "points": {"1": 1, "2": 0}}\' WHERE seq = 4',
        "UPDATE events SET event = 'round_revealed', "
        'body = \'{"seq": 5, "event": "round_revealed"}\' WHERE seq = 5',
        "UPDATE events SET body = replace(body, 'm-1', 'm-9') WHERE seq = 9",
        "DELETE FROM outbox WHERE match = 'm-2'",
        "INSERT INTO outbox(match) VALUES('nobody')",
        "UPDATE results SET record = replace(CAST(record AS TEXT), '-4', '-3') WHERE match = 'm-1'",
        "UPDATE results SET record = 'rubbish' WHERE match = 'm-2'",
        "UPDATE snapshot SET state = 'rubbish'",
    ):
        db.execute(statement)
    db.commit()
    db.close()
    with read_journal(folder) as reader:
        faults = reader.verify()
    assert faults == [
        "outbox: match nobody waits, but there is no result of it",
        "snapshot: is not a JSON object",
        "event 2: comes where 1 should; numbers go up by one from 1",
        "event 2: its line is not a JSON object",
        "event 3: its line says number 4, event 'seat_ready'",
        "event 4: the points of the round sum to 1, not 0",
        "event 5: the points of the round sum to no number, not 0",
        "event 8: comes where 7 should; numbers go up by one from 1",
        "result m-1: there is no match_won of it",
        "result m-1: its deltas sum to 1, not 0",
        "result m-2: has no place in the outbox",
        "result m-2: its record is not a JSON object with a list of seats",
    ]


def test_verify_allows_the_award_rules_to_give(folder: Path) -> None:
    """Under heek-1-award deltas need not sum to zero; rounds whose points do are sound."""
    won = entry(1, "match_won", match="m")
    revealed = entry(2, "round_revealed", points={"1": 2, "2": -1, "3": -1})
    with open_journal(folder) as journal:
        journal.append(Batch((won, revealed), True, b"{}", label(1), (result("m", (4, 0), "heek-1-award"),)))
        assert journal.verify() == []


def test_verify_stops_at_a_hundred_lines(folder: Path) -> None:
    """A journal that is wrong all over does not fill the screen without end."""
    fill(folder, 1)
    db = sqlite3.connect(folder / FILE_NAME)
    db.executemany("INSERT INTO events VALUES(?, 0, 'x', '')", [(seq,) for seq in range(4, 2000)])
    db.commit()
    db.close()
    with read_journal(folder) as reader:
        faults = reader.verify()
    assert len(faults) == 101
    assert faults[-1] == "and more; only the first hundred are listed"


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.booleans(),
            st.booleans(),
            st.sampled_from(["go on", "close", "abandon", "checkpoint", "gap", "twice", "kill"]),
        ),
        max_size=10,
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_life_of_a_journal_keeps_what_was_appended(
    folder: Path, life: list[tuple[int, bool, bool, str]]
) -> None:
    """Whatever way openings end and whatever is refused between, exactly what was appended is there."""
    shutil.rmtree(folder, ignore_errors=True)
    written: list[Batch] = []
    journal = open_journal(folder)
    for number, (count, sync, wins, then) in enumerate(life):
        first = journal.last_seq() + 1
        match = f"m-{number}" if wins and count else None
        one = batch(first, count, number, sync=sync, match=match)
        if then == "kill":
            journal.close()

            def die(one: Batch = one) -> None:
                open_journal(folder).append(one)
                os.kill(os.getpid(), signal.SIGKILL)

            assert os.WTERMSIG(in_child(die)) == signal.SIGKILL
            journal = open_journal(folder)
        else:
            journal.append(one)
        written.append(one)
        if then == "gap":
            with pytest.raises(BatchRefused):
                journal.append(batch(journal.last_seq() + 2, 1, 99))
        elif then == "twice" and match is not None:
            with pytest.raises(BatchRefused):
                journal.append(batch(journal.last_seq() + 1, 1, 99, match=match))
        elif then == "checkpoint":
            journal.checkpoint()
        elif then in ("close", "abandon"):
            journal.close() if then == "close" else journal.abandon()
            journal = open_journal(folder)
    events = [item for one in written for item in one.entries]
    assert list(journal.events()) == events
    assert journal.last_seq() == len(events)
    assert list(journal.results()) == [item for one in written for item in one.results]
    assert journal.snapshot() == ((written[-1].snapshot, written[-1].label) if written else None)
    assert journal.verify() == []
    journal.close()


def test_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    """The file, its log and its index, whatever the umask, and also where they stood open to others."""
    names = [FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"]
    before = os.umask(0)
    try:
        with open_journal(tmp_path) as journal:
            journal.append(batch(1, 1, 1, sync=True))
            assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names] == [0o600] * 3
            journal.abandon()
        for name in names:
            (tmp_path / name).chmod(0o644)
        with open_journal(tmp_path) as journal:
            journal.append(batch(2, 1, 2, sync=True))
            assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names] == [0o600] * 3
    finally:
        os.umask(before)
