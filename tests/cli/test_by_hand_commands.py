"""Records by hand, as people do it: export at the table, import at the KI, the receipt back to the table."""

from __future__ import annotations

import io
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from heek.by_hand import export, exportable, receive
from heek.cli import FAILED, MISTAKE, OK, main
from heek.errors import LinkError
from heek.journal import Answered, Pin, Result, open_journal, read_journal
from heek.ki import by_hand
from heek.ki.answers import BatchAnswer, RecordAnswer, Verdict, encode_batch_answer
from heek.ki.envelope import Envelope, batch, public_key
from heek.ki.export_file import envelopes as envelopes_of
from heek.ki.http_link import HttpLink
from heek.ki.link import Request
from heek.ki.receipt_file import AnsweredBatch
from heek.ki.record import decode_record
from heek.ki.signed_answer import sign_answer
from heek.ki.table_key import FILE_NAME, table_key
from heek.ranking.service_keys import service_key
from tests.cli.commands import heek
from tests.cli.kept_table import keep, kept_table, result_of
from tests.ranking.records import ANN, BEN, FakeTable
from tests.ranking.service import RunningKi

SERVICE = bytes([7] * 32)


@pytest.fixture
def ki(tmp_path: Path) -> Iterator[RunningKi]:
    with RunningKi(tmp_path) as running:
        yield running


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    (tmp_path / "stick").mkdir()
    return tmp_path / "stick"


def waiting(state: Path) -> int:
    with read_journal(state) as journal:
        return journal.waiting()


def exported(state: Path, file: Path, *more: str) -> Path:
    assert main(["journal", "export", "--state-dir", str(state), "--out", str(file), *more]) == OK
    return file


def imported(file: Path, ki: RunningKi) -> int:
    return main(["ki", "import", str(file), "--url", ki.url])


def received(state: Path, file: Path) -> int:
    return main(["journal", "receive", f"{file}.receipt", "--state-dir", str(state)])


