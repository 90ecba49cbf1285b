"""A table's code is typed in at the KI, by a command or on its page, and both know each other then."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from heek.cli import main
from heek.errors import RankingError
from heek.ki.claim import claim_key, draw_code, encode_claim, read_claim_answer, shown_code
from heek.ki.link import Request
from heek.ki.signed_answer import check_answer
from heek.ranking.claims import WRONG_CODES
from heek.ranking.service_keys import read_operator_key
from tests.ranking.records import ANN, BEN, FakeTable, body
from tests.ranking.service import Answer, RunningKi
from tests.web.serving import own_address

ELSEWHERE = {"Via": "1.1 gateway"}
"""By which the KI takes a request for one from another machine."""


class Claiming:
    """A table that shows a code."""

    def __init__(self, table: FakeTable, code: str = "BCDFGHJK") -> None:
        self.table = table
        self.code = code
        self.nonce = bytes(range(16))
        self.key = claim_key(code, table.public, self.nonce)
        self.body = encode_claim(table.seed, table.name, self.nonce, self.key)

    def ask(self, ki: RunningKi, headers: dict[str, str] | None = None) -> Answer:
        return ki.post(Request.CLAIM.path, self.body, headers)

    def enrolled(self, ki: RunningKi) -> bool:
        """Whether the KI says so, with its own key under the code's mark and its signature."""
        answer = self.ask(ki, ELSEWHERE)
        assert answer.status == 200, answer.data
        check_answer(answer.data, Request.CLAIM, self.body, ki.service.key.public)
        found = read_claim_answer(answer.cbor, self.key, self.table.public)
        assert found is None or (found.public, found.name) == (ki.service.key.public, "KI")
        return found is not None


def heek(ki: RunningKi, *arguments: str) -> int:
    place = ("--database", str(ki.database), "--port", str(ki.port))
    return main(["ki", *arguments, *place])


def typed(ki: RunningKi, headers: dict[str, str] | None = None, **fields: str) -> Answer:
    """What the page answers to these fields, sent as a browser does."""
    given = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": "null",
        "Sec-Fetch-Site": "same-origin",
    } | (headers or {})
    return ki.ask("POST", "/enrol", urlencode(fields).encode(), given)


def words(answer: Answer) -> str:
    return re.sub(r"<[^>]+>", " ", answer.text)


def test_a_code_is_typed_in(ki: RunningKi, capsys: pytest.CaptureFixture[str]) -> None:
    """From not known to enrolled: nothing of a table from elsewhere is taken before, everything after."""
    table = FakeTable()
    claiming = Claiming(table)
    records = body(table.sealed({ANN: 1, BEN: 1}))
    assert ki.post("/v1/records", records, ELSEWHERE).cbor["error"] == "not_enrolled"
    assert not claiming.enrolled(ki)
    assert not claiming.enrolled(ki)
    assert ki.post("/v1/records", records, ELSEWHERE).cbor["error"] == "not_enrolled"
    assert heek(ki, "enrol", *shown_code(claiming.code).lower().split()) == 0
    said = capsys.readouterr().out
    assert said == f"Table 1 is enrolled; its key is {table.key_id.hex()}\n"
    assert claiming.enrolled(ki)
    # The answer may have been lost on its way: it is given again.
    assert claiming.enrolled(ki)
    assert ki.post("/v1/records", records, ELSEWHERE).cbor["answers"][0][0] == "accepted"
    assert ki.rows("SELECT actor FROM enrolments") == [("operator",)]


def test_a_wrong_code_enrols_nobody(ki: RunningKi, capsys: pytest.CaptureFixture[str]) -> None:
    """A code that no table shows, and words that are none, are refused with what to type."""
    claiming = Claiming(FakeTable())
    claiming.ask(ki)
    for code, said in (
        ("XXXXXXXX", "no table shows this code"),
        ("hello", "'hello' is no code"),
        ("", "'' is no code"),
        ("B" * 65, "is no code"),
    ):
        assert heek(ki, "enrol", code) == 1
        answer = capsys.readouterr().err
        assert said in answer
        assert "type it as the display shows it" in answer
    assert heek(ki, "enrol", claiming.code, "--replaces", " ") == 1
    assert "--replaces is empty: give the old table's name or key" in capsys.readouterr().err
    assert not claiming.enrolled(ki)


