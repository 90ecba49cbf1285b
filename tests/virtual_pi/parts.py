"""What this machine needs to boot a virtual Pi, and which of it is missing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
BUILT: Final = ROOT / ".virtual-pi"
"""Everything that is made for the virtual Pi: ignored by git, made again when its sources change."""

SOURCES: Final = Path("/usr/src")
DPKG: Final = Path("/var/lib/dpkg/status")

PROGRAMS: Final = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "modprobe": "kmod",
    "depmod": "kmod",
    "make": "build-essential",
    "gcc": "build-essential",
}
"""Each program with the package of Debian that has it."""

PACKAGES: Final = ("linux-headers-amd64", "linux-source")
"""What of the running archive is needed besides: which kernel that is, the archive says."""


def program(name: str) -> str | None:
    """Where a program is; those of the administrator are not on everybody's path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def installed(package: str) -> bool:
    """Whether a package of Debian is on this machine, whole."""
    asked = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout == "installed"


def wanted_packages() -> list[str]:
    """The packages that are still to be installed, sorted; for a machine that runs Debian."""
    programs = {package for name, package in PROGRAMS.items() if program(name) is None}
    return sorted(programs | {package for package in PACKAGES if not installed(package)})


def missing() -> str | None:
    """One line that says what keeps this machine from booting a virtual Pi, and what to do; None: nothing."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return (
            f"the virtual Pi boots on Linux on x86_64 alone, this is {platform.system()} on "
            f"{platform.machine()}; the other tests need none"
        )
    if not DPKG.exists() or program("apt-get") is None:
        return (
            "the virtual Pi takes its kernel from Debian's archive, and this is no Debian; run it in .ci/run"
        )
    wanted = wanted_packages()
    if wanted:
        return f"the virtual Pi needs: sudo apt-get install --no-install-recommends {' '.join(wanted)}"
    return None


if __name__ == "__main__":
    for package in wanted_packages() if platform.machine() == "x86_64" else ():
        print(package)