def test_the_whole_way_and_all_of_it_twice(
    state: Path, stick: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Out, in and back: every record counts once, nothing waits any more, and again changes nothing."""
    table = FakeTable()
    kept_table(state, table, 3)
    assert main(["journal", "export", "--state-dir", str(state), "--out", str(stick)]) == OK
    (file,) = stick.iterdir()
    assert file.name == f"heek-{table.key_id.hex()}-3.export"
    assert capsys.readouterr().out == f"{file}: 3 records of Table 1\nat the KI: heek ki import {file.name}\n"
    assert waiting(state) == 3
    assert imported(file, ki) == OK
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [
        f"Table 1 (key {table.key_id.hex()}): 3 records",
        "  3 accepted, 0 there already, 0 in conflict, 0 rejected",
    ]
    assert said[2] == f"{file}.receipt: take it back to the table: heek journal receive {file.name}.receipt"
    assert received(state, file) == OK
    assert capsys.readouterr().out == "3 results acknowledged; 0 wait on\n"
    assert waiting(state) == 0
    with open_journal(state) as journal:
        assert journal.told_points() == {ANN: 103, BEN: 97}
    assert imported(file, ki) == OK
    assert "0 accepted, 3 there already" in capsys.readouterr().out
    assert received(state, file) == OK
    assert capsys.readouterr().out == "0 results acknowledged, 3 answered for already; 0 wait on\n"


def test_a_table_that_plays_on_loses_nothing(state: Path, stick: Path, ki: RunningKi) -> None:
    """What is won between export and receipt goes on waiting; an older receipt after a newer is harmless."""
    table = FakeTable()
    kept_table(state, table, 2)
    first = exported(state, stick / "first")
    keep(state, [result_of(table.sealed({ANN: 1, BEN: 1}, BEN))])
    second = exported(state, stick / "second")
    assert imported(first, ki) == imported(second, ki) == OK
    assert received(state, first) == OK
    assert waiting(state) == 1
    assert received(state, second) == OK
    assert received(state, first) == OK
    assert waiting(state) == 0
    with open_journal(state) as journal:
        assert journal.told_points() == {ANN: 101, BEN: 99}


def test_exporting_beside_a_running_table_changes_nothing(state: Path, stick: Path) -> None:
    """The folder is another's meanwhile; what is exported waits on, and the journal stays as it was."""
    kept_table(state, FakeTable(), 2)
    with open_journal(state) as journal:
        exported(state, stick / "file")
        assert journal.waiting() == 2
    assert len(list(envelopes_of(io.BytesIO((stick / "file").read_bytes())))) == 2


def test_all_is_every_result(state: Path, stick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --all what waits; with it, in the order of the journal, also what was answered for."""
    sent = kept_table(state, FakeTable(), 3)
    with open_journal(state) as journal:
        journal.acknowledge([Answered(result_of(sent[1]).match, "accepted")], {})
    some = exported(state, stick / "some").read_bytes()
    assert list(envelopes_of(io.BytesIO(some))) == [sent[0], sent[2]]
    everything = exported(state, stick / "all", "--all").read_bytes()
    assert list(envelopes_of(io.BytesIO(everything))) == sent
    run = heek("journal", "export", "--all", "--out", "-", "--state-dir", str(state))
    assert (run.returncode, run.stdout, run.stderr) == (OK, everything, b"")
    assert capsys.readouterr().err == ""


def test_nothing_is_overwritten(state: Path, stick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of that name is left as it is, and named."""
    kept_table(state, FakeTable(), 1)
    (stick / "file").write_text("mine")
    assert main(["journal", "export", "--state-dir", str(state), "--out", f"{stick}/file"]) == FAILED
    assert capsys.readouterr().err == (
        f"heek: {stick}/file: is there already, and is left as it is; name a file that is not\n"
    )
    assert (stick / "file").read_text() == "mine"


@pytest.mark.parametrize(("more", "word"), [((), "waits"), (("--all",), "is kept")])
def test_nothing_to_export(
    more: tuple[str, ...], word: str, state: Path, stick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table that has nothing for the KI says so, and writes no file."""
    keep(state, [])
    table_key(state, lambda: bytes(32))
    exported(state, stick, *more)
    assert capsys.readouterr().out == f"nothing {word} for the KI; no file is written\n"
    assert list(stick.iterdir()) == []


def test_what_cannot_be_signed_is_left_out_and_told(
    state: Path, stick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Records of a key that is gone, and results without a record, are counted with what to do."""
    table, before = FakeTable(), FakeTable(2)
    kept_table(state, table, 1)
    keep(state, [result_of(before.sealed({ANN: 1, BEN: 1})), Result("old", b'{"seats": []}')])
    file = exported(state, stick / "file")
    said = capsys.readouterr()
    assert said.out.startswith(f"{file}: 1 record of Table 1\n")
    assert "1 result of an older heek left out; start the table once" in said.err
    assert (
        "1 record left out that another key is to sign; the table binds to its own key what waits" in said.err
    )


def test_the_name_is_the_configurations(
    state: Path, stick: Path, tmp_path: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --config the table introduces itself by the name that it has there."""
    kept_table(state, FakeTable(), 1)
    config = tmp_path / "table.toml"
    config.write_text(
        f'[table]\nname = "By the door"\nstate_dir = "{state}"\n[stations]\nbackend = "mock"\n',
        encoding="utf-8",
    )
    assert main(["journal", "export", "--config", str(config), "--out", str(stick / "file")]) == OK
    assert imported(stick / "file", ki) == OK
    assert "By the door (key " in capsys.readouterr().out


@pytest.mark.parametrize("action", [["export"], ["receive", "receipt"]])
def test_no_key_and_no_journal(action: list[str], state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is made where there is nothing, and one line says what is missing."""
    where = ["--state-dir", str(state)]
    assert main(["journal", *action, *where]) == FAILED
    assert "there is no journal" in capsys.readouterr().err
    assert not state.exists()
    keep(state, [])
    assert main(["journal", *action, *where]) == FAILED
    assert f"{state / FILE_NAME}: there is no key" in capsys.readouterr().err
    assert not (state / FILE_NAME).exists()
    assert main(["journal", *action, "--state-dir", str(state / "journal.sqlite3")]) == FAILED
    assert "name the table's state folder" in capsys.readouterr().err


def test_a_damaged_or_foreign_file_is_one_line(
    state: Path, stick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cut, foreign, a folder, not there: each is named before anything is asked of a KI."""
    kept_table(state, FakeTable(), 2)
    data = exported(state, stick / "file").read_bytes()
    (stick / "cut").write_bytes(data[:-5])
    (stick / "foreign").write_bytes(b"<html>")
    (stick / "folder").mkdir()
    capsys.readouterr()
    for name, words in {
        "cut": "ends in the middle (after 2 sound records); nothing of it was sent",
        "foreign": "is no file that heek journal export wrote; nothing of it was sent",
        "folder": "cannot be read: it is a folder; name the file in it",
        "nothing": "cannot be read: there is no such file; is the stick mounted?",
    }.items():
        assert main(["ki", "import", str(stick / name), "--url", "http://127.0.0.1:1"]) == FAILED
        assert capsys.readouterr().err == f"heek: {stick / name}: {words}\n"


def test_no_ki(state: Path, stick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A KI that is not there, and an address that is none, are one line; no receipt is written."""
    kept_table(state, FakeTable(), 1)
    file = exported(state, stick / "file")
    capsys.readouterr()
    assert main(["ki", "import", str(file), "--url", "http://127.0.0.1:1"]) == FAILED
    assert capsys.readouterr().err == "heek: nothing listens at 127.0.0.1:1; is the KI running?\n"
    assert main(["ki", "import", str(file), "--url", "gopher://x"]) == MISTAKE
    assert "--url 'gopher://x' is not like" in capsys.readouterr().err
    assert [each.name for each in stick.iterdir()] == ["file"]


def test_a_rejected_record_is_told_and_the_others_count(
    state: Path, stick: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code is 1 and the reason is said; its receipt settles all of them at the table, with 1, too."""
    table = FakeTable()
    kept_table(state, table, 1)
    bad = table.sealed({ANN: 9, BEN: 9})
    keep(state, [result_of(bad), result_of(table.sealed({ANN: 1, BEN: 1}))])
    file = exported(state, stick / "file")
    capsys.readouterr()
    assert imported(file, ki) == FAILED
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "  2 accepted, 0 there already, 0 in conflict, 1 rejected"
    assert said[2].startswith(f"  match {result_of(bad).match}: rejected: the stake of")
    assert received(state, file) == FAILED
    assert capsys.readouterr().out == (
        "3 results acknowledged; 0 wait on\nthe KI does not count 1 of them; heek ki import has said why\n"
    )


def test_a_conflict_is_told(
    state: Path, stick: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """A match that counts already with other bytes is said to be in conflict, with code 1."""
    table = FakeTable()
    (sent,) = kept_table(state, table, 1)
    ki.introduce(table)
    other = table.sealed({ANN: 1, BEN: 1}, BEN, match=decode_record(sent.record).match)
    ki.report(other)
    assert imported(exported(state, stick / "file"), ki) == FAILED
    said = capsys.readouterr().out
    assert "0 accepted, 0 there already, 1 in conflict, 0 rejected" in said
    assert f"match {result_of(sent).match}: in conflict: the match counts already" in said


def test_it_breaks_off_in_the_middle(
    state: Path,
    stick: Path,
    ki: RunningKi,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It says how many were answered for and leaves no receipt; the next import completes it."""
    kept_table(state, FakeTable(), 5)
    file = exported(state, stick / "file")
    monkeypatch.setattr(by_hand, "MOST_IN_BATCH", 2)
    ask, asked = HttpLink.ask, 0

    async def ask_twice(link: HttpLink, request: Request, body: bytes) -> bytes:
        nonlocal asked
        asked += request is Request.RECORDS
        if asked == 3:
            raise LinkError("the cable was pulled")
        return await ask(link, request, body)

    monkeypatch.setattr(HttpLink, "ask", ask_twice)
    capsys.readouterr()
    assert imported(file, ki) == FAILED
    assert capsys.readouterr().err == (
        "2 of 5 records were answered for, then it broke off; each counts once, so import the whole file "
        "again\nheek: the cable was pulled\n"
    )
    assert not (stick / "file.receipt").exists()
    assert imported(file, ki) == OK
    assert "3 accepted, 2 there already" in capsys.readouterr().out
    assert received(state, file) == OK
    assert waiting(state) == 0


def test_a_receipt_that_cannot_be_written(
    state: Path, stick: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """The records count, and it is said that the table will not learn of it, with code 1."""
    kept_table(state, FakeTable(), 1)
    file = exported(state, stick / "file")
    (stick / "file.receipt").mkdir()
    assert imported(file, ki) == FAILED
    said = capsys.readouterr()
    assert "1 accepted" in said.out
    assert "the KI has the records, but the table will not learn of it" in said.err
    assert sorted(each.name for each in stick.iterdir()) == ["file", "file.receipt"]


def test_a_receipt_for_another_table(
    state: Path, stick: Path, tmp_path: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named with both keys, and nothing is acknowledged; so is a receipt that is damaged."""
    table, other = FakeTable(), FakeTable(2)
    kept_table(state, table, 1)
    kept_table(tmp_path / "other", other, 1)
    file = exported(tmp_path / "other", stick / "file")
    assert imported(file, ki) == OK
    capsys.readouterr()
    assert received(state, file) == FAILED
    assert capsys.readouterr().err == (
        f"heek: {file}.receipt: is for another table (key {other.key_id.hex()}; this one has "
        f"{table.key_id.hex()})\n"
    )
    receipt = Path(f"{file}.receipt")
    receipt.write_bytes(receipt.read_bytes()[:-1])
    assert received(tmp_path / "other", file) == FAILED
    assert capsys.readouterr().err == f"heek: {receipt}: ends in the middle\n"
    receipt.unlink()
    assert received(tmp_path / "other", file) == FAILED
    assert "there is no such file" in capsys.readouterr().err
    assert waiting(state) == waiting(tmp_path / "other") == 1


def test_receiving_beside_a_running_table_is_refused(
    state: Path, stick: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder's lock is the running table's: it says who has it and that it is to be stopped."""
    kept_table(state, FakeTable(), 1)
    file = exported(state, stick / "file")
    assert imported(file, ki) == OK
    capsys.readouterr()
    with open_journal(state):
        assert received(state, file) == FAILED
    assert capsys.readouterr().err == (
        f"heek: {state}: another heek runs on this state folder (pid {os.getpid()}); stop that one, or give "
        "this one its own table.state_dir\n"
    )
    assert waiting(state) == 1


def answered(
    sent: list[Envelope], verdict: Verdict = Verdict.ACCEPTED, seed: bytes = SERVICE
) -> AnsweredBatch:
    """What a KI with this key answers to these records."""
    ids = tuple(decode_record(each.record).match for each in sent)
    answer = BatchAnswer(tuple(RecordAnswer(verdict, None, match) for match in ids), {ANN: 7})
    return AnsweredBatch(ids, sign_answer(encode_batch_answer(answer), Request.RECORDS, batch(sent), seed))


def test_a_receipt_is_held_against_the_pin(
    state: Path, stick: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """An enrolled table takes the receipt of the KI it is enrolled at, and another KI's not at all."""
    table = FakeTable()
    kept_table(state, table, 3)
    file = exported(state, stick / "file")
    assert imported(file, ki) == OK
    with open_journal(state) as journal:
        journal.pin_service(Pin(public_key(SERVICE), "Another", "code"), table.key_id)
    capsys.readouterr()
    assert received(state, file) == FAILED
    said = capsys.readouterr()
    assert said.out == "0 results acknowledged; 3 wait on\n"
    assert f"{file}.receipt: 3 not acknowledged: another KI answers than the one" in said.err
    with open_journal(state) as journal:
        assert journal.told_points() == {}
        own = service_key(ki.database.parent).public
        journal.pin_service(Pin(own, "KI", "code"), table.key_id)
    assert received(state, file) == OK
    assert waiting(state) == 0


def test_the_ki_can_be_named_by_its_key(
    state: Path, stick: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --key no other KI's answer counts; https:// wants one, and says where it stands."""
    kept_table(state, FakeTable(), 1)
    file = exported(state, stick / "file")
    key = service_key(ki.database.parent).public.hex()
    assert main(["ki", "import", str(file), "--url", ki.url, "--key", bytes(32).hex()]) == FAILED
    assert "another KI answers" in capsys.readouterr().err
    assert not Path(f"{file}.receipt").exists()
    assert main(["ki", "import", str(file), "--url", ki.url, "--key", key]) == OK
    assert main(["ki", "import", str(file), "--url", "https://127.0.0.1:1"]) == MISTAKE
    assert "--url https://127.0.0.1:1: over TLS nothing is sent" in capsys.readouterr().err
    for wrong in ("", "x" * 64, key[:-2]):
        with pytest.raises(SystemExit):
            main(["ki", "import", str(file), "--key", wrong])
        assert "argument --key:" in capsys.readouterr().err


def test_the_ki_can_be_named_by_its_configuration(
    state: Path, stick: Path, ki: RunningKi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its [service] says where it listens, and beside its ledger stands its key."""
    kept_table(state, FakeTable(), 1)
    file = exported(state, stick / "file")
    config = tmp_path / "table.toml"
    words = f'[service]\nhost = "127.0.0.1"\nport = {ki.port}\ndatabase = "{{}}"\n'
    config.write_text(words.format(ki.database), encoding="utf-8")
    assert main(["ki", "import", str(file), "--config", str(config), "--key", bytes(32).hex()]) == FAILED
    assert main(["ki", "import", str(file), "--config", str(config)]) == OK
    capsys.readouterr()
    config.write_text(words.format(tmp_path / "other.sqlite3"), encoding="utf-8")
    assert main(["ki", "import", str(file), "--config", str(config)]) != OK
    assert "service.key: is not there; start the KI once" in capsys.readouterr().err
    assert not (tmp_path / "service.key").exists()


def test_a_pipe_or_device_is_not_imported(
    stick: Path, ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe would hang, a device go on for ever: both are refused at once."""
    pipe = stick / "pipe"
    os.mkfifo(pipe)
    for each in (Path("/dev/null"), pipe):
        assert imported(each, ki) == FAILED
        assert f"{each}: is no file but a device or pipe" in capsys.readouterr().err


def test_an_import_over_tls(state: Path, stick: Path, tmp_path: Path) -> None:
    """By its key the KI is known over TLS, too: a new table is introduced and all its records count."""
    kept_table(state, FakeTable(), 2)
    file = exported(state, stick / "file")
    with RunningKi(tmp_path, tls_port=0) as ki:
        url, key = f"https://127.0.0.1:{ki.service.tls_port}", ki.service.key.public.hex()
        assert main(["ki", "import", str(file), "--url", url, "--key", bytes(32).hex()]) == FAILED
        assert main(["ki", "import", str(file), "--url", url, "--key", key]) == OK
    assert received(state, file) == OK
    assert waiting(state) == 0


def test_a_pinned_ki_must_have_signed_for_what_this_table_sent(state: Path) -> None:
    """Another KI's answer, one to other records, one unsigned, one to what is not here: none is believed."""
    table = FakeTable()
    sent = kept_table(state, table, 4)
    key = table_key(state, lambda: bytes(32))
    other = FakeTable(1)
    elsewhere = other.sealed({ANN: 1, BEN: 1}, BEN, match=decode_record(sent[0].record).match)
    assert elsewhere.record != sent[0].record
    good = answered(sent[2:])
    bad = [
        answered(sent[:2], seed=bytes([8] * 32)),
        answered([elsewhere, sent[1]]),
        AnsweredBatch(answered(sent[:2]).matches, good.answer),
        AnsweredBatch(good.matches[:1], good.answer),
        AnsweredBatch(
            answered(sent[:1]).matches,
            encode_batch_answer(BatchAnswer((RecordAnswer(Verdict.ACCEPTED),))),
        ),
        answered([*sent[:1], table.sealed({ANN: 1, BEN: 1})]),
        AnsweredBatch((bytes(16),), b"rubbish"),
    ]
    with open_journal(state) as journal:
        for each in bad:
            came = receive(journal, key, [each], public_key(SERVICE))
            assert (came.acknowledged, journal.waiting(), journal.told_points()) == (0, 4, {})
            assert came.doubt
        came = receive(journal, key, [*bad, good, *bad], public_key(SERVICE))
        assert (came.acknowledged, journal.waiting(), journal.told_points()) == (2, 2, {ANN: 7})


def test_a_table_without_a_pin_takes_the_answers_to_its_own_matches(state: Path) -> None:
    """Enrolled nowhere it believes who answers, but not what was answered to other matches."""
    sent = kept_table(state, FakeTable(), 4)
    key = table_key(state, lambda: bytes(32))
    crossed = AnsweredBatch(answered(sent[:2]).matches, answered(sent[2:]).answer)
    elsewhere = FakeTable(2).sealed({ANN: 1, BEN: 1})
    with open_journal(state) as journal:
        came = receive(journal, key, [crossed], None)
        assert (came.acknowledged, came.doubtful, journal.waiting()) == (0, 2, 4)
        came = receive(journal, key, [answered([*sent[:2], elsewhere])], None)
        assert (came.acknowledged, came.missing, journal.waiting()) == (2, 1, 2)


def test_points_of_an_answer_that_is_old_are_not_taken(state: Path) -> None:
    """Where nothing waited any more, what the KI told then is older than what the table knows now."""
    sent = kept_table(state, FakeTable(), 1)
    key = table_key(state, lambda: bytes(32))
    with open_journal(state) as journal:
        journal.acknowledge([Answered(result_of(sent[0]).match, "accepted")], {ANN: 50})
        came = receive(journal, key, [answered(sent)], public_key(SERVICE))
        assert (came.acknowledged, came.already) == (0, 1)
        assert journal.told_points() == {ANN: 50}


def test_memory_does_not_grow_with_the_journal(state: Path) -> None:
    """Exporting four thousand records takes no more memory than exporting four hundred and some slack."""
    table = FakeTable()
    peaks = []
    for count in (400, 3600):
        kept_table(state, table, count)
        key = table_key(state, lambda: bytes(32))
        with read_journal(state) as journal:
            size = 0

            def count_bytes(data: bytes) -> None:
                nonlocal size
                size += len(data)

            tracemalloc.start()
            found = exportable(journal, key.id, everything=True)
            export(journal, found, key, "Table 1", count_bytes)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert len(found.numbers) == 4000
    assert size > 1_500_000
    assert peaks[1] < peaks[0] + 300_000
