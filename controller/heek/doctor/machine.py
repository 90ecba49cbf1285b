"""All that is asked of the machine, in one place: folders of files, and functions for what is no file.

What judges takes a `Machine` and touches nothing else, so a test gives it the files of any board.
"""

from __future__ import annotations

import contextlib
import grp
import http.client
import importlib.metadata
import json
import os
import re
import select
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from heek.boot import kernel_says_so
from heek.clock import SECOND, Duration
from heek.doctor.ki import KiKept
from heek.errors import JournalError, KeyFileError, PanelError
from heek.stations import header_chip
from heek.stations.header_chip import Chip, Line

if TYPE_CHECKING:
    from heek.config import DisplayConfig
    from heek.journal import JournalReader

LIBRARIES: Final = (
    "gpiozero",
    "lgpio",
    "RPi.GPIO",
    "rpi-lgpio",
    "luma.oled",
    "luma.core",
    "smbus2",
    "pyserial",
)
COMMAND_PATIENCE_S: Final = 5.0
MOST_METRICS_BYTES: Final = 65_536
PAGE_PATIENCE_S: Final = 3.0
"""For the running table's page, and for whatever listens at the KI's address."""
PAGE_BYTES: Final = 256 * 1024
"""More than any page's state has."""
CALLBACKS: Final = 500
"""How many wake-ups are measured for the lateness of a callback."""


@dataclass(frozen=True, slots=True)
class Space:
    """What a file system has."""

    free_bytes: int
    total_bytes: int


def _no_chips() -> Sequence[Chip]:
    return ()


def _no_lines(_chip: Chip, _numbers: Iterable[int]) -> Mapping[int, Line]:
    return {}


@dataclass(frozen=True, slots=True)
class Machine:
    """Where to look. The defaults find nothing, so that a test names what it is about."""

    root: Path
    """Its file system: /proc, /sys, /dev, /boot, /etc and /run are below it."""
    chips: Callable[[], Sequence[Chip]] = _no_chips
    lines: Callable[[Chip, Iterable[int]], Mapping[int, Line]] = _no_lines
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Versions by name, of those of `LIBRARIES` that are installed."""
    groups: frozenset[str] = frozenset()
    """Of the user that runs the doctor."""
    is_root: bool = False
    run: Callable[[Sequence[str]], str | None] = lambda _command: None
    """What a command prints; None if it is not there or fails."""
    space: Callable[[Path], Space | None] = lambda _folder: None
    writable: Callable[[Path], bool] = lambda _folder: True
    wall_s: Callable[[], float] = time.time
    kernel_synchronised: Callable[[], bool] = lambda: False
    """Whether the kernel was told that the network has set its clock."""
    frame: Callable[[DisplayConfig], tuple[Duration, str]] = lambda _display: (0, "")
    """Sends a full frame: how long it took, or what was wrong."""
    port_trouble: Callable[[str, int], str] = lambda _host, _port: ""
    """Why an address cannot be listened at; empty: it can."""
    journal_faults: Callable[[Path], Sequence[str] | None] = lambda _folder: None
    """What is wrong with a journal; None: there is none yet."""
    lateness: Callable[[], Sequence[Duration]] = lambda: ()
    """How late callbacks come on this machine, one by one."""
    table_pid: Callable[[Path], int | None] = lambda _folder: None
    """The process that runs a table on a state folder."""
    metrics: Callable[[str, int], Mapping[str, float] | None] = lambda _host, _port: None
    """What a running table's page tells programs, by its address; None: it does not answer."""
    set_aside: Callable[[Path], Sequence[str]] = lambda _folder: ()
    """The folders in a state folder that hold damaged journals, by name, oldest first."""
    ki_kept: Callable[[Path], KiKept | None] = lambda _folder: None
    """What a journal has kept of the KI; None: there is none, or none that can be read."""
    table_key: Callable[[Path], tuple[str, str]] = lambda _folder: ("", "")
    """The key id of a state folder's key, empty if there is none yet; and what is wrong with its file."""
    page_state: Callable[[str, int], Mapping[str, Any] | None] = lambda _host, _port: None
    """What the page of a running table tells; None: it does not answer."""
    unreached: Callable[[str], str] = lambda _url: ""
    """Why nothing listens at a KI's address; empty: something does."""

    def text(self, *paths: str) -> str | None:
        """The text of the first of these files that can be read, without a device tree's last NUL."""
        for path in paths:
            with contextlib.suppress(OSError):
                return (self.root / path.lstrip("/")).read_bytes().decode("utf-8", "replace").rstrip("\0\n")
        return None

    def number(self, path: str) -> int | None:
        """A number of the device tree: four bytes, the highest first."""
        with contextlib.suppress(OSError):
            cell = (self.root / path.lstrip("/")).read_bytes()
            return int.from_bytes(cell[:4], "big") if len(cell) >= 4 else None
        return None

    def exists(self, path: str) -> bool:
        return (self.root / path.lstrip("/")).exists() or (self.root / path.lstrip("/")).is_symlink()

    def link(self, path: str) -> str | None:
        """The last part of what a link points at."""
        with contextlib.suppress(OSError):
            return (self.root / path.lstrip("/")).readlink().name
        return None

    def names(self, pattern: str) -> list[str]:
        """The paths that a pattern finds, from the root on, in order."""
        found = self.root.glob(pattern.lstrip("/"))
        return sorted("/" + str(path.relative_to(self.root)) for path in found)


