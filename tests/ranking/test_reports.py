"""What tables ask over HTTP: every request gets the KI's own answer, whatever it is."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heek.ki import answers, cbor
from heek.ki.link import CONTENT_TYPE
from heek.ki.numbers import is_ki_number, ki_number
from heek.ranking import bodies, desk
from heek.ranking.bodies import MOST_BYTES
from heek.ranking.reports import NEW_PLAYERS_AN_HOUR
from tests.ranking.records import ANN, BEN, FakeTable, body
from tests.ranking.service import RunningKi, until

PATHS = ("/v1/records", "/v1/tables", "/v1/demo/players")

HEAD = (
    f"POST /v1/records HTTP/1.1\r\nHost: x\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: 9\r\n\r\n"
).encode()
"""Of a request whose body does not come."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKi]:
    """One KI for the tests that leave nothing behind."""
    with RunningKi(tmp_path_factory.mktemp("ki")) as running:
        running.introduce(FakeTable(50))
        yield running


def test_a_table_reports(ki: RunningKi) -> None:
    """Unknown, introduced, accepted, again: the whole first conversation of a table."""
    table = FakeTable()
    batch = body(table.sealed({ANN: 1, BEN: 1}, ANN), table.sealed({ANN: 1, BEN: 1}, BEN))
    refused = ki.post("/v1/records", batch)
    assert (refused.status, refused.cbor["error"]) == (403, "unknown_table")
    ki.introduce(table)
    taken = ki.post("/v1/records", batch)
    assert taken.status == 200
    answer = answers.read_batch_answer(taken.data, 2)
    assert [each.verdict.value for each in answer.answers] == ["accepted"] * 2
    assert answer.points == {ANN: 100, BEN: 100}
    again = answers.read_batch_answer(ki.post("/v1/records", batch).data, 2)
    assert [each.verdict.value for each in again.answers] == ["duplicate"] * 2
    assert again.holds == answer.holds


def test_a_table_introduces_itself_again_and_renames(ki: RunningKi) -> None:
    """The same key twice is harmless, and its name is the last one."""
    table = FakeTable()
    ki.introduce(table)
    table.name = "By the window"
    ki.introduce(table)
    ki.report(table.sealed({ANN: 1, BEN: 1}))
    assert "By the window: " in ki.get("/").text


def test_an_introduction_needs_the_tables_own_signature(ki: RunningKi) -> None:
    """Nobody introduces a key that they do not have."""
    mine, other = FakeTable(1), FakeTable(2)
    forged = cbor.decode(mine.introduction()) | {"public": other.public}
    answer = ki.post("/v1/tables", cbor.encode(forged))
    assert (answer.status, answer.cbor["error"]) == (400, "malformed")
    assert ki.post("/v1/records", body(other.sealed({ANN: 1, BEN: 1}))).cbor["error"] == "unknown_table"


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via"])
def test_what_a_proxy_sends_on_is_not_here(shared: RunningKi, header: str) -> None:
    """Behind a proxy on this machine everybody would seem to be on it: nothing of that is believed."""
    table = FakeTable(3)
    sent_on = {header: "for=192.0.2.7"}
    for path, data, code in (
        ("/v1/tables", table.introduction(), "not_enrolled"),
        ("/v1/records", body(table.sealed({ANN: 1, BEN: 1})), "not_enrolled"),
        ("/v1/demo/players", answers.encode_sign_in(None), "not_demo"),
    ):
        answer = shared.post(path, data, sent_on)
        assert (answer.status, answer.cbor["error"]) == (403, code)


