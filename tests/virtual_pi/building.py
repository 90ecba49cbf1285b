"""Builds what the virtual Pi boots: Debian's kernel, three modules, an initramfs, and the two pin libraries.

The kernel is the one that belongs to the installed headers; nothing here knows its number. gpio-sim is not in
Debian's kernel but in its source, and is built from there, outside of the tree, with two changes that
`adapted` makes and checks:

* `irq_sim` calls `irq_to_desc`, which a module may not; `generic_handle_irq` does the same for it.
* gpio-sim takes a request for a pull-up as a finger that lets go. At a real table the contact wins over
  the resistor: a button that is held while the program starts stays closed. So the request changes nothing.
* The kernel forgets an edge if there is another on the same line before its interrupt thread has run. On a
  Pi that takes some 50 us, no contact is as quick. Here a processor may be held up for 50 ms, so a line
  moves again only when the kernel has taken its last edge. Between lines nothing is held back.

Each part has a stamp, made of all that went into it, and is built again only when that changed.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.virtual_pi.parts import BUILT, ROOT, SOURCES, program

HERE: Final = Path(__file__).parent

BOOT_MODULES: Final = (
    "virtio_pci", "9pnet_virtio", "9p", "overlay", "configfs", "i2c-dev",
)  # fmt: skip
"""Those of the kernel that the guest needs, each with all that it needs itself."""

SIM_SOURCES: Final = ("drivers/gpio/gpio-sim.c", "drivers/gpio/gpiolib*.h", "kernel/irq/irq_sim.c")

KBUILD: Final = """\
obj-m := table-gpio-sim.o table_panel.o
table-gpio-sim-y := gpio-sim.o irq_sim.o
ccflags-y := -DCONFIG_IRQ_SIM=1
"""


class CannotBuild(Exception):
    """One line: which part cannot be built, why, and where the whole story is."""


@dataclass(frozen=True, slots=True)
class Built:
    """All that a virtual Pi is booted from."""

    version: str
    """The kernel's, as `uname -r` has it."""
    kernel: Path
    initramfs: Path
    lgpio: Path
    """A folder for PYTHONPATH with lgpio, as the table's lock has it."""
    rpi_lgpio: Path
    """Another one, with rpi-lgpio, which stands in for RPi.GPIO, and the lgpio that it uses."""


def build(say: Callable[[str], None]) -> Built:
    """Bring everything up to date; `say` hears of each part that is made. Raises CannotBuild."""
    BUILT.mkdir(exist_ok=True)
    version = _kernel_version()
    boot = BUILT / "boot"
    needs = _digest([*HERE.glob("module/*.c"), HERE / "guest" / "init", Path(__file__)], version)
    if _is_old(boot, needs):
        say(f"kernel {version} and its modules")
        _anew(boot, needs, lambda folder: _make_boot(folder, version))
    lgpio, rpi_lgpio = BUILT / "lgpio", BUILT / "rpi-lgpio"
    lock = lock_entry(ROOT / "controller" / "requirements-pi.txt", "lgpio")
    for folder, text in ((lgpio, lock), (rpi_lgpio, (HERE / "requirements-rpi-lgpio.txt").read_text())):
        needs = _digest([], sys.version, text)
        if _is_old(folder, needs):
            say(f"the pin library {folder.name}")
            _anew(folder, needs, partial(_install, lock=text))
    return Built(version, boot / "vmlinuz", boot / "initramfs", lgpio, rpi_lgpio)


# The kernel


def _kernel_version() -> str:
    """The version of the headers that are installed, by what their package depends on."""
    depends = _run(["dpkg-query", "-W", "-f", "${Depends}", "linux-headers-amd64"], "the kernel's version")
    match = re.match(r"linux-headers-(\S+)", depends)
    if match is None or not (SOURCES / f"linux-headers-{match[1]}").is_dir():
        raise CannotBuild("the kernel's headers are not there: sudo apt-get install linux-headers-amd64")
    return match[1]


def _make_boot(folder: Path, version: str) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="kernel-", dir=BUILT) as scratch,
        ThreadPoolExecutor(max_workers=1) as beside,
    ):
        tree = Path(scratch)
        # Half a minute each: the kernel's source is unpacked while its package is fetched.
        own = beside.submit(_own_modules, tree / "own", version)
        _run(["apt-get", "download", "-qq", f"linux-image-{version}"], "the kernel's package", tree)
        package = next(tree.glob("linux-image-*.deb"), None)
        if package is None:
            raise CannotBuild(f"apt-get gave no package for linux-image-{version}: sudo apt-get update")
        _run(["dpkg-deb", "-x", str(package), "kernel"], "the kernel's package", tree)
        kernel = tree / "kernel"
        _run([_must("depmod"), "-b", str(kernel), version], "the list of the kernel's modules")
        shutil.copy(kernel / "boot" / f"vmlinuz-{version}", folder / "vmlinuz")
        modules = [*_boot_modules(kernel, version), *own.result()]
        _pack(tree / "initramfs", modules, folder / "initramfs")


def _boot_modules(kernel: Path, version: str) -> list[Path]:
    """The module files in the order in which they load, each once."""
    files: dict[Path, None] = {}
    for name in BOOT_MODULES:
        command = [_must("modprobe"), "-d", str(kernel), "-S", version, "-n", "--show-depends", name]
        for line in _run(command, f"the module {name}").splitlines():
            word, _, file = line.partition(" ")
            if word == "insmod":
                files[Path(file.split()[0])] = None
    return list(files)


