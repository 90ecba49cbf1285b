"""The files of four boards with Raspberry Pi OS and a table's settings, to be laid out in a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from heek.stations.header_chip import Chip
from heek.wiring.documents import boot_settings

# What the system's image brings (Bookworm and Trixie differ in comments alone).
STOCK_CONFIG = """\
# For more options and information see the documentation
dtparam=audio=on
camera_auto_detect=1
display_auto_detect=1
auto_initramfs=1
dtoverlay=vc4-kms-v3d
max_framebuffers=2
disable_fw_kms_setup=1
arm_64bit=1
disable_overscan=1
arm_boost=1

[cm4]
otg_mode=1

[cm5]
dtoverlay=dwc2,dr_mode=host

[all]
"""
CMDLINE = "console=tty1 root=PARTUUID=4e639091-02 rootfstype=ext4 fsck.repair=yes rootwait quiet\n"
MOUNTS = """\
/dev/mmcblk0p2 / ext4 rw,noatime 0 0
devtmpfs /dev devtmpfs rw,relatime,size=341628k,nr_inodes=85407,mode=755 0 0
proc /proc proc rw,relatime 0 0
tmpfs /run tmpfs rw,nosuid,nodev,size=185900k,nr_inodes=819200,mode=755 0 0
/dev/mmcblk0p1 /boot/firmware vfat rw,relatime,fmask=0022,dmask=0022 0 0
"""


@dataclass(frozen=True)
class Board:
    """One board's own part."""

    model: str
    revision: str
    i2c: str
    """Where the device tree has the header's bus."""
    serial0: str
    chips: tuple[Chip, ...]
    more: dict[str, bytes] = field(default_factory=dict)


BOARDS = {
    "pi3": Board(
        "Raspberry Pi 3 Model B Plus Rev 1.3",
        "a020d3",
        "soc/i2c@7e804000",
        "ttyS0",
        (Chip(0, "pinctrl-bcm2835", 54), Chip(1, "raspberrypi-exp-gpio", 8)),
    ),
    "zero2": Board(
        "Raspberry Pi Zero 2 W Rev 1.0",
        "902120",
        "soc/i2c@7e804000",
        "ttyS0",
        (Chip(0, "pinctrl-bcm2835", 54), Chip(1, "raspberrypi-exp-gpio", 8)),
    ),
    "pi4": Board(
        "Raspberry Pi 4 Model B Rev 1.4",
        "c03114",
        "soc/i2c@7e804000",
        "ttyS0",
        (Chip(0, "pinctrl-bcm2711", 58), Chip(1, "raspberrypi-exp-gpio", 8)),
    ),
    "pi5": Board(
        "Raspberry Pi 5 Model B Rev 1.0",
        "c04170",
        "axi/pcie@1000120000/rp1/i2c@74000",
        "ttyAMA0",
        (
            Chip(0, "pinctrl-rp1", 54),
            Chip(10, "gpio-brcmstb@107d508500", 32),
            Chip(11, "gpio-brcmstb@107d508520", 4),
            Chip(12, "gpio-brcmstb@107d517c00", 17),
            Chip(13, "gpio-brcmstb@107d517c20", 6),
        ),
        {"dev/rtc0": b""},
    ),
}


def lay_out(board: Board, root: Path) -> None:
    """Write the files of a board with its table below `root`."""
    files = {
        "proc/device-tree/model": board.model.encode() + b"\0",
        "proc/device-tree/system/linux,revision": int(board.revision, 16).to_bytes(4, "big"),
        "proc/device-tree/aliases/i2c1": f"/{board.i2c}".encode() + b"\0",
        "proc/cpuinfo": f"processor\t: 0\nRevision\t: {board.revision}\nModel\t\t: {board.model}\n".encode(),
        "proc/cmdline": CMDLINE.encode(),
        "proc/mounts": MOUNTS.encode(),
        "sys/class/i2c-adapter/i2c-1/of_node/clock-frequency": (400_000).to_bytes(4, "big"),
        "dev/i2c-1": b"",
        f"dev/{board.serial0}": b"",
        "boot/firmware/config.txt": (STOCK_CONFIG + "include heek.txt\n").encode(),
        "boot/firmware/heek.txt": boot_settings().encode(),
        "run/systemd/timesync/synchronized": b"",
        "var/lib/systemd/timesync/clock": b"",
        **board.more,
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (root / "dev" / "serial0").symlink_to(board.serial0)
