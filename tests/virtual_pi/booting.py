"""Boots a virtual Pi, runs one command in it, and hands on what it says.

The guest's root is this machine's, read-only over 9p with a layer of memory above it: the same Python, the
same clone at the same path, and nothing that it does is left behind but what it puts in /out. It has two
processors, so that threads really meet, and three serial ports: the console, and ttyS1 and ttyS2, which a
cable joins.
"""

from __future__ import annotations

import os
import selectors
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.virtual_pi.building import Built
from tests.virtual_pi.parts import program

UP: Final = "virtual Pi: up"
"""What the guest says when its root is there, before the command."""

MEMORY_MB: Final = 1024
UP_S: Final = 60.0
SILENT_S: Final = 120.0
"""A guest that has said nothing for so long hangs: no test of ours takes half of it."""
"""It takes 5 s, on a busy machine 15."""


@dataclass(frozen=True, slots=True)
class Went:
    """How it went."""

    came_up: bool
    code: int | None
    """The command's exit code; None: it did not come to its end."""
    took_s: float


def boot(
    built: Built,
    folder: Path,
    command: Sequence[str],
    *,
    where: Path,
    environment: Mapping[str, str],
    patience_s: float,
    silent_s: float = SILENT_S,
    say: Callable[[str], None],
) -> Went:
    """Run `command` in a virtual Pi, in the folder `where`, and switch it off.

    `folder` is the guest's /out; `say` gets each line of its console while it is said. A guest that is not
    done after `patience_s` seconds, or has said nothing for `silent_s`, is ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    code = folder / "code"
    code.unlink(missing_ok=True)
    words = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
    (folder / "job").write_text(
        "# What the virtual Pi is booted for.\n"
        f"cd {shlex.quote(str(where))} || exit 1\n"
        f"exec env -i {' '.join(words)} {shlex.join(command)}\n"
    )
    began = time.monotonic()
    machine = subprocess.Popen(
        _qemu(built, folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        came_up = _listen(machine, began, patience_s, silent_s, say)
    finally:
        if machine.poll() is None:
            machine.kill()
        machine.wait()
        (folder / "wire").unlink(missing_ok=True)
    said = code.read_text().strip() if code.exists() else ""
    return Went(came_up, int(said) if said.isdigit() else None, time.monotonic() - began)


def _listen(
    machine: subprocess.Popen[bytes],
    began: float,
    patience_s: float,
    silent_s: float,
    say: Callable[[str], None],
) -> bool:
    """Hand on the console until it ends or falls silent; whether the guest came up."""
    assert machine.stdout is not None
    came_up, rest, heard = False, b"", began
    with selectors.DefaultSelector() as selector:
        selector.register(machine.stdout, selectors.EVENT_READ)
        while True:
            end = began + (patience_s if came_up else min(UP_S, patience_s))
            left = min(end, heard + silent_s) - time.monotonic()
            if left <= 0:
                why = f"silent for {silent_s:.0f} s" if end > heard + silent_s else "not in time"
                say(f"virtual Pi: {why}, ended while it was {'at work' if came_up else 'coming up'}")
                return came_up
            if not selector.select(left):
                continue
            data = os.read(machine.stdout.fileno(), 65536)
            heard = time.monotonic()
            if not data:
                if rest:
                    say(rest.decode(errors="replace"))
                return came_up
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                text = line.decode(errors="replace").rstrip("\r")
                came_up = came_up or text.startswith(UP)
                say(text)


def _qemu(built: Built, folder: Path) -> list[str]:
    wire = folder / "wire"
    wire.unlink(missing_ok=True)
    line = [
        "console=ttyS0",
        "quiet",
        "loglevel=3",
        "panic=-1",
        "mitigations=off",
        "tsc=reliable",
        "softlockup_panic=1",
    ]
    return [
        program("qemu-system-x86_64") or "qemu-system-x86_64",
        *("-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", str(MEMORY_MB)),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-serial", "stdio"),
        *("-chardev", f"socket,id=wire,path={wire},server=on,wait=off", "-serial", "chardev:wire"),
        *("-chardev", f"socket,id=far,path={wire},server=off", "-serial", "chardev:far"),
        *("-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"),
        *("-device", "virtio-9p-pci,fsdev=root,mount_tag=root"),
        *("-fsdev", f"local,id=out,path={folder},security_model=none"),
        *("-device", "virtio-9p-pci,fsdev=out,mount_tag=out"),
        *("-kernel", str(built.kernel), "-initrd", str(built.initramfs), "-append", " ".join(line)),
    ]
