"""Two hosts in network namespaces with one cable between them, and what can happen to the cable.

The KI's host has a second address, at which a portal may stand, and a name server that says what it is told
to. Needs root, and a kernel that has namespaces; `missing` says what there is not.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
KI_AT: Final = "10.77.0.1"
TABLE_AT: Final = "10.77.0.2"
PORTAL_AT: Final = "10.77.0.3"
NOBODY_AT: Final = "2001:db8:77::dead"
"""The resolver puts it before any address of the older kind, and whatever is sent there is lost."""
NOBODYS_CARD: Final = "02:00:00:00:00:99"


def missing() -> str | None:
    """Why there can be no two hosts here; None: there can."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "network namespaces need root"
    for each in ("ip", "tc"):
        if shutil.which(each) is None:
            return f"{each} is not installed (iproute2)"
    name = f"heek-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"no network namespace can be made here: {tried.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return None


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"


class TwoHosts:
    """The hosts `table` and `ki`, until they are closed; `folder` is for the name server's words."""

    def __init__(self, folder: Path) -> None:
        self.table, self.ki = f"heek-t-{os.getpid()}", f"heek-k-{os.getpid()}"
        self._zone = folder / "zone.json"
        self._processes: list[subprocess.Popen[str]] = []
        for name in (self.table, self.ki):
            _run("ip", "netns", "add", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        peer = ("peer", "eth0", "netns", self.ki)
        _run("ip", "link", "add", "eth0", "netns", self.table, "type", "veth", *peer)
        for name, *addresses in (
            (self.table, f"{TABLE_AT}/24", "2001:db8:77::2/64"),
            (self.ki, f"{KI_AT}/24", f"{PORTAL_AT}/24", "2001:db8:77::1/64"),
        ):
            for each in addresses:
                nodad = ["nodad"] if ":" in each else []
                _run("ip", "-n", name, "addr", "add", each, "dev", "eth0", *nodad)
            _run("ip", "-n", name, "link", "set", "eth0", "up")
            _run("ip", "-n", name, "route", "add", "default", "dev", "eth0")
        self._lose(NOBODY_AT)
        self._resolver = Path("/etc/netns") / self.table
        self._resolver.mkdir(parents=True)
        self.resolver(there=True)
        self.says(a=[KI_AT])
        self.start(self.ki, "tests.two_hosts.name_server", KI_AT, str(self._zone), ready="name server")

    def close(self) -> None:
        for each in self._processes:
            each.kill()
            each.communicate()
        shutil.rmtree(self._resolver, ignore_errors=True)
        for name in (self.table, self.ki):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def start(
        self, host: str, module: str, *arguments: str, ready: str, **more: Any
    ) -> subprocess.Popen[str]:
        """A Python program on one of the hosts, once its standard output has said that it is `ready`."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'controller'}", "PYTHONUNBUFFERED": "1"},
            text=True,
            **{"stdout": subprocess.PIPE, "stdin": subprocess.PIPE, **more},
        )
        self._processes.append(process)
        said = process.stderr if more.get("stderr") is not None else process.stdout
        assert said is not None
        for line in said:
            if ready in line:
                return process
        raise AssertionError(f"{module} has ended before it was ready")

    def run(self, host: str, module: str, *arguments: str) -> str:
        """A Python program on one of the hosts, from beginning to end; what it says."""
        done = subprocess.run(
            ["ip", "netns", "exec", host, sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'controller'}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self, process: subprocess.Popen[str]) -> None:
        """As a power cut would."""
        process.kill()
        process.communicate()
        self._processes.remove(process)

    # The name server

    def resolver(self, *, there: bool) -> None:
        """Whether the table's host knows of a name server at all."""
        text = f"nameserver {KI_AT}\noptions timeout:2 attempts:1\n" if there else ""
        # In its place: the running processes have this very file.
        (self._resolver / "resolv.conf").write_text(text)

    def says(self, *, a: Sequence[str] = (), aaaa: Sequence[str] = (), silent: bool = False) -> None:
        """What the name server says to every question; without addresses, that there is no such name."""
        draft = self._zone.with_suffix(".draft")
        draft.write_text(json.dumps({"a": list(a), "aaaa": list(aaaa), "silent": silent}))
        draft.rename(self._zone)

    # The cable

    @contextlib.contextmanager
    def unplugged(self) -> Iterator[None]:
        """No carrier at either end; addresses stay, as on a Pi whose access point is gone."""
        _run("ip", "-n", self.ki, "link", "set", "eth0", "down")
        try:
            yield
        finally:
            _run("ip", "-n", self.ki, "link", "set", "eth0", "up")
            subprocess.run(
                ["ip", "-n", self.ki, "addr", "add", "2001:db8:77::1/64", "dev", "eth0", "nodad"],
                capture_output=True,
                check=False,
            )

    @contextlib.contextmanager
    def swallowed(self) -> Iterator[None]:
        """What the table sends is lost without a word, in the middle of connections too."""
        self._lose(KI_AT)
        try:
            yield
        finally:
            _run("ip", "-n", self.table, "neigh", "del", KI_AT, "dev", "eth0")

    def _lose(self, address: str) -> None:
        neighbour = ("neigh", "replace", address, "lladdr", NOBODYS_CARD, "dev", "eth0", "nud", "permanent")
        _run("ip", "-n", self.table, *neighbour)

    @contextlib.contextmanager
    def slowed(self, bits_a_second: int) -> Iterator[None]:
        """So many bits a second each way, and a queue before them."""
        for host in (self.table, self.ki):
            rate = ("tbf", "rate", f"{bits_a_second}bit", "burst", "1600", "latency", "4s")
            _run("ip", "netns", "exec", host, "tc", "qdisc", "add", "dev", "eth0", "root", *rate)
        try:
            yield
        finally:
            for host in (self.table, self.ki):
                _run("ip", "netns", "exec", host, "tc", "qdisc", "del", "dev", "eth0", "root")