def _own_modules(folder: Path, version: str) -> list[Path]:
    """gpio-sim from Debian's source, and the panel of ours."""
    folder.mkdir()
    short = ".".join(version.split(".")[:2])
    archive = SOURCES / f"linux-source-{short}.tar.xz"
    if not archive.exists():
        raise CannotBuild(f"{archive} is not there: sudo apt-get install linux-source-{short}")
    patterns = [f"*/{source}" for source in SIM_SOURCES]
    extract = ["tar", "xf", str(archive), "--strip-components=1", "--wildcards", *patterns]
    _run(extract, "the source of gpio-sim", folder)
    for pattern in SIM_SOURCES:
        for file in folder.glob(pattern):
            (folder / file.name).write_text(adapted(file.name, file.read_text()))
    shutil.copy(HERE / "module" / "table_panel.c", folder)
    (folder / "Kbuild").write_text(KBUILD)
    headers = SOURCES / f"linux-headers-{version}"
    _run(["make", "-s", "-C", str(headers), f"M={folder}", "modules"], "the modules")
    return [folder / "table-gpio-sim.ko", folder / "table_panel.ko"]


def adapted(name: str, text: str) -> str:
    """A source of the kernel with our changes; raises CannotBuild if it does not hold what they change."""
    changes = {
        "irq_sim.c": [("handle_simple_irq(irq_to_desc(irqnum));", "generic_handle_irq(irqnum);")],
        "gpio-sim.c": [
            ("case PIN_CONFIG_BIAS_PULL_UP:\n\t\treturn gpio_sim_apply_pull(chip, offset, 1);",
             "case PIN_CONFIG_BIAS_PULL_UP:\n\t\treturn 0;"),
            ("case PIN_CONFIG_BIAS_PULL_DOWN:\n\t\treturn gpio_sim_apply_pull(chip, offset, 0);",
             "case PIN_CONFIG_BIAS_PULL_DOWN:\n\t\treturn 0;"),
            ("struct gpio_sim_chip *chip = gpiochip_get_data(gc);\n\n\tswitch (pinconf",
             "switch (pinconf"),
            ("#include <linux/irq.h>\n", "#include <linux/irq.h>\n#include <linux/hardirq.h>\n"),
            ("\tret = gpio_sim_apply_pull(chip, line_attr->offset, pull);\n",
             "\tret = irq_find_mapping(chip->irq_sim, line_attr->offset);\n"
             "\tif (ret)\n"
             "\t\tsynchronize_irq(ret);\n"
             "\tret = gpio_sim_apply_pull(chip, line_attr->offset, pull);\n"),
        ],
    }  # fmt: skip
    for old, new in changes.get(name, []):
        if text.count(old) != 1:
            raise CannotBuild(
                f"the kernel's {name} has changed: look at the changes in {Path(__file__).name}"
            )
        text = text.replace(old, new)
    return text


def _pack(folder: Path, modules: Iterable[Path], target: Path) -> None:
    """The initramfs: busybox, the modules unpacked, and our first process."""
    for name in ("bin", "modules", "proc", "sys", "dev", "new", "lower", "over"):
        (folder / name).mkdir(parents=True)
    busybox = folder / "bin" / "busybox"
    shutil.copy(_must("busybox"), busybox)
    order = []
    for module in modules:
        name = module.name.removesuffix(".xz")
        if module.name == name:
            shutil.copy(module, folder / "modules" / name)
        else:
            # busybox loads no compressed ones.
            unpacked = subprocess.run(["xz", "-dc", str(module)], capture_output=True, check=True).stdout
            (folder / "modules" / name).write_bytes(unpacked)
        order.append(name)
    (folder / "modules" / "order").write_text("".join(f"{name}\n" for name in order))
    shutil.copy(HERE / "guest" / "init", folder / "init")
    for file in (busybox, folder / "init"):
        file.chmod(0o755)
    names = "\n".join(str(each.relative_to(folder)) for each in sorted(folder.rglob("*")))
    packed = subprocess.run(
        [_must("cpio"), "-o", "-H", "newc", "-R", "0:0", "--quiet"],
        cwd=folder,
        input=names.encode(),
        capture_output=True,
        check=True,
    ).stdout
    target.write_bytes(gzip.compress(packed, 1))


# The pin libraries


def lock_entry(lock: Path, name: str) -> str:
    """One package of a lock, with its hashes."""
    match = re.search(rf"(?m)^{re.escape(name)}==.*(?:\n    --hash=.*)+", lock.read_text())
    if match is None:
        raise CannotBuild(f"{lock.name} has no {name}: make lock")
    return re.sub(r"\s*;[^\\\n]*", " ", match[0])


def _install(folder: Path, lock: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(lock)
        file.flush()
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--require-hashes", "--no-deps", "--target", str(folder), "-r", file.name]
        _run(command, f"the pin library {folder.name}")


# Stamps


def _digest(files: Iterable[Path], *words: str) -> str:
    digest = hashlib.sha256()
    for word in words:
        digest.update(word.encode() + b"\0")
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _is_old(folder: Path, needs: str) -> bool:
    stamp = folder / ".made-of"
    return not stamp.exists() or stamp.read_text() != needs


def _anew(folder: Path, needs: str, make: Callable[[Path], None]) -> None:
    """Make a folder anew; one that failed half way stays without its stamp."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    make(folder)
    (folder / ".made-of").write_text(needs)


def _must(name: str) -> str:
    found = program(name)
    if found is None:
        raise CannotBuild(
            f"{name} is not on this machine; python -m tests.virtual_pi.parts says what to install"
        )
    return found


def _run(command: list[str], what: str, folder: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode != 0:
        log = BUILT / "failed.log"
        log.write_text(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        words = (done.stderr or done.stdout).strip().splitlines()
        raise CannotBuild(f"{what} cannot be made: {words[-1] if words else 'no reason given'} (see {log})")
    return done.stdout
