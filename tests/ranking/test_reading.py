"""What everybody may read: the board, a player, a match, as pages and JSON; nothing under a wrong name."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from heek.ki.numbers import ki_number
from heek.ki.record import RecordSeat
from heek.kinds import Seat
from heek.ranking.gate import POLICY
from heek.web.glyphs_svg import kinds_svg
from tests.ranking.records import ANN, BEETLE, BEN, CLEO, DAN, PEN, FakeTable
from tests.ranking.service import RunningKi

HOSTILE = (
    "<img src=x onerror=alert()>"[:24],
    '"><script>alert(1)',
    "<svg/onload=alert()>",
    "</title><h1>",
    "{{7*7}}",
    "Robert'); DROP TABLE--",
    "javascript:alert(1)",
)


class Page(HTMLParser):
    """A page's elements and its text, read as a browser would."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def plain(self) -> str:
        return re.sub(r"\s+", " ", self.text)


@pytest.fixture
def played(ki: RunningKi) -> tuple[RunningKi, FakeTable]:
    """Ann won 4 from four; Ben won with beetles; a guest won; a bot played."""
    table = FakeTable()
    ki.introduce(table)
    record = table.record({ANN: 1, None: 0}, ANN, rated=False)
    seats = (record.seats[0], RecordSeat(Seat(2), "bot", None, "Cheeky", 0, 0))
    ki.report(
        table.sealed({ANN: 1, BEN: 2, CLEO: 1, DAN: 1}, ANN),
        table.sealed({BEN: 1, ANN: 1}, BEN, kind=BEETLE),
        table.sealed({None: 0, ANN: 1}),
        table.seal(replace(record, seats=seats, rounds=record.rounds[:2])),
    )
    return ki, table


def name_of(ki: RunningKi, number: str) -> str:
    name = ki.get(f"/v1/players/{number}").json["name"]
    assert isinstance(name, str)
    return name


def test_an_empty_board_says_what_to_do(ki: RunningKi) -> None:
    """Before the first record the board is a sentence about how to get on it."""
    text = Page(ki.get("/").text).plain
    assert "Nobody is on the board yet." in text
    assert "play a match" in text
    assert ki.get("/v1/board").json == {
        "ki": 1,
        "game": "ahyoheek",
        "rules": None,
        "ranked": 0,
        "players": [],
        "next": None,
    }


def test_the_board(played: tuple[RunningKi, FakeTable]) -> None:
    """Places by points, a shared place for equal points, and the matches of the tables in words."""
    ki, _ = played
    rows = ki.get("/v1/board").json["players"]
    assert [
        (each["place"], each["player"], each["points"], each["won"], each["played"]) for each in rows
    ] == [
        (1, ANN, 103, 1, 3),
        (2, BEN, 99, 1, 2),
        (2, min(CLEO, DAN), 99, 0, 1),
        (2, max(CLEO, DAN), 99, 0, 1),
    ]
    text = Page(ki.get("/").text).plain
    ann, ben = name_of(ki, ANN), name_of(ki, BEN)
    assert f"Table 1: {ann} won +4, three pens, 3 rounds" in text
    assert f"Table 1: {ben} won +1, three beetles, 3 rounds" in text
    assert "Table 1: a guest won, three pens, 3 rounds" in text
    assert f"Table 1: {ann} won, two pens, 2 rounds, not rated" in text
    assert "Cheeky" not in text


def test_a_player_sees_the_reason_for_every_change(played: tuple[RunningKi, FakeTable]) -> None:
    """Each change has its reason, the grant is the first one, and the sums are right line by line."""
    ki, _ = played
    ann, ben = name_of(ki, ANN), name_of(ki, BEN)
    page = ki.get(f"/v1/players/{ANN}").json
    assert [(each["reason"], each["total"]) for each in page["changes"]] == [
        ("not rated: won with two pens at Table 1", 103),
        ("nothing moved: a guest won at Table 1", 103),
        (f"-1 stake: lost to {ben} at Table 1", 103),
        ("+4 from the others: won with three pens at Table 1", 104),
    ]
    assert (page["points"], page["rank"], page["to_next_rank"], page["place"]) == (103, 1, 98, 1)
    text = Page(ki.get(f"/players/{ANN}").text).plain
    assert f"-1 stake: lost to {ben} at Table 1" in text
    assert "+4 from the others: won with three pens at Table 1" in text
    assert "+100 grant: the account was made" in text
    assert "98 points to rank 2" in text
    assert ann in text