def test_from_another_machine_only_known_tables_report(tmp_path: Path) -> None:
    """From elsewhere nothing is introduced and nobody signed in, but a known table's records are taken."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("192.0.2.1", 9))
        address = probe.getsockname()[0]
    except OSError:
        pytest.skip("this machine has no address but loopback")
    finally:
        probe.close()
    if address.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    with RunningKi(tmp_path, host="0.0.0.0") as ki:
        known, unknown = FakeTable(1), FakeTable(2)
        ki.introduce(known)

        def ask(path: str, data: bytes) -> tuple[int, Any]:
            connection = http.client.HTTPConnection(address, ki.port, timeout=10)
            connection.request("POST", path, data, {"Content-Type": CONTENT_TYPE})
            response = connection.getresponse()
            value = cbor.decode(response.read())
            connection.close()
            return response.status, value

        assert ask("/v1/records", body(known.sealed({ANN: 1, BEN: 1})))[1]["answers"][0][0] == "accepted"
        assert ask("/v1/records", body(unknown.sealed({ANN: 1, BEN: 1})))[1]["error"] == "not_enrolled"
        assert ask("/v1/tables", unknown.introduction())[1]["error"] == "not_enrolled"
        assert ask("/v1/demo/players", answers.encode_sign_in(None))[1]["error"] == "not_demo"


def test_a_click_signs_in(ki: RunningKi) -> None:
    """In a demonstration a new number is made, and known from then on; an unknown one is refused."""
    made = answers.read_signed_in(ki.post("/v1/demo/players", answers.encode_sign_in(None)).data)
    assert is_ki_number(made.player)
    assert made.points == 100
    again = answers.read_signed_in(ki.post("/v1/demo/players", answers.encode_sign_in(made.player)).data)
    assert again == made
    other = next(ki_number(at) for at in range(3) if ki_number(at) != made.player)
    refused = ki.post("/v1/demo/players", answers.encode_sign_in(other))
    assert (refused.status, refused.cbor["error"]) == (404, "unknown_player")
    assert "unverified" in ki.get(f"/players/{made.player}").text


def test_no_click_without_demo(tmp_path: Path) -> None:
    """A KI that is no demonstration signs nobody in by a click."""
    with RunningKi(tmp_path, demo=False) as ki:
        answer = ki.post("/v1/demo/players", answers.encode_sign_in(None))
        assert (answer.status, answer.cbor["error"]) == (403, "not_demo")


def test_new_players_are_limited(ki: RunningKi) -> None:
    """After so many new numbers the next one has to wait, and is told how long; known ones do not."""
    made = [
        ki.post("/v1/demo/players", answers.encode_sign_in(None)).cbor for _ in range(NEW_PLAYERS_AN_HOUR)
    ]
    assert len({each["player"] for each in made}) == len({each["name"] for each in made}) == len(made)
    answer = ki.post("/v1/demo/players", answers.encode_sign_in(None))
    assert (answer.status, answer.cbor["error"]) == (503, "busy")
    assert 1 <= answer.cbor["retry_s"] <= 18
    assert answer.headers["retry-after"] == str(answer.cbor["retry_s"])
    assert ki.post("/v1/demo/players", answers.encode_sign_in(made[0]["player"])).status == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "header",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_a_browser_cannot_report(shared: RunningKi, path: str, header: dict[str, str]) -> None:
    """No page can introduce tables, make accounts or report, not even the KI's own."""
    before = shared.get("/v1/board").json
    data = {
        "/v1/records": body(FakeTable(50).sealed({ANN: 1, BEN: 1})),
        "/v1/tables": FakeTable(51).introduction(),
        "/v1/demo/players": answers.encode_sign_in(None),
    }[path]
    answer = shared.post(path, data, header)
    assert (answer.status, answer.cbor["error"]) == (403, "not_enrolled")
    assert shared.get("/v1/board").json == before


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/json", ""])
def test_only_cbor_is_taken(shared: RunningKi, kind: str) -> None:
    """What a form could send has no type that is taken here."""
    answer = shared.post("/v1/records", body(), {"Content-Type": kind})
    assert (answer.status, answer.cbor["error"]) == (400, "malformed")


def test_other_paths_and_methods(shared: RunningKi) -> None:
    """What is not there is said, as CBOR to whoever posts."""
    assert shared.post("/v1/nothing", b"").status == 404
    assert "error" in shared.post("/", b"").cbor
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        answer = shared.ask(method, "/v1/records")
        assert answer.status == 405
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_too_large_a_request_is_refused(shared: RunningKi) -> None:
    """One byte more than allowed is refused, with or without a length told beforehand."""
    answer = shared.post("/v1/records", bytes(MOST_BYTES + 1))
    assert (answer.status, answer.cbor["error"]) == (413, "too_large")
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=10)
    pieces = iter([bytes(1 << 16)] * 17)
    connection.request("POST", "/v1/records", pieces, {"Content-Type": CONTENT_TYPE}, encode_chunked=True)
    response = connection.getresponse()
    assert response.status == 413
    assert cbor.decode(response.read())["error"] == "too_large"
    connection.close()
    assert shared.post("/v1/records", bytes(MOST_BYTES)).status == 400


