"""A KI that really listens, on a thread of the test, and a plain client of it."""

from __future__ import annotations

import contextlib
import http.client
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from heek.clock import RealClock
from heek.ki import cbor
from heek.ki.link import CONTENT_TYPE
from heek.ranking.server import Service
from heek.ranking.settings import ServiceSettings
from tests.ranking.records import FakeTable, body


class Answer:
    """What came back."""

    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.data = data

    @property
    def text(self) -> str:
        return self.data.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def cbor(self) -> Any:
        assert self.headers["content-type"] == CONTENT_TYPE, self.headers
        value = cbor.decode(self.data)
        assert value["ki"] == 1
        return value


class RunningKi:
    """A KI at a free port of 127.0.0.1, until it is closed."""

    def __init__(self, folder: Path, *, demo: bool = True, port: int = 0, **settings: Any) -> None:
        self.database = folder / "ki" / "ki.sqlite3"
        chosen = {"host": "127.0.0.1", "name": "KI"} | settings
        self.service = Service(
            ServiceSettings(database=self.database, port=port, demo=demo, **chosen), RealClock()
        )
        self.port = self.service.port
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}/"
        ready = threading.Event()
        self._thread = threading.Thread(target=self.service.serve, args=(ready.set,), daemon=True)
        self._thread.start()
        assert ready.wait(10)

    def close(self) -> float:
        """Stop it; how many seconds that took."""
        before = time.monotonic()
        self.service.stop()
        self._thread.join(10)
        assert not self._thread.is_alive()
        return time.monotonic() - before

    def __enter__(self) -> RunningKi:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self, method: str, path: str, data: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request over a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        try:
            connection.request(method, path, data or None, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, data: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask("POST", path, data, {"Content-Type": CONTENT_TYPE} | dict(headers or {}))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What stands in its ledger's file."""
        with contextlib.closing(sqlite3.connect(self.database)) as db:
            return db.execute(sql).fetchall()

    def introduce(self, table: FakeTable) -> None:
        answer = self.post("/v1/tables", table.introduction())
        assert answer.status == 200, answer.data
        assert answer.cbor["table"] == table.key_id

    def report(self, *envelopes: Any) -> Any:
        """The CBOR answer to a batch, which must not be refused as a whole."""
        answer = self.post("/v1/records", body(*envelopes))
        assert answer.status == 200, answer.data
        return answer.cbor


def until(condition: Callable[[], Any], what: str, within_s: float = 10.0) -> Any:
    """Wait for a condition and return what it gave; raises AssertionError if it never holds."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)
    return found