def test_a_match_can_be_replayed(played: tuple[RunningKi, FakeTable]) -> None:
    """The page of a match has every throw, and who won which round."""
    ki, _ = played
    match = ki.get(f"/v1/players/{ANN}").json["changes"][-1]["match"]
    html = ki.get(f"/matches/{match}").text
    page = Page(html)
    assert f"{name_of(ki, ANN)} won with three pens" in page.plain
    assert page.text.count("pen, won the round") == 3
    assert sum(dict(attrs).get("href") == "/static/kinds.svg#page" for _, attrs in page.tags) == 9
    assert "17 March 2030, 17:46 UTC" in page.plain


@pytest.mark.fault("F037")
def test_a_clock_that_was_not_set_is_not_shown(ki: RunningKi) -> None:
    """The time of a table whose clock nobody has set is on no page."""
    table = FakeTable()
    ki.introduce(table)
    record = table.record({ANN: 1, BEN: 1})
    answer = ki.report(table.seal(replace(record, t=replace(record.t, trust="none"))))
    assert answer["answers"][0][0] == "accepted"
    match = ki.get(f"/v1/players/{ANN}").json["changes"][0]["match"]
    assert "UTC" not in ki.get(f"/matches/{match}").text


def test_a_conflict_is_told_on_the_page(played: tuple[RunningKi, FakeTable]) -> None:
    """Where another version was set aside, the match's page says so."""
    ki, table = played
    record = table.record({ANN: 1, BEN: 1}, ANN)
    ki.report(table.seal(record))
    page = f"/matches/{record.match_id}"
    assert "set aside" not in ki.get(page).text
    ki.report(table.seal(replace(record, seq=999)))
    assert "Another version of this result came later and was set aside." in ki.get(page).text


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text(ki: RunningKi, name: str) -> None:
    """Whatever a table calls itself or its guests is text on every page, or not there at all."""
    table = FakeTable(name=name)
    ki.introduce(table)
    record = table.record({ANN: 1, None: 0, BEN: 1}, ANN)
    seats = (record.seats[0], replace(record.seats[1], name=name), replace(record.seats[2], name=name))
    assert ki.report(table.seal(replace(record, seats=seats)))["answers"][0][0] == "accepted"
    match = ki.get(f"/v1/players/{ANN}").json["changes"][0]["match"]
    for path in ("/", f"/players/{ANN}", f"/players/{BEN}", f"/matches/{match}"):
        page = Page(ki.get(path).text)
        assert name in page.text
        allowed = {"script": 1, "img": 1, "h1": 1, "title": 1}
        for tag, most in allowed.items():
            assert sum(each == tag for each, _ in page.tags) == most, (path, tag)
        for tag, attrs in page.tags:
            assert not any(key.startswith("on") or key == "style" for key in attrs), (path, tag)
            assert not any("javascript:" in str(attrs.get(key)) for key in ("href", "src")), (path, tag)


def test_a_players_own_words_are_not_shown(ki: RunningKi) -> None:
    """The names that a record has for players and guests are on no page: shown is what the KI generated."""
    table = FakeTable()
    ki.introduce(table)
    record = table.record({ANN: 1, None: 0}, ANN)
    seats = tuple(replace(each, name="Somebody rude") for each in record.seats)
    ki.report(table.seal(replace(record, seats=seats)))
    for path in ("/", f"/players/{ANN}", f"/matches/{record.match_id}", "/v1/board", f"/v1/players/{ANN}"):
        assert "rude" not in ki.get(path).text