def test_a_slow_sender_is_told_so(shared: RunningKi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that does not come is not waited for."""
    monkeypatch.setattr(bodies, "BODY_S", 0.3)
    with socket.create_connection(("127.0.0.1", shared.port), 10) as sock:
        sock.sendall(HEAD + b"\x80")
        response = http.client.HTTPResponse(sock)
        response.begin()
        value = cbor.decode(response.read())
    assert value["error"] == "malformed"
    assert "did not come within" in value["text"]


def test_too_many_at_once_are_told_to_wait(shared: RunningKi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many requests are held in memory; the next one is told to come again, and then may."""
    monkeypatch.setattr(desk, "MOST_AT_ONCE", 3)
    slow = []
    for _ in range(3):
        sock = socket.create_connection(("127.0.0.1", shared.port), 10)
        sock.sendall(HEAD)
        slow.append(sock)
    until(lambda: shared.post("/v1/records", body()).status == 503, "busy")
    answer = shared.post("/v1/records", body())
    assert (answer.cbor["error"], answer.cbor["retry_s"]) == ("busy", 2)
    assert shared.get("/").status == 200
    for sock in slow:
        sock.close()
    until(lambda: shared.post("/v1/records", body()).status == 200, "free again")


@pytest.mark.fault("F052")
def test_tables_may_report_at_once(ki: RunningKi) -> None:
    """Tables that report at the same moment are all answered, and nothing is lost or doubled."""
    tables = [FakeTable(at, f"Table {at}") for at in range(8)]
    for table in tables:
        ki.introduce(table)
    failed: list[BaseException] = []

    def report(table: FakeTable) -> None:
        try:
            for _ in range(5):
                sent = table.sealed({ANN: 1, BEN: 1}, ANN)
                while (answer := ki.post("/v1/records", body(sent))).status == 503:
                    time.sleep(0.05)
                assert answer.cbor["answers"][0][0] == "accepted"
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=report, args=(table,)) for table in tables]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == []
    board = ki.get("/v1/board").json
    assert [(each["player"], each["total"], each["played"]) for each in board["players"]] == [
        (ANN, 140, 40),
        (BEN, 60, 40),
    ]


SAMPLES = [
    body(FakeTable(50).sealed({ANN: 1, BEN: 1})),
    FakeTable(50).introduction(),
    answers.encode_sign_in(None),
    answers.encode_sign_in(ANN),
]


@st.composite
def rubbish(draw: st.DrawFn) -> bytes:
    """Any bytes at all, and real requests with a piece of them changed."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=300))
    data = bytearray(draw(st.sampled_from(SAMPLES)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
        if not data:
            break
    return bytes(data)


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=st.sampled_from(PATHS), data=rubbish())
def test_any_bytes_get_an_answer(shared: RunningKi, path: str, data: bytes) -> None:
    """Whatever is sent, the KI answers as the KI, and never with a failure of its own."""
    answer = shared.post(path, data)
    assert answer.status in (200, 400, 403, 404, 503)
    value = answer.cbor
    if "error" in value:
        assert value["error"] in answers.STATUSES
        assert value["text"]
        assert "its log says why" not in value["text"]


@pytest.mark.parametrize(
    "rubbish", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00", b"A" * 70_000]
)
def test_what_is_no_http_does_not_stop_it(shared: RunningKi, rubbish: bytes) -> None:
    """Bytes that are no request at all end their own connection and nothing else."""
    with socket.create_connection(("127.0.0.1", shared.port), 10) as sock:
        sock.sendall(rubbish)
        sock.shutdown(socket.SHUT_WR)
        try:
            while sock.recv(4096):
                pass
        except ConnectionError:
            pass
    assert shared.get("/healthz").status == 200
