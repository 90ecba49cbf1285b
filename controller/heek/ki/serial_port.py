"""A serial port that opens or says in words why not, and whose reads and writes never wait.

pyserial opens and configures it: eight bits, no parity, one stop bit, no flow control (a 0x13 in a record
must stop nobody), and for us alone. It is imported then, so that a table without a serial line is spared it.
After that the plain file descriptor is used: a write of pyserial's tries again inside, for ever if the other
side takes nothing, and its reads raise three kinds of errors when the cable is pulled.

Opening and closing can take seconds with an adapter that is broken; call both on a thread of their own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heek.errors import LinkError

if TYPE_CHECKING:
    from serial import Serial

READ_BYTES: Final = 65_536
"""Taken from the port at once; a terminal of the kernel has 4,096 ready at most."""

_CHANGING_NAME: Final = re.compile(r"/dev/tty(?:USB|ACM)\d+")

_MISSING: Final = frozenset({errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.EIO})
_FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM})
_TAKEN: Final = frozenset({errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK})


class SerialPort:
    """A port that is open. `read` and `write` raise OSError when it is there no longer."""

    def __init__(self, serial: Serial) -> None:
        self._serial = serial
        self._fd: int = serial.fileno()

    def fileno(self) -> int:
        """For the loop to watch."""
        return self._fd

    def read(self) -> bytes | None:
        """What has come; None if nothing has. Raises OSError at the end of the line."""
        try:
            data = os.read(self._fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        if not data:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        return data

    def write(self, data: bytes) -> int:
        """Hand over as much as is taken at once, perhaps nothing; returns how many bytes that were."""
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0

    def close(self) -> None:
        """Let go of it; what was not sent yet is thrown away, or closing would wait for it."""
        # termios has an error of its own, which is no OSError.
        with contextlib.suppress(Exception):
            self._serial.reset_output_buffer()
        with contextlib.suppress(Exception):
            self._serial.close()


def open_port(name: str, baud: int) -> SerialPort:
    """Open the port of that name; raises LinkError with what is wrong and what to do about it."""
    import termios

    from serial import Serial

    serial: Any = Serial(None)
    try:
        serial.port = name
        serial.baudrate = baud
        serial.exclusive = True
        serial.rtscts = serial.dsrdtr = serial.xonxoff = False
        serial.timeout = serial.write_timeout = 0
        serial.open()
        fd = serial.fileno()
        settings = termios.tcgetattr(fd)
        # An empty read shall mean the end of the line, not "nothing yet", and a break be an odd byte.
        settings[0] &= ~termios.BRKINT
        settings[6][termios.VMIN] = 1
        termios.tcsetattr(fd, termios.TCSANOW, settings)
        os.set_blocking(fd, False)
    except (OSError, ValueError, termios.error) as error:
        with contextlib.suppress(Exception):
            serial.close()
        raise LinkError(_words(name, baud, error)) from None
    return SerialPort(serial)


def advice_on_name(name: str) -> str | None:
    """What to say about a port by whose name another one may answer tomorrow; None: nothing."""
    if _CHANGING_NAME.fullmatch(name) is None:
        return None
    return (
        f"{name} may be another adapter after the next start; give the port by its name in "
        "/dev/serial/by-id (two adapters of one kind: in /dev/serial/by-path)"
    )


def _words(name: str, baud: int, error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number in _MISSING:
        return f"port missing: {name}; plug it in, or give another name"
    if number in _FORBIDDEN:
        return (
            f"no permission for {name}: add this user to the group {_group_of(name)}; "
            "if it has it, disable the login console on the port"
        )
    if number in _TAKEN:
        return f"{name} is taken by another program; end that, or disable the login console on the port"
    if isinstance(error, ValueError):
        return f"{name} cannot be set to {baud} baud; give a usual one, such as 115200"
    if number is None:
        return f"{name} is no serial port; give the name of one"
    return f"{name} cannot be opened: {os.strerror(number)}"


def _group_of(name: str) -> str:
    """The group that may use the port; a login console takes the rights away and gives none to a group."""
    with contextlib.suppress(OSError, KeyError):
        group = Path(name).group()
        if group not in ("root", "tty"):
            return group
    return "dialout"
