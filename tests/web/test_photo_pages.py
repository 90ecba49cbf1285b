"""The photo finish over HTTP: out of a real journal, refusals in words, and nobody waits for it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from heek.cli.photo_finishes import ReplayedMatches
from heek.errors import RecordingError
from heek.journal import open_journal
from heek.simulator.runner import simulate
from heek.simulator.story import read
from heek.web.app import MOST_PHOTOS, UNREAD
from heek.web.photo_pages import DrawnMatch, ShownMatch
from tests.journal.damage import overwrite, root, without_log
from tests.web.serving import serving, state, until

STORY = Path(__file__).parents[1] / "photo_finish" / "round.jsonl"
CONTROLLER = Path(__file__).parents[2] / "controller"
MATCH = "df6af1d8-303e-41cd-84bb-86c3d1c42710"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state")
    simulate(read(STORY), seed=1, state_dir=folder)
    return folder


def test_a_match_is_found_and_drawn(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the list to the match to the round, replayed by a process of its own; no link leads astray."""
    monkeypatch.setenv("PYTHONPATH", str(CONTROLLER))
    photos = ReplayedMatches(played)
    with serving(photo_finishes=photos) as served:
        browser = served.browser()
        assert browser.get("/about").json["photo_finish"] is True
        listed = browser.get("/photofinish")
        assert listed.headers["content-type"] == "text/html; charset=utf-8"
        assert f'href="/photofinish/{MATCH}"' in listed.body.decode()
        rounds = browser.get(f"/photofinish/{MATCH}").body.decode()
        assert f'href="/photofinish/{MATCH}/2"' in rounds
        assert "won by seat 1 with pen" in listed.body.decode()
        assert "won by seat 1 with pen; seat 2 Shorah &lt;b&gt; page, seat 3 nothing" in rounds
        drawn = browser.get(f"/photofinish/{MATCH}/2")
        assert drawn.status == 200
        assert "in time, but delivered after the reveal" in drawn.body.decode()
        for path in ("/static/photo_finish.css", "/static/page.css", "/kinds.svg", "/"):
            assert browser.get(path).status == 200
        # What is not there is a page, too.
        for path, words in (
            (f"/photofinish/{MATCH}/9", "no such round"),
            (f"/photofinish/{MATCH[:-1]}1", "There is no match"),
            ("/photofinish/last", "no match's number"),
            ("/photofinish/..%2f..%2fetc", "nothing here"),
        ):
            refused = browser.get(path)
            assert refused.status == 404, path
            assert words.lower() in refused.body.decode().replace("&#x27;", "'").lower()
    photos.close()


def test_a_match_of_which_the_journal_tells_otherwise(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is drawn, and its rounds and each drawing say above that the journal does not agree."""
    monkeypatch.setenv("PYTHONPATH", str(CONTROLLER))
    shutil.copy(played / "journal.sqlite3", tmp_path)
    db = sqlite3.connect(tmp_path / "journal.sqlite3", isolation_level=None)
    db.execute("""UPDATE events SET body = replace(body, '"winners":[1]', '"winners":[2]')""")
    db.close()
    photos = ReplayedMatches(tmp_path)
    with serving(photo_finishes=photos) as served:
        for path in (f"/photofinish/{MATCH}", f"/photofinish/{MATCH}/2"):
            shown = served.browser().get(path)
            assert shown.status == 200
            assert "Not what the journal tells: its event " in shown.body.decode()
    photos.close()


@pytest.mark.fault("F047")
def test_a_history_that_is_damaged_is_told_and_the_table_goes_on(
    played: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """F047: the list says in plain words what is wrong, monitor and log too; all else is answered as ever."""
    for name in ("journal.sqlite3", "journal.kept"):
        shutil.copy(played / name, tmp_path)
    without_log(tmp_path)
    sound = (tmp_path / "journal.sqlite3").read_bytes()
    overwrite(tmp_path, root(tmp_path, "recordings"))
    photos = ReplayedMatches(tmp_path)
    with serving(photo_finishes=photos) as served:
        browser = served.browser()
        served.server.publish(state())
        for _ in range(3):
            refused = browser.get("/photofinish")
            assert refused.status == 404
            assert "is damaged (database disk image is malformed)" in refused.body.decode()
            assert "start the table (`heek run`), which sets it aside" in refused.body.decode()
        assert browser.get("/state").status == 200
        assert (browser.get("/healthz").status, browser.get("/healthz").json["faults"]) == (503, [UNREAD])
        (said,) = caplog.messages
        assert said.startswith(f"past matches cannot be shown: {tmp_path / 'journal.sqlite3'}: is damaged")
        (tmp_path / "journal.sqlite3").write_bytes(sound)
        assert browser.get("/photofinish").status == 200
        assert browser.get("/healthz").json == {"ok": True, "faults": []}
    photos.close()


def test_it_is_replayed_once(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A match that is over never changes: asked for again, it needs no process."""
    monkeypatch.setenv("PYTHONPATH", str(CONTROLLER))
    photos = ReplayedMatches(played)
    first = photos.match(MATCH).result()
    monkeypatch.setattr("sys.executable", "/no/such/python")
    assert photos.match(MATCH).result() is first
    with pytest.raises(RecordingError, match="cannot be started"):
        photos.match(MATCH[:-1] + "1").result()
    photos.close()


def test_a_replay_that_runs_is_ended_with_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table stops in the middle of one: its process goes along."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(slow))
    open_journal(tmp_path).close()
    photos = ReplayedMatches(tmp_path)
    asked = photos.match(MATCH)
    until(lambda: photos._process is not None)
    process = photos._process
    assert process is not None
    photos.close()
    with pytest.raises(RecordingError):
        asked.result(timeout=10)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


class Stuck:
    """Never has a picture."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.futures: list[Future[Any]] = []

    def matches(self) -> Future[Sequence[ShownMatch]]:
        self.futures.append(Future())
        self.asked.release()
        return self.futures[-1]

    def match(self, match: str) -> Future[DrawnMatch]:
        raise AssertionError(match)


def test_many_who_look_at_once_do_not_pile_up() -> None:
    """Past a number they are told to come again, and the rest of the page answers as ever."""
    stuck = Stuck()
    with serving(photo_finishes=stuck) as served:
        waiting = [
            threading.Thread(target=lambda: served.browser().get("/photofinish")) for _ in range(MOST_PHOTOS)
        ]
        for each in waiting:
            each.start()
        for _ in waiting:
            assert stuck.asked.acquire(timeout=10)
        refused = served.browser().get("/photofinish")
        assert refused.status == 503
        assert refused.headers["retry-after"] == "2"
        assert served.browser().get("/state").status == 200
        for future in stuck.futures:
            future.set_result([])
        for each in waiting:
            each.join()
        assert b"No match is kept yet" not in refused.body


def test_without_recordings_there_is_no_such_page() -> None:
    """A page that was given none does not offer it."""
    with serving() as served:
        assert served.browser().get("/about").json["photo_finish"] is False
        assert served.browser().get("/photofinish").status == 404