def test_nobody_is_shown_below_zero(ki: RunningKi) -> None:
    """The ledger may go below zero; the pages show 0, and the order is by what it really is."""
    table = FakeTable()
    ki.introduce(table)
    losses = [table.sealed({ANN: 2, BEN: 1}, BEN) for _ in range(52)]
    more = [table.sealed({CLEO: 2, BEN: 1}, BEN) for _ in range(51)]
    answer = ki.report(*losses, *more)
    assert (answer["points"][ANN], answer["points"][CLEO]) == (-4, -2)
    rows = ki.get("/v1/board").json["players"]
    assert [(each["player"], each["points"], each["total"], each["rank"]) for each in rows[1:]] == [
        (CLEO, 0, -2, 0),
        (ANN, 0, -4, 0),
    ]
    page = Page(ki.get(f"/players/{ANN}").text).plain
    assert "5 points to rank 1" in page
    assert "-4" not in Page(ki.get("/").text).plain


def test_pages_follow_each_other_without_gaps(ki: RunningKi) -> None:
    """All pages together have everybody once, in one order, with places that go on; also with many equals."""
    table = FakeTable()
    ki.introduce(table)
    crowd = [ki_number(at) for at in range(130)]
    pairs = [(crowd[at], crowd[at + 1]) for at in range(0, 130, 2)]
    ki.report(*(table.sealed({one: 1, other: 1}, one) for one, other in pairs))
    # Some win back what they lost, once or twice: equal points, and more matches won.
    again = [pair for at, pair in enumerate(pairs) if at % 3 == 0]
    ki.report(*(table.sealed({one: 1, other: 1}, other) for one, other in again))
    ki.report(*(table.sealed({one: 1, other: 1}, who) for one, other in again[:9] for who in (one, other)))
    seen: list[tuple[int, str, int, int]] = []
    path, pages = "/v1/board?limit=17", 0
    while True:
        page = ki.get(path).json
        pages += 1
        seen += [(each["place"], each["player"], each["points"], each["won"]) for each in page["players"]]
        if page["next"] is None:
            break
        path = f"/v1/board?limit=17&after={page['next']}"
    assert pages == 8
    assert sorted(number for _, number, _, _ in seen) == sorted(crowd)
    assert seen == sorted(seen, key=lambda each: (-each[2], -each[3], each[1]))
    assert {(place, points) for place, _, points, _ in seen} == {(1, 101), (44, 100), (88, 99)}
    assert {won for _, _, points, won in seen if points == 100} == {1, 2}
    first = ki.get("/").text
    following = re.search(r'href="/\?after=([^"]+)"', first)
    assert following
    second = ki.get(f"/?after={following[1]}").text
    shown = [re.findall(r'data-key="([0-9]{8})"', html) for html in (first, second)]
    assert [number for _, number, _, _ in seen][:100] == shown[0] + shown[1]


def test_a_long_history_is_paged(ki: RunningKi) -> None:
    """A player's page goes on where it ended, and the running totals with it, down to the grant."""
    table = FakeTable()
    ki.introduce(table)
    ki.report(*(table.sealed({ANN: 1, BEN: 1}, ANN if at % 3 else BEN) for at in range(120)))
    totals: list[int] = []
    path = f"/v1/players/{ANN}?limit=50"
    while True:
        page = ki.get(path).json
        totals += [each["total"] for each in page["changes"]]
        if page["next"] is None:
            break
        path = f"/v1/players/{ANN}?limit=50&before={page['next']}"
    running, expected = 100, []
    for at in range(120):
        running += 1 if at % 3 else -1
        expected.append(running)
    assert totals == expected[::-1]
    assert "the account was made" not in ki.get(f"/players/{ANN}").text
    assert "Earlier matches" in ki.get(f"/players/{ANN}").text


def test_who_has_played_nothing_is_not_ranked(ki: RunningKi) -> None:
    """An account without a rated match has a page and no place."""
    from heek.ki.answers import encode_sign_in

    number = ki.post("/v1/demo/players", encode_sign_in(None)).cbor["player"]
    assert ki.get("/v1/board").json["ranked"] == 0
    assert ki.get(f"/v1/players/{number}").json["place"] is None
    assert "none yet" in Page(ki.get(f"/players/{number}").text).plain