def test_a_code_that_is_typed_again_has_done_its_work(
    ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command and on the page: nothing is left to do, and that is no failure; but no other place."""
    claiming = Claiming(FakeTable())
    claiming.ask(ki)
    assert heek(ki, "enrol", claiming.code) == 0
    capsys.readouterr()
    for _ in range(2):
        assert heek(ki, "enrol", claiming.code) == 0
        assert capsys.readouterr().out == (
            "this code was typed in already, and its table is enrolled; nothing is left to do\n"
        )
    answer = typed(ki, code=claiming.code, key=read_operator_key(ki.database.parent))
    assert answer.status == 200
    assert "This code was typed in already, and its table is enrolled; nothing is left to do." in answer.text
    assert heek(ki, "enrol", claiming.code, "--replaces", "Table 9") == 1
    assert "but not in the place of Table 9; for that have it show another" in capsys.readouterr().err
    assert ki.rows("SELECT count(*) FROM enrolments") == [(1,)]


def test_the_place_that_was_taken_is_no_other_place(
    ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command with --replaces twice does nothing more, and says so."""
    old, new = FakeTable(), Claiming(FakeTable(9, "Table 9"))
    ki.introduce(old)
    new.ask(ki)
    for said in (f"in the place of {old.name}", "nothing is left to do"):
        assert heek(ki, "enrol", new.code, "--replaces", old.name) == 0
        assert said in capsys.readouterr().out


def test_who_types_too_many_wrong_codes_hears_how_long_to_wait(
    ki: RunningKi, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command and on the page."""
    for _ in range(WRONG_CODES + 1):
        assert heek(ki, "enrol", "XXXXXXXX") != 0
    capsys.readouterr()
    assert heek(ki, "enrol", "XXXXXXXX") != 0
    assert re.search(
        r"too many wrong codes were typed in; try again in \d\d seconds", capsys.readouterr().err
    )
    key = (ki.database.parent / "operator.key").read_text().splitlines()[1]
    page = typed(ki, code="XXXXXXXX", key=key)
    assert page.status == 503
    assert re.search(r"Too many wrong codes were typed in; try again in \d\d seconds\.", words(page))


def test_the_right_table_of_several_is_enrolled(ki: RunningKi) -> None:
    """Where several show codes, the one whose code it is is taken, and no other."""
    several = [Claiming(FakeTable(number), draw_code(lambda n, at=number: at % n)) for number in range(3, 7)]
    for each in several:
        each.ask(ki)
    assert heek(ki, "enrol", several[2].code) == 0
    assert [each.enrolled(ki) for each in several] == [False, False, True, False]


def test_a_claim_must_be_its_tables_own(ki: RunningKi) -> None:
    """Rubbish, and a claim for a key that its sender does not have, are malformed."""
    good = Claiming(FakeTable())
    forged = good.body.replace(good.table.public, FakeTable(2).public)
    for data in (b"", b"\xa0", forged):
        answer = ki.post(Request.CLAIM.path, data)
        assert (answer.status, answer.cbor["error"]) == (400, "malformed")


def test_only_the_operator_on_this_machine_is_heard(
    ki: RunningKi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With another key, from elsewhere, or from a browser nothing is done."""
    from heek.ranking.operator_requests import Enrol, OperatorRequest, encode_request

    claiming = Claiming(FakeTable())
    claiming.ask(ki)
    key = read_operator_key(ki.database.parent)
    right = encode_request(OperatorRequest(key, "operator", Enrol(claiming.code)))
    wrong = encode_request(OperatorRequest("a" * 32, "operator", Enrol(claiming.code)))
    for data, headers in ((wrong, {}), (right, ELSEWHERE), (right, {"Host": "ki.example:80"})):
        answer = ki.post("/v1/operator", data, headers)
        assert (answer.status, answer.cbor["error"]) == (403, "not_operator")
    assert ki.post("/v1/operator", right, {"Origin": "null"}).cbor["error"] == "not_enrolled"
    assert not claiming.enrolled(ki)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert main(["ki", "tables", "--database", str(elsewhere / "ki.sqlite3"), "--port", str(ki.port)]) != 0
    assert "operator.key: is not there; start the KI once" in capsys.readouterr().err
    assert ki.post("/v1/operator", right).cbor["said"].startswith("Table 1 is enrolled")


@pytest.mark.parametrize("host", ["one address", "::", "localhost", "0.0.0.0", "127.0.0.2"])
def test_an_operator_is_heard_wherever_the_ki_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    """At one address of a network alone, too: the commands ask on loopback, and are done for this machine."""
    found = own_address() if host == "one address" else host
    if found is None:
        pytest.skip("this machine has no address but loopback")
    try:
        service = RunningKi(tmp_path, host=found)
    except RankingError as error:
        pytest.skip(f"this machine cannot: {error}")
    with service as ki:
        config = tmp_path / "table.toml"
        config.write_text(
            f'[service]\nhost = "{found}"\nport = {ki.port}\ndatabase = "{ki.database}"\n', encoding="utf-8"
        )
        assert main(["ki", "tables", "--config", str(config)]) == 0, capsys.readouterr().err
        assert "no table has reported here" in capsys.readouterr().out


def test_another_program_on_loopback_is_named(tmp_path: Path) -> None:
    """It would get what operators ask: the KI does not start, and says which port and what to do."""
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RankingError, match=rf"service.host 127.0.0.1, service.port {port}: another prog"):
            RunningKi(tmp_path, host=address, port=port)


def test_wrong_keys_are_limited(ki: RunningKi) -> None:
    """Whoever tries keys is soon told to wait."""
    answers = [typed(ki, code="BCDFGHJK", key="guess").status for _ in range(11)]
    assert answers == [403] * 10 + [503]


def test_the_page_enrols(ki: RunningKi) -> None:
    """The page shows who waits; code and key typed into it enrol the table, and nobody waits then."""
    table = FakeTable(1, "By the <window>")
    claiming = Claiming(table)
    assert "None just now." in words(ki.get("/enrol"))
    claiming.ask(ki)
    page = ki.get("/enrol")
    assert "By the &lt;window&gt;" in page.text
    assert claiming.code not in page.text
    key = read_operator_key(ki.database.parent)
    refused = typed(ki, code="XXXX XXXX", key=key)
    assert (refused.status, "No table shows this code" in words(refused)) == (400, True)
    assert key not in refused.text
    done = typed(ki, code="bcdf ghjk", key=key)
    assert done.status == 200
    assert f"is enrolled; its key is {table.key_id.hex()}." in words(done)
    assert claiming.enrolled(ki)
    assert "None just now." in words(ki.get("/enrol"))


def test_no_other_page_enrols(ki: RunningKi) -> None:
    """Without the key, from another site, of another type, or sent on by a proxy: refused, and not done."""
    claiming = Claiming(FakeTable())
    claiming.ask(ki)
    key = read_operator_key(ki.database.parent)
    for headers, fields, status in (
        ({}, {"key": ""}, 403),
        ({}, {"key": "a" * 32}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, {}, 403),
        ({"Sec-Fetch-Site": "same-site"}, {}, 403),
        ({"Content-Type": "text/plain"}, {}, 400),
        (ELSEWHERE, {}, 403),
        ({"Host": "ki.example"}, {}, 403),
    ):
        answer = typed(ki, headers, **({"code": claiming.code, "key": key} | fields))
        assert answer.status == status, (headers, fields)
    assert not claiming.enrolled(ki)
    assert typed(ki, code=claiming.code, key=key).status == 200


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"&" * 5000, b"code=%ff&key=x", b"code=1&code=2"])
def test_rubbish_from_the_page_is_refused(ki: RunningKi, data: bytes) -> None:
    """Whatever is sent there, the page answers with a sentence."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = ki.ask("POST", "/enrol", data, kind)
    assert answer.status in (400, 403)
    assert "Enrol a table" in answer.text


def test_beyond_this_machine_there_is_no_page(tmp_path: Path) -> None:
    """From elsewhere the page only says where it is to be found."""
    with RunningKi(tmp_path) as ki:
        answer = ki.get("/enrol", ELSEWHERE)
        assert (answer.status, "on the KI's own machine only" in answer.text.replace("&#x27;", "'")) == (
            403,
            True,
        )
        assert "<form" not in answer.text


def test_a_table_takes_another_ones_place(ki: RunningKi, capsys: pytest.CaptureFixture[str]) -> None:
    """After a card swap the old key's results still count, and it is told that it reports."""
    old, new = FakeTable(1), FakeTable(2)
    ki.introduce(old)
    ki.report(old.sealed({ANN: 1, BEN: 1}))
    claiming = Claiming(new)
    claiming.ask(ki)
    assert heek(ki, "enrol", claiming.code, "--replaces", "Table 9") != 0
    assert "no table is called 'Table 9'" in capsys.readouterr().err
    assert not claiming.enrolled(ki)
    assert heek(ki, "enrol", claiming.code, "--replaces", old.key_id.hex()) == 0
    assert "in the place of Table 1" in capsys.readouterr().out
    assert claiming.enrolled(ki)
    assert ki.rows("SELECT * FROM findings") == []
    assert ki.report(old.sealed({ANN: 1, BEN: 1}))["answers"][0][0] == "accepted"
    assert [row[1] for row in ki.rows("SELECT * FROM findings")] == ["replaced"]
    assert heek(ki, "tables") == 0
    said = capsys.readouterr().out
    assert "taken at first sight, replaced by Table 1" in said
    assert "replaced, " in said


def test_two_tables_of_one_name_are_told_apart(ki: RunningKi, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that two tables have is not enough: the keys are named."""
    for number in (1, 2):
        ki.introduce(FakeTable(number))
    claiming = Claiming(FakeTable(3))
    claiming.ask(ki)
    assert heek(ki, "enrol", claiming.code, "--replaces", "Table 1") != 0
    said = capsys.readouterr().err
    assert all(FakeTable(number).key_id.hex() in said for number in (1, 2))


def test_no_ki_that_runs_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command for a KI that is not there, or for what is no KI, ends with one line."""
    with RunningKi(tmp_path) as ki:
        place: list[Any] = ["--database", str(ki.database)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert main(["ki", "tables", *place, "--port", str(port)]) != 0
    said = capsys.readouterr().err
    assert f"no KI answers at 127.0.0.1:{port}" in said
    assert "Traceback" not in said
