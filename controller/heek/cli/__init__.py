"""The command `heek`: reads what was typed, hands it to one command, and turns errors into one line."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Final, TextIO

from heek import __version__
from heek.durable import FULL
from heek.errors import ConfigError, StoryError, TableError

OK: Final = 0
FAILED: Final = 1
"""Something outside did not do its part: a pin, a file, a disk. Trying again may help."""
MISTAKE: Final = 2
"""What was typed or written is wrong; trying again does not help (systemd does not restart on it)."""
NOT_AS_EXPECTED: Final = 3
"""A story's expectation did not hold."""

_OUTPUT_FULL: Final = FULL | {errno.EIO}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code and never shows a traceback for a TableError."""
    _mend_streams()
    arguments = _parser().parse_args(argv)
    if not hasattr(arguments, "run"):
        _parser().print_help()
        return MISTAKE
    code: int = OK
    arguments.found = code
    try:
        code = arguments.run(arguments)
        sys.stdout.flush()
    except (ConfigError, StoryError) as error:
        print(error, file=sys.stderr)
        return MISTAKE
    except TableError as error:
        print(f"heek: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # Whoever read our output has read enough. What a command had found until then stays found.
        _give_up_output()
        return code or int(arguments.found)
    except OSError as error:
        if error.filename is not None or error.errno not in _OUTPUT_FULL:
            raise
        print(f"heek: the output cannot be written ({error.strerror}); make room for it", file=sys.stderr)
        _give_up_output()
        return FAILED
    except KeyboardInterrupt:
        return 130
    finally:
        _flush_errors()
    return code


def _mend_streams() -> None:
    """Make streams that were closed before we began harmless, and let no letter stop what is said.

    In this order each takes its own number again, which else the next file that is opened would take.
    """
    if sys.stdin is None:
        # It stays None for those who ask: that it is closed is a mistake where something was to be read.
        os.open(os.devnull, os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def machine_output() -> None:
    """From here on standard output is for programs: UTF-8 and every letter, whatever the terminal speaks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")


def _flush_errors() -> None:
    """What a full disk does not take of the log is lost; else Python would end with a code of its own."""
    try:
        sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)


def _give_up_output() -> None:
    """Nothing more can be flushed there, and Python must not try when it ends."""
    _give_up(sys.stdout)


def _give_up(stream: TextIO) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _parser() -> argparse.ArgumentParser:
    from heek.cli import (
        configuring,
        demo,
        doctoring,
        enrolling,
        journals,
        ki,
        lamps,
        replaying,
        running,
        selftesting,
        simulating,
    )

    parser = argparse.ArgumentParser(
        prog="heek", description="The controller of an Ahyoheek table, the D'ni rock-paper-scissors."
    )
    parser.add_argument("--version", action="version", version=f"heek {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    daily = (running, simulating, demo, ki, enrolling, configuring, journals, replaying)
    for command in (*daily, doctoring, selftesting, lamps):
        command.add_to(commands)
    return parser