def this_machine() -> Machine:
    """The one that this runs on."""
    from heek.journal.lock import holder

    return Machine(
        root=Path("/"),
        chips=header_chip.chips,
        lines=header_chip.lines,
        libraries=_libraries(),
        groups=_groups(),
        is_root=os.geteuid() == 0,
        run=_run,
        space=_space,
        writable=_writable,
        kernel_synchronised=kernel_says_so,
        frame=_frame,
        port_trouble=_port_trouble,
        journal_faults=_journal_faults,
        lateness=callback_lateness,
        table_pid=holder,
        metrics=_metrics,
        set_aside=_set_aside,
        ki_kept=_ki_kept,
        table_key=_table_key,
        page_state=_page_state,
        unreached=_unreached,
    )


def _libraries() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _groups() -> frozenset[str]:
    names = set()
    for number in {os.getegid(), *os.getgroups()}:
        with contextlib.suppress(KeyError):
            names.add(grp.getgrgid(number).gr_name)
    return frozenset(names)


def _run(command: Sequence[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=COMMAND_PATIENCE_S,
            check=False,
            env={"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _there(folder: Path) -> Path:
    """The folder, or the nearest above it that is there; raises OSError if this user may not look."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _space(folder: Path) -> Space | None:
    try:
        usage = shutil.disk_usage(_there(folder))
    except OSError:
        return None
    return Space(usage.free, usage.total)


def _writable(folder: Path) -> bool:
    try:
        return os.access(_there(folder), os.W_OK | os.X_OK)
    except OSError:
        # Above it is a folder that this user may not even look into.
        return False


def _frame(display: DisplayConfig) -> tuple[Duration, str]:
    from PIL import Image

    from heek.display.oled import Oled
    from heek.display.panel_memory import SIZE_PX

    panel = Oled(display.driver, display.bus, display.address, display.rotate)
    try:
        first = panel.show(Image.new("1", SIZE_PX, 1), 0)
        if not first.ok:
            return 0, first.text
        began = time.monotonic_ns()
        second = panel.show(Image.new("1", SIZE_PX, 0), 0)
        took = time.monotonic_ns() - began
        return (took, "") if second.ok else (0, second.text)
    except PanelError as error:
        return 0, str(error)
    finally:
        panel.close()


def _port_trouble(host: str, port: int) -> str:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _metrics(host: str, port: int) -> Mapping[str, float] | None:
    import http.client

    from heek.serving.addresses import is_wildcard
    from heek.web.metrics import read_exposition

    connection = http.client.HTTPConnection(
        "127.0.0.1" if is_wildcard(host) else host, port, timeout=COMMAND_PATIENCE_S
    )
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        text = response.read(MOST_METRICS_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return read_exposition(text) if response.status == 200 else None


def _journal_faults(folder: Path) -> Sequence[str] | None:
    from heek.journal import read_journal
    from heek.journal.schema import FILE_NAME

    try:
        if not (folder / FILE_NAME).exists():
            return None
    except OSError:
        # Nor may this user read it: that is told as the reader of journals tells it.
        pass
    try:
        with read_journal(folder) as journal:
            return list(journal.verify())
    except JournalError as error:
        return [str(error)]


def _set_aside(folder: Path) -> Sequence[str]:
    try:
        names = [path.name for path in folder.iterdir() if re.fullmatch(r"damaged-[1-9]\d{0,5}", path.name)]
    except OSError:
        return ()
    return sorted(names, key=lambda name: int(name.partition("-")[2]))


def _ki_kept(folder: Path) -> KiKept | None:
    from heek.journal import read_journal
    from heek.ki.envelope import key_id

    try:
        with read_journal(folder) as journal:
            pin = journal.pin()
            return KiKept(
                journal.waiting(),
                journal.refused(),
                journal.settled(),
                None if pin is None else pin.name,
                "" if pin is None else key_id(pin.service).hex(),
                "" if pin is None else pin.found,
                acknowledged=_acknowledged(journal),
                known=pin is None or _is_known(journal, folder),
            )
    except JournalError:
        return None


def _acknowledged(journal: JournalReader) -> str:
    from heek.ki.settlement import acknowledged_words

    known = journal.acknowledgement()
    return "" if known is None else acknowledged_words(known.by, known.at_s, known.trust)


def _is_known(journal: JournalReader, folder: Path) -> bool:
    from heek.ki.table_key import key_if_any

    try:
        key = key_if_any(folder)
    except KeyFileError:
        # What is wrong with it is told by itself, and without it the table does not even start.
        return True
    return key is not None and journal.is_known_as(key.id)


def _table_key(folder: Path) -> tuple[str, str]:
    from heek.ki.table_key import key_if_any

    try:
        key = key_if_any(folder)
        return "" if key is None else key.id.hex(), ""
    except KeyFileError as error:
        return "", str(error)


def _page_state(host: str, port: int) -> Mapping[str, Any] | None:
    # Whoever listens at every address of the machine listens at this one too.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = http.client.HTTPConnection(host, port, timeout=PAGE_PATIENCE_S)
    try:
        connection.request("GET", "/state")
        answer = connection.getresponse()
        state = json.loads(answer.read(PAGE_BYTES)) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        connection.close()
    return state if isinstance(state, dict) else None


def _unreached(url: str) -> str:
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=PAGE_PATIENCE_S):
            return ""
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else None
        return f"nothing listens there ({said or error})"


def callback_lateness(count: int = CALLBACKS) -> list[Duration]:
    """How late a Python function is that a waiting thread calls, `count` times, in nanoseconds.

    RPi.GPIO calls its callbacks from a thread of its own that waits in the kernel for an edge. This is the
    same way with a pipe in place of the edge: from the instant of writing to the instant that the woken
    thread notes. The interrupt itself is not in it.
    """
    reading, writing = os.pipe()
    late: list[Duration] = []
    sent = 0
    woken = threading.Event()

    def wait_for_edges() -> None:
        with select.epoll() as poll:
            poll.register(reading, select.EPOLLIN)
            for _ in range(count):
                poll.poll()
                late.append(time.monotonic_ns() - sent)
                os.read(reading, 1)
                woken.set()

    waiter = threading.Thread(target=wait_for_edges, daemon=True)
    waiter.start()
    try:
        for _ in range(count):
            # Long enough that the thread sleeps in the kernel again, as it does between two edges.
            time.sleep(0.001)
            woken.clear()
            sent = time.monotonic_ns()
            os.write(writing, b".")
            if not woken.wait(COMMAND_PATIENCE_S):
                break
    finally:
        waiter.join(COMMAND_PATIENCE_S)
        os.close(reading)
        os.close(writing)
    return late


def milliseconds(duration: Duration) -> str:
    """A duration as people read it: `0.12 ms`."""
    return f"{duration / SECOND * 1000:.2f} ms"