def test_a_very_long_match_is_cut_on_the_page(ki: RunningKi) -> None:
    """A record full of rounds makes a page of bounded size."""
    table = FakeTable()
    ki.introduce(table)
    record = table.record({ANN: 1, BEN: 1}, ANN)
    rounds = ({Seat(1): PEN, Seat(2): PEN},) * 2000 + record.rounds
    ki.report(table.seal(replace(record, rounds=rounds)))
    answer = ki.get(f"/matches/{record.match_id}")
    assert "And 1703 more rounds." in answer.text
    assert len(answer.data) < 150_000


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/nothing", 404, "and this is none"),
        ("/players/12345678", 404, "Nobody here"),
        (f"/players/{ki_number(77)}", 404, "Nobody here has the KI number"),
        ("/players/abc", 404, "none"),
        ("/matches/00000000-0000-4000-8000-000000000000", 404, "No match"),
        ("/matches/../../etc/passwd", 404, "none"),
        ("/static/../store.py", 404, "none"),
        ("/static/nothing.css", 404, "no file"),
        ("/v1/records", 404, "tables report here"),
        ("/?after=rubbish", 400, "key of a line"),
        ("/?after=1_2_3%27", 400, "key of a line"),
        ("/v1/board?limit=0", 400, "whole number from 1 to 200"),
        ("/v1/board?limit=99999999999999999999", 400, "whole number"),
        (f"/v1/players/{ki_number(77)}", 404, "nobody here"),
    ],
)
def test_what_is_not_there_is_said(ki: RunningKi, path: str, status: int, said: str) -> None:
    """A wrong address gets one clear sentence, as a page or as JSON."""
    answer = ki.get(path)
    assert answer.status == status
    if path.startswith("/v1/"):
        assert said in answer.json["error"]
    else:
        text = Page(answer.text).plain
        assert said in text
        assert "Traceback" not in text


@pytest.mark.parametrize("path", ["/", "/v1/board", "/live", "/static/board.css", "/healthz"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}"]
)
def test_a_strangers_name_reads_nothing(ki: RunningKi, path: str, host: str) -> None:
    """Under a name that is not the KI's own nothing is read (DNS rebinding)."""
    answer = ki.get(path, {"Host": host.format(port=ki.port)})
    assert answer.status == 421
    assert f"open http://127.0.0.1:{ki.port}/ instead" in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_its_own_names_read(ki: RunningKi, host: str) -> None:
    """Every name of this machine's loopback reads the board."""
    assert ki.get("/", {"Host": host.format(port=ki.port)}).status == 200


def test_open_to_a_network_any_address_reads(tmp_path: Path) -> None:
    """Listening everywhere, it is known by each bare address, and by no stranger's name."""
    with RunningKi(tmp_path, host="0.0.0.0") as ki:
        assert ki.get("/", {"Host": f"192.168.7.7:{ki.port}"}).status == 200
        assert ki.get("/", {"Host": "192.168.7.7:1"}).status == 421
        assert ki.get("/", {"Host": f"evil.example:{ki.port}"}).status == 421


def test_another_sites_page_reads_nothing(ki: RunningKi) -> None:
    """What a browser marks as another site's request is refused; a link that a person follows is not."""
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert ki.get("/v1/board", cross | {"Sec-Fetch-Mode": "no-cors"}).status == 403
    link = cross | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ki.get("/", link).status == 200


@pytest.mark.parametrize("path", ["/", "/nothing", "/v1/board", "/static/board.css", "/static/live.js"])
def test_every_answer_has_its_guards(ki: RunningKi, path: str) -> None:
    """The policy that takes nothing from elsewhere stands on every answer; no cookie, no server's name."""
    headers = ki.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert not {"set-cookie", "server", "access-control-allow-origin"} & set(headers)


def test_files_are_asked_for_once(ki: RunningKi) -> None:
    """A file that a browser has already is not sent again; a page is never kept."""
    first = ki.get("/static/board.css")
    assert ki.get("/static/board.css", {"If-None-Match": first.headers["etag"]}).status == 304
    assert ki.get("/").headers["cache-control"] == "no-store"


def test_the_glyphs_are_the_tables_own() -> None:
    """Pen, page and beetle are the drawing that the OLED and the table's page have."""
    import heek.ranking

    file = Path(heek.ranking.__file__).parent / "static" / "kinds.svg"
    assert file.read_text(encoding="utf-8") == kinds_svg()
