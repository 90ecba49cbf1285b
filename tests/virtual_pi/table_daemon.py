"""The real `heek run` as a process of its own, and what it says, with the time at which it was heard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from heek.journal import read_journal
from tests.virtual_pi.warm_start import WarmProcess

READY: Final = " is ready: "
PATIENCE_S: Final = 45.0
"""For a start in an emulated machine that has much to do; it takes 4 s, or a warm one 1 s."""
END_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Heard:
    """An event that the daemon has told."""

    event: Mapping[str, Any]
    at_ns: int
    """CLOCK_MONOTONIC, when its line was read."""


class NotReady(Exception):
    """The daemon ended, or said nothing, before it was ready; the message holds what it said."""


def toml(keys: Mapping[str, object]) -> str:
    """Configuration keys by their dotted names, as a configuration file."""
    sections: dict[str, list[str]] = {}
    tables: list[str] = []
    for key, value in keys.items():
        if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
            for each in value:
                tables.append(f"[[{key}]]")
                tables += [f"{name} = {json.dumps(part)}" for name, part in each.items()]
        else:
            section, _, name = key.rpartition(".")
            sections.setdefault(section, []).append(f"{name} = {json.dumps(value)}")
    lines = [line for section, parts in sections.items() for line in (f"[{section}]", *parts)]
    return "\n".join([*lines, *tables, ""])


class TableDaemon:
    """One table of one state folder; `start` it, and again after it has ended.

    `keys` are configuration keys by their dotted names, beside those that a table on pins needs. A `warm`
    one needs less time to start (`warm_start`).
    `said` holds the lines of its standard error, `events` the events among them, of all its lives.
    """

    def __init__(
        self,
        folder: Path,
        keys: Mapping[str, object] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        warm: bool = False,
    ) -> None:
        self.state = folder / "state"
        self._file = folder / "table.toml"
        given = {
            "table.state_dir": str(self.state),
            "stations.backend": "gpio",
            "web.port": 0,
            # Every event is told at this level, as soon as the journal has it.
            "log.level": "debug",
            "display": [{"driver": "ssd1306", "bus": 1, "address": 0x3C}],
        }
        self.keys: Mapping[str, object] = given | dict(keys or {})
        folder.mkdir(parents=True, exist_ok=True)
        self._file.write_text(toml(self.keys))
        self._folder = folder
        self._environment = dict(environment or {})
        # Another environment may hold other libraries than those that are imported already.
        self._warm = warm and not self._environment
        self._process: subprocess.Popen[str] | WarmProcess | None = None
        self._reader: threading.Thread | None = None
        self._news = threading.Condition()
        self._deaf = True
        self.said: list[str] = []
        self.events: list[Heard] = []
        self.ready_ns = 0
        """When it said so, in its life of now."""

    @property
    def driver(self) -> str:
        """The OLED's."""
        displays: Any = self.keys["display"]
        return str(displays[0]["driver"])

    @property
    def pid(self) -> int:
        return self._running.pid

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it is ready; raises NotReady if it does not come to that."""
        assert self._process is None or self._process.poll() is not None
        before = len(self.said)
        self._deaf = False
        words = ["run", "--config", str(self._file)]
        if self._warm:
            self._process = WarmProcess(words, self._folder, self._environment)
        else:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "heek", *words],
                cwd=self._folder,
                env={**os.environ, **self._environment},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True)
        self._reader.start()
        if wait and not self._wait_for(lambda: any(READY in line for line in self.said[before:]), PATIENCE_S):
            self.kill()
            raise NotReady("\n".join(self.said[before:]))

    def hears(self, word: str, within: float = 10.0, *, since: int = 0) -> bool:
        """Whether a line with `word` is said within so many seconds, or was said after the line `since`."""
        return self._wait_for(lambda: any(word in line for line in self.said[since:]), within)

    def has_told(self, event: str, within: float = 10.0, **fields: object) -> Heard | None:
        """The first event of this name with these fields, if it comes within so many seconds."""

        def found() -> Heard | None:
            wanted = {"event": event, **fields}
            return next((each for each in self.events if wanted.items() <= each.event.items()), None)

        self._wait_for(lambda: found() is not None, within)
        return found()

    def reset(self) -> None:
        """The operator's button."""
        self._running.send_signal(signal.SIGUSR1)

    def pause(self) -> None:
        """Let it stand still, wherever it is."""
        self._running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """End it as systemd does; its exit code."""
        self._running.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, within: float = END_S) -> int:
        """Its exit code, when it has ended and everything that it said is here."""
        code = self._running.wait(within)
        if self._reader is not None:
            self._reader.join(END_S)
        return code

    def kill(self) -> None:
        """End it as a pulled plug does; harmless if it has ended."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._process is not None:
            self.ended()

    def journal(self) -> list[dict[str, Any]]:
        """The events that it has kept; AssertionError if the journal is not sound."""
        with read_journal(self.state) as journal:
            assert journal.verify() == []
            return [json.loads(entry.body) for entry in journal.events()]

    @property
    def _running(self) -> subprocess.Popen[str] | WarmProcess:
        assert self._process is not None, "start it first"
        return self._process

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            now = time.monotonic_ns()
            with self._news:
                text = line.rstrip("\n")
                self.said.append(text)
                if text.startswith('DEBUG {"seq":'):
                    self.events.append(Heard(json.loads(text.removeprefix("DEBUG ")), now))
                elif READY in text:
                    self.ready_ns = now
                self._news.notify_all()
        stream.close()
        with self._news:
            self._deaf = True
            self._news.notify_all()

    def _wait_for(self, so: Any, within: float) -> bool:
        with self._news:
            self._news.wait_for(lambda: so() or self._deaf, within)
            return bool(so())
